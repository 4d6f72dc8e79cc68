#include "octet/train/study/arm.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/config/read.hpp"

namespace octet::train {
namespace {

constexpr std::size_t longest_name = 64;
constexpr const char* example = "write 'o3: recipe.name=current, optim.learning_rate=1e-3'";

// Sections end with a dot.
constexpr std::string_view shared_keys[] = {"name", "output", "seed", "data.", "train.max_seconds", "train.eval_tokens", "checkpoint."};

bool is_folder_name(const std::string& name) {
  const auto plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= longest_name && name[0] != '.' && std::all_of(name.begin(), name.end(), plain);
}

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
  return from == text.npos ? "" : text.substr(from, to - from + 1);
}

// The parts of `text` between commas that lie outside brackets and quotes.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> out(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'') quote = c;
    else if (c == '[' || c == '{') ++depth;
    else if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0 && quote == 0) out.emplace_back();
    else out.back() += c;
  }
  for (std::string& part : out) part = trimmed(part);
  return out;
}

std::string key_of(const std::string& assignment) { return trimmed(assignment.substr(0, assignment.find('='))); }

bool sets(const Arm& arm, const std::string& key) {
  return std::any_of(arm.keys.begin(), arm.keys.end(), [&](const std::string& assignment) { return key_of(assignment) == key; });
}

void require_own_key(const Arm& arm, const std::string& assignment) {
  const std::string key = key_of(assignment);
  for (const std::string_view shared : shared_keys)
    if (shared.ends_with('.') ? key.starts_with(shared) : key == shared)
      throw ConfigError(format(
          "--arm {}: all runs of a comparison have the same `{}`; leave it out of the arm, or set it for all with --set", arm.name, key));
}

}  // namespace

Arm parse_arm(const std::string& text) {
  const auto colon = text.find(':');
  Arm arm{trimmed(text.substr(0, colon)), {}};
  if (colon == text.npos) {
    scaling::make_recipe(arm.name, {});
    arm.keys = {"recipe.name=" + arm.name};
    return arm;
  }
  if (!is_folder_name(arm.name))
    throw ConfigError(format("--arm \"{}\": a name has 1 to {} of a-z, A-Z, 0-9, \".\", \"_\", \"-\" and does not begin with a dot; {}",
                             printable(text.substr(0, 200)), longest_name, example));
  for (const std::string& part : parts_of(text.substr(colon + 1))) {
    if (part.empty()) throw ConfigError(format("--arm {}: a key is missing after \":\" or beside \",\"; {}", arm.name, example));
    arm.keys.push_back(part);
  }
  return arm;
}

RunConfig with_arm(const RunConfig& common, const Arm& arm) {
  RunConfig c = common;
  config::Origins origins;
  for (const std::string& assignment : arm.keys) {
    require_own_key(arm, assignment);
    try {
      config::apply_override(c, assignment, origins);
    } catch (const ConfigError& e) {
      std::string why = e.what();
      if (why.starts_with("--set ")) why = why.substr(6);
      throw ConfigError(format("--arm {}: {}", arm.name, why));
    }
  }
  try {
    scaling::make_recipe(c.recipe.recipe, c.recipe.options);
  } catch (const ConfigError&) {
    // A format that this recipe lacks is no mistake where it was chosen for those that have it.
    if (sets(arm, "recipe.format")) throw;
    c.recipe.options.format = "default";
    scaling::make_recipe(c.recipe.recipe, c.recipe.options);
  }
  return c;
}

}  // namespace octet::train

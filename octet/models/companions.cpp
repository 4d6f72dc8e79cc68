#include "octet/models/companions.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/json/fields.hpp"
#include "octet/tokenizer/special_tokens.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::models {
namespace {

constexpr const char* config_name = "config.json";
constexpr const char* generation_config_name = "generation_config.json";
constexpr std::array<std::string_view, 9> names{"added_tokens.json",
                                                "generation_config.json",
                                                "merges.txt",
                                                "special_tokens_map.json",
                                                "tokenizer.json",
                                                "tokenizer.model",
                                                "tokenizer_config.json",
                                                "vocab.json",
                                                "vocab.txt"};
// A vocabulary of 2^18 tokens and as many merges, with room.
constexpr json::Limits tokenizer_limits{.bytes = tokenizer::most_source_bytes, .values = std::size_t(1) << 22};

std::string text_of(const std::string& folder, const std::string& name, std::size_t most) {
  return with_remedy("fetch it again", [&] { return read_file(path_within(folder, name), most, Link::refuse); });
}

/// The id of an added token of tokenizer.json.
std::optional<std::int64_t> id_of(const json::Value& vocabulary, const std::string& token) {
  const json::Value* added = vocabulary.find("added_tokens");
  if (added == nullptr || added->array() == nullptr || token.empty()) return {};
  for (const json::Value& entry : *added->array()) {
    if (entry.object() == nullptr) continue;
    const json::Value *content = entry.find("content"), *id = entry.find("id");
    const bool same = content != nullptr && content->text() != nullptr && *content->text() == token;
    if (same && id != nullptr && id->integer() != nullptr) return *id->integer();
  }
  return {};
}

json::Value parsed(const std::string& config) { return json::parse({.text = config, .file = config_name, .limits = config_limits}); }

}  // namespace

const std::string* Companions::find(std::string_view name) const {
  for (const File& file : files)
    if (file.name == name) return &file.text;
  return nullptr;
}

bool is_companion(std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end() || name == "chat_template.jinja" || name == "chat_template.json";
}

Companions read_companions(const std::string& folder) {
  Companions out;
  if (exists(folder + "/" + config_name)) out.config = text_of(folder, config_name, config_limits.bytes);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_companion(name)) out.files.push_back({name, text_of(folder, name, tokenizer::most_source_bytes)});
  }
  std::sort(out.files.begin(), out.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (exists(folder + "/model.safetensors") || exists(folder + "/model.safetensors.index.json")) out.weights = folder;
  return out;
}

void write_companions(const std::string& folder, const Companions& companions) {
  if (!companions.config.empty()) write_own_file(folder + "/" + config_name, companions.config);
  for (const auto& file : companions.files) write_own_file(folder + "/" + file.name, file.text);
}

data::Checksum checksum_of(const Companions& companions) {
  std::string listed = to_text(data::checksum_of(companions.config));
  for (const Companions::File& file : companions.files) listed += format("\n{} {}", to_text(data::checksum_of(file.text)), file.name);
  return data::checksum_of(listed);
}

DType weights_dtype(const Companions& companions) {
  if (companions.config.empty()) return DType::f32;
  const json::Value config = parsed(companions.config);
  for (const char* key : {"dtype", "torch_dtype"})
    if (const json::Value* type = config.find(key); type != nullptr && type->text() != nullptr)
      return *type->text() == "bfloat16" ? DType::bf16 : DType::f32;
  return DType::f32;
}

std::vector<std::int64_t> end_tokens(const Companions& companions) {
  const std::string* generation = companions.find(generation_config_name);
  for (const auto& [name, text] : {std::pair(generation_config_name, generation), std::pair(config_name, &companions.config)}) {
    if (text == nullptr || text->empty()) continue;
    const json::Value config = json::parse({.text = *text, .file = name, .limits = config_limits});
    if (auto ids = tokenizer::end_ids(config, name); !ids.empty()) return ids;
  }
  return {};
}

std::string dropout_of(const Companions& companions) {
  if (companions.config.empty()) return "";
  const json::Value value = parsed(companions.config);
  const json::Fields config(value, config_name);
  std::string out;
  for (const char* key : {"attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"})
    if (const double p = config.number_or(key, 0, 0, 1); p > 0) out += octet::format("{}{} = {}", out.empty() ? "" : ", ", key, p);
  return out;
}

SpecialTokens special_tokens(const Companions& c) {
  const std::string *vocabulary = c.find("tokenizer.json"), *settings = c.find("tokenizer_config.json");
  if (vocabulary == nullptr || settings == nullptr) return {};
  const auto parse = [](const std::string& text, const char* file) {
    return with_remedy("restore the tokenizer's files in the token folder",
                       [&] { return json::parse({.text = text, .file = file, .limits = tokenizer_limits}); });
  };
  const json::Value all = parse(*vocabulary, "tokenizer.json"), named = parse(*settings, "tokenizer_config.json");
  return {id_of(all, tokenizer::special_token(named, "bos_token")), id_of(all, tokenizer::special_token(named, "eos_token"))};
}

}  // namespace octet::models

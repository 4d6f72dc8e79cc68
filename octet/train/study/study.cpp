#include "octet/train/study/study.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/base/new_file.hpp"
#include "octet/base/path.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/study/first_gradient.hpp"
#include "octet/train/run/folder/foreign_folder.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/folder/run_folder.hpp"

namespace octet::train {
namespace {
namespace fs = std::filesystem;

constexpr const char* remedy = "restore it from a copy, or begin a new comparison without --resume";

StudyConfig read_study(const std::string& path) {
  StudyConfig config;
  config::Origins origins;
  try {
    origins = config::read_toml_file(path, config);
  } catch (const ConfigError& e) {
    throw ConfigError(format("{}; {}", e.what(), remedy));
  }
  // They come last: a file that was cut off lacks one of them.
  for (const config::FieldText& field : config::describe(config))
    if (field.key.starts_with("compare.") && !origins.contains(field.key))
      throw ConfigError(
          format("{}: `{}` is missing: the file was cut off or is of another version of octet; {}", printable(path), field.key, remedy));
  try {
    config.runs();
  } catch (const ConfigError& e) {
    throw ConfigError(format("{}: {}; {}", printable(path), e.what(), remedy));
  }
  return config;
}

void remove_whole(const std::string& path) {
  std::error_code reason;
  fs::remove_all(path, reason);
  if (reason) log::warn("cannot remove {}: {}", printable(path), reason.message());
}

}  // namespace

RunConfig comparable_defaults() {
  RunConfig c;
  c.optim.learning_rate = 1e-3, c.optim.schedule.final_ratio = 0, c.train.eval_tokens = 32768;
  return c;
}

void CompareConfig::fields(config::FieldVisitor& v) {
  v.field("baseline", baseline, "arm that the others are measured against: a recipe, or the name of an arm");
  v.field("recipes", recipes, "arms that differ from the baseline by recipe alone");
  v.field("arms", arms, "other arms, each \"name: key=value, key=value\"");
  v.field("seeds", seeds, "runs of each arm, each with another seed", {.at_least = 1, .at_most = 100});
  v.field("twins", twins, "twins of the baseline for each seed: first weights changed in their last bit",
          {.at_least = 0, .at_most = telemetry::most_twins});
  v.field("tolerance", tolerance, "gap in loss that passes, as a fraction", {.at_least = 0});
  v.field("text", text, "fingerprint of the dataset");
}

void StudyConfig::fields(config::FieldVisitor& v) {
  run.fields(v);
  v.section("compare", compare, "arms, seeds and tolerance");
  v.idle("checkpoint.keep", true, "a comparison keeps the newest checkpoint alone");
}

std::vector<Arm> StudyConfig::arms() const {
  std::vector<Arm> named, out;
  for (const auto& text : compare.arms) named.push_back(parse_arm(text));
  const auto own = std::find_if(named.begin(), named.end(), [&](const Arm& arm) { return arm.name == compare.baseline; });
  out.push_back(own != named.end() ? *own : parse_arm(compare.baseline));
  const auto add = [&](const Arm& arm, const char* option) {
    if (std::any_of(out.begin(), out.end(), [&](const Arm& other) { return other.name == arm.name; }))
      throw ConfigError(format("{} names {} twice; leave one out", option, arm.name));
    out.push_back(arm);
  };
  for (const auto& recipe : compare.recipes)
    if (const Arm arm = parse_arm(recipe); arm.name != compare.baseline) add(arm, "--recipes");
  for (auto arm = named.begin(); arm != named.end(); ++arm)
    if (arm != own) add(*arm, "--arm");
  return out;
}

std::vector<StudyRun> StudyConfig::runs() const {
  const std::vector<Arm> all = arms();
  for (const Arm& arm : all) with_arm(run, arm);
  if (run.seed > std::numeric_limits<std::int64_t>::max() - compare.seeds)
    throw ConfigError(format("seed = {}: --seeds {} counts from there beyond 64 bits; choose a smaller one", run.seed, compare.seeds));
  std::vector<StudyRun> out;
  for (std::int64_t seed = run.seed; seed < run.seed + compare.seeds; ++seed) {
    const std::string end = compare.seeds > 1 ? format("-seed{}", seed) : "";
    out.push_back({all[0].name, seed, 0, all[0].name + end});
    for (std::int64_t twin = 1; twin <= compare.twins; ++twin)
      out.push_back({all[0].name, seed, twin, format("{}-twin{}{}", all[0].name, twin, end)});
    for (std::size_t i = 1; i < all.size(); ++i) out.push_back({all[i].name, seed, 0, all[i].name + end});
  }
  std::set<std::string> names;
  for (const StudyRun& r : out)
    if (!names.insert(r.name).second) throw ConfigError(format("two runs would have the folder {}; give an arm another name", r.name));
  return out;
}

RunConfig StudyConfig::config_of(const StudyRun& r) const {
  const std::vector<Arm> all = arms();
  const auto arm = std::find_if(all.begin(), all.end(), [&](const Arm& a) { return a.name == r.arm; });
  check(arm != all.end(), "the study has no arm {}", r.arm);
  RunConfig c = with_arm(run, *arm);
  c.seed = r.seed, c.name = r.name, c.checkpoint.keep = 1;
  return c;
}

Study Study::begin(const StudyConfig& config) {
  Study study(make_run_folder(config.run.output, config.run.name.empty() ? "compare" : config.run.name), config);
  study.held_ = HeldFolder(study.folder_);
  write_own_file(study.folder_ + "/" + file_name, config::to_toml(config));
  return study;
}

Study Study::attend(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (!is_folder(folder)) throw ConfigError(format("--resume: there is no folder {}; check the path", printable(folder)));
  const std::string path = folder + "/" + file_name;
  if (!exists(path))
    throw ConfigError(
        format("--resume: there is no {}, so {} is no comparison's folder; name that of one, or resume a run by octet train --resume",
               printable(path), printable(folder)));
  require_no_links(folder);
  StudyConfig config = read_study(path);
  if (config.run.alerts.enabled && !config.run.alerts.command.empty()) require_own_command(folder, path, config.run.alerts.command);
  return Study(std::move(folder), std::move(config));
}

void Study::hold() {
  held_ = HeldFolder(folder_);
  remove_abandoned(folder_);
}

RunConfig Study::config_of(const StudyRun& run) const {
  RunConfig c = config_.config_of(run);
  c.output = folder_;
  return c;
}

StudyRun Study::baseline_of(const StudyRun& run) const {
  for (const StudyRun& other : config_.runs())
    if (other.seed == run.seed && is_baseline(other)) return other;
  throw ContractError(format("seed {} is none of the study's", run.seed));
}

bool Study::has_begun(const StudyRun& run) const { return exists(folder_of(run)); }

bool Study::is_over(const StudyRun& run) const {
  const std::string path = folder_of(run) + "/run.json";
  if (!exists(path)) return false;
  const telemetry::RunState state = telemetry::read_run_facts(path).state;
  return state == telemetry::RunState::finished || state == telemetry::RunState::diverged;
}

void Study::clear(const StudyRun& run) const {
  remove_whole(checkpoint_folder(folder_of(run)));
  const std::vector<StudyRun> all = config_.runs();
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const StudyRun& other) { return other.seed == run.seed; });
  if (last->name == run.name) remove_whole(first_gradient_file(folder_of(baseline_of(run))));
}

}  // namespace octet::train

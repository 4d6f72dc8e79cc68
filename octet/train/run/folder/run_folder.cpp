#include "octet/train/run/folder/run_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>

#include "octet/base/folder.hpp"
#include "octet/base/log.hpp"
#include "octet/config/write.hpp"
#include "octet/data/dataset.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/base/path.hpp"
#include "octet/base/wrapped.hpp"
#include "octet/io/new_folder.hpp"
#include "octet/machine/machine.hpp"
#include "octet/models/kept_tensors.hpp"
#include "octet/train/run/dry_run/planned_work.hpp"

namespace octet::train {
namespace {

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

std::string make_run_folder(const std::string& output, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with(".") || printable(name, name.size()) != name)
    throw ConfigError(
        format("name = \"{}\": a run's name is that of a folder, without \"/\", without control characters and not starting with a dot",
               printable(name)));
  const auto refuse = [](const std::string& folder, int reason) {
    throw IoError(format("cannot make the folder {}: {}; choose another with --set output=FOLDER", printable(folder),
                         std::generic_category().message(reason)));
  };
  if (const int reason = make_folders(output)) refuse(output, reason);
  for (int i = 1;; ++i) {
    const std::string folder = output + "/" + name + (i == 1 ? "" : format("-{}", i));
    const int reason = make_folder(folder);
    if (reason == 0 && i > 1) log::info("the folder {}/{} exists already: this one is {}", output, name, folder);
    if (reason == 0) return folder;
    if (reason != EEXIST) refuse(folder, reason);
  }
}

std::string checkpoint_folder(const std::string& run_folder) { return run_folder + "/checkpoints"; }

std::string model_folder(const std::string& run_folder) { return run_folder + "/model"; }

models::Companions companions_of(const RunConfig& config, const std::string& run_folder, const std::string& tokenizer) {
  const bool resumed = !run_folder.empty() && exists(model_folder(run_folder)), own = !resumed && config.model.init.empty();
  const std::string folder = resumed ? model_folder(run_folder) : own ? data::folder_of_data(config.data.path) : config.model.init;
  models::Companions out = models::read_companions(folder);
  if (own) out.config.clear();
  // A model's folder may have none: then its tokenizer is unknown.
  if (const std::string* source = out.find(tokenizer::file_name); own || source != nullptr)
    data::require_tokenizer_of(tokenizer, folder, source);
  return out;
}

void store_companions(const std::string& run_folder, const ModelConfig& model, const models::Companions& companions) {
  const std::string folder = model_folder(run_folder);
  if (companions.empty() || exists(folder)) return;
  io::NewFolder made(folder);
  models::write_companions(made.working(), companions);
  if (!model.init.empty()) models::store_kept_tensors(made.working(), model.shape(), companions);
  made.commit();
}

models::Companions stored_companions(models::Companions companions, const std::string& run_folder) {
  if (!companions.weights.empty()) companions.weights = models::read_companions(model_folder(run_folder)).weights;
  return companions;
}

RunConfig stored_model(RunConfig config, const std::string& run_folder) {
  if (!config.model.init.empty() && exists(model_folder(run_folder) + "/config.json")) config.model.stored = model_folder(run_folder);
  return config;
}

telemetry::MemoryUse memory_use_of(const MemoryPeak& peak) {
  telemetry::MemoryUse out;
  for (std::size_t c = 0; c < categories; ++c)
    if (peak.by_category[c] != 0) out.categories.push_back({std::string(name(Category(c))), std::int64_t(peak.by_category[c])});
  out.peak = std::int64_t(peak.total);
  return out;
}

telemetry::RanksFacts ranks_facts_of(const RunConfig& c, const DryRun& dry) {
  telemetry::RanksFacts out{
      .wanted = c.ranks.data, .started = c.ranks.all(), .shared_scales = dry.shared_scales, .planned = promised_part(dry.step)};
  if (out.started > 1) out.gradients = parallel::name(parallel::wire_of(c.comm.gradients, c.optim.storage().gradients));
  for (std::size_t i = 0; i < dry.sent.size(); ++i)
    if (dry.sent[i].calls > 0) out.sent.push_back({std::string(name(comm::Collective(i))), dry.sent[i].calls, dry.sent[i].bytes});
  return out;
}

telemetry::RunFacts facts_of(const RunConfig& c, const models::ModelShape& s, const DryRun& dry) {
  telemetry::RunFacts f;
  f.recipe = c.recipe.recipe, f.name = c.name.empty() ? f.recipe : c.name, f.seed = c.seed;
  f.model = {s.family, c.model.name(), dry.parameters, s.layers,     s.width,
             s.heads,  s.kv_heads,     s.hidden,       s.vocabulary, c.data.sequence_length};
  const Device device = machine::device_named(c.device);
  const machine::MatmulLimit limit = machine::matmul_limit(device);
  f.machine = {machine::device_name(device), cpu::threads(), to_text(limit.type), limit.flops_per_second};
  for (const auto& row : dry.plan)
    f.plan.push_back(
        {row.path, row.precision, row.why, row.out ? std::vector<std::int64_t>{row.out, row.in} : std::vector<std::int64_t>{}});
  for (const auto& slot : dry.quantizers)
    f.quantizers.push_back({slot.path, std::string(name(slot.operand)), to_text(slot.format), to_text(slot.block)});
  f.memory = memory_use_of(dry.memory);
  f.ranks = ranks_facts_of(c, dry);
  if (scaling::names_eight_bits(c.recipe)) f.eight_bit_share = dry.step.fp8_flops / std::max(dry.step.gemm_flops, 1.0);
  f.flops_per_step = dry.step.flops, f.tokens_per_step = c.tokens_per_step(), f.steps = c.steps();
  f.started = now_utc();
  f.config_json = config::to_json_text(c);
  return f;
}

std::string plan_text(const std::vector<scaling::PlanRow>& rows) {
  struct Line {
    std::string pattern, path, precision, why;  // path: of the first block
    int count;
  };
  std::vector<Line> lines;
  for (const auto& row : rows) {
    const std::string pattern = scaling::pattern_of(row.path);
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const Line& l) { return l.pattern == pattern && l.precision == row.precision && l.why == row.why; });
    if (same != lines.end()) ++same->count;
    else lines.push_back({pattern, row.path, row.precision, row.why, 1});
  }
  constexpr std::size_t columns = 80;
  std::size_t width = 0;
  for (auto& l : lines) {
    if (l.count > 1) l.path = format("{} ({})", l.pattern, l.count);
    width = std::max(width, l.path.size());
  }
  std::string out, above;
  for (const auto& l : lines) {
    const std::string text = format("{} ({})", l.precision, l.why);
    out += "  " + l.path + std::string(width - l.path.size() + 2, ' ') +
           wrapped(text == above && text.size() > 40 ? "the same" : text, width + 4, columns);
    above = text;
  }
  return out;
}

}  // namespace octet::train

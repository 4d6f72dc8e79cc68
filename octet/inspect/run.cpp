#include "octet/inspect/run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "octet/base/aligned.hpp"
#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/inspect/tensors.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/checkpoint/store.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::inspect {
namespace {
namespace fs = std::filesystem;

std::string facts_text(const std::string& folder, const telemetry::RunRecord& run) {
  const telemetry::RunFacts& f = run.facts;
  std::string out = format("run        {}: {}, recipe {}, {}, began {}\n", printable(folder), printable(f.name), printable(f.recipe),
                           f.state, printable(f.started));
  out += format("model      {} {}, {} parameters, {} layers, width {}, vocabulary {}, sequences of {}\n", printable(f.model.family),
                printable(f.model.size), grouped(f.model.parameters), f.model.layers, f.model.width, grouped(f.model.vocabulary),
                grouped(f.model.context));
  out +=
      format("machine    {}, {} threads; peak memory {}\n", printable(f.machine.cpu), f.machine.threads, bytes_text(double(f.memory.peak)));
  return out;
}

std::string configuration_text(const std::string& folder) {
  const std::string path = folder + "/config.toml";
  if (!exists(path)) return "";
  train::RunConfig plain, config;
  config::read_toml_file(path, config, config::Written::by_program);
  std::string out;
  for (const config::Difference& d : config::differences(plain, config))
    out += format("{}{} = {}\n", out.empty() ? "set        " : "           ", d.key, printable(d.b));
  return out;
}

std::string progress_text(const telemetry::RunRecord& run) {
  if (run.steps.empty()) return "progress   no step yet\n";
  const telemetry::StepEvent& last = run.steps.back();
  const std::string of = run.facts.steps > 0 ? format(" of {}", grouped(run.facts.steps)) : "";
  std::string out = format("progress   step {}{}, {} tokens in {} s\n", grouped(last.step), of, grouped(last.tokens), fixed(last.time, 1));
  out += format("last step  loss {}, gradient norm {}, learning rate {}, {} tokens/s{}\n", fixed(last.loss, 4, "-"),
                fixed(last.grad_norm, 4, "-"), last.learning_rate, grouped(std::llround(last.tokens_per_second)),
                last.skipped ? ", skipped" : "");
  if (!run.evals.empty())
    out += format("last eval  loss {} after step {}, over {} {}\n", fixed(run.evals.back().loss, 4, "-"), run.evals.back().step,
                  grouped(run.evals.back().tokens), run.evals.back().preferences.known() ? "pairs" : "tokens");
  const auto skipped = std::count_if(run.steps.begin(), run.steps.end(), [](const telemetry::StepEvent& e) { return e.skipped; });
  out += format("incidents  {}, {} steps skipped{}\n", run.incidents.size() + std::size_t(run.incidents_left_out), skipped,
                run.incidents.empty() ? "" : "; the last: " + printable(run.incidents.back().text));
  out += format("alerts     {}{}\n", run.alerts.size() + std::size_t(run.alerts_left_out),
                run.alerts.empty() ? ""
                                   : format("; the last: step {} {}: {}", run.alerts.back().step, run.alerts.back().rule,
                                            printable(run.alerts.back().text)));
  if (run.end) out += format("end        {}\n", printable(run.end->reason));
  if (run.torn) out += "           the last line of metrics.jsonl was cut off\n";
  return out;
}

std::string quantizers_text(const telemetry::RunRecord& run) {
  if (run.facts.quantizers.empty() || run.health.empty()) return "";
  const telemetry::HealthEvent& h = run.health.back();
  TextTable table{{"quantizer", "operand", "format", "block", "headroom [bits]", "saturated", "flushed", "SQNR [dB]", "not finite"}};
  const bool blocks = !h.scale_deviation.empty();
  if (blocks) table[0].insert(table[0].end(), {"scales [octaves]", "lossy blocks"});
  const auto shown = [](const std::vector<float>& list, std::size_t i) { return i < list.size() ? double(list[i]) : NAN; };
  for (std::size_t i = 0; i < run.facts.quantizers.size(); ++i) {
    const telemetry::QuantizerFacts& q = run.facts.quantizers[i];
    table.push_back({printable(q.path), printable(q.operand), printable(q.format), printable(q.block), fixed(h.headroom_bits[i], 2, "-"),
                     fixed(100 * h.saturated[i], 3, "-") + "%", fixed(100 * h.flushed[i], 3, "-") + "%", fixed(h.sqnr_db[i], 1, "-"),
                     grouped(h.nonfinite[i])});
    if (blocks)
      table.back().insert(table.back().end(),
                          {fixed(shown(h.scale_deviation, i), 2, "-"), fixed(100 * shown(h.lossy_blocks, i), 3, "-") + "%"});
  }
  return format("\nquantizers at step {}\n{}", h.step, aligned(table, 4));
}

/// Bytes of the files that a manifest lists.
double bytes_of(const train::Manifest& m) {
  double bytes = 0;
  for (const auto& file : m.files) bytes += double(file.bytes);
  return bytes;
}

std::string checkpoints_text(const std::string& folder, std::string& damage) {
  const train::CheckpointStore store(train::checkpoint_folder(folder));
  TextTable table{{"checkpoint of step", "bytes", "health"}};
  for (const std::int64_t step : store.steps()) {
    try {
      table.push_back({grouped(step), bytes_text(bytes_of(store.verify(step))), "every checksum verified"});
    } catch (const Error& e) {
      table.push_back({grouped(step), "-", e.what()});
      if (damage.empty()) damage = e.what();
    }
  }
  return table.size() == 1 ? "\nno checkpoints\n" : "\n" + aligned(table, 3);
}

}  // namespace

Finding run_text(const std::string& folder) {
  const telemetry::RunRecord run = telemetry::read_run(folder);
  Finding out;
  out.text = facts_text(folder, run) + configuration_text(folder) + progress_text(run) + quantizers_text(run) +
             checkpoints_text(folder, out.damage);
  return out;
}

std::string checkpoint_text(const std::string& folder) {
  const fs::path path = fs::path(folder + "/").lexically_normal().parent_path();
  const train::CheckpointStore store(path.has_parent_path() ? path.parent_path().string() : ".");
  const auto steps = store.steps();
  const auto step =
      std::find_if(steps.begin(), steps.end(), [&](std::int64_t s) { return fs::path(store.path(s)).filename() == path.filename(); });
  if (step == steps.end())
    throw ConfigError(format("{}: the folder of a checkpoint is named step- and nine digits; rename it", printable(folder)));
  const train::Manifest m = store.verify(*step);
  std::string out = format("checkpoint {}: step {}, {}\n", printable(folder), grouped(m.step), bytes_text(bytes_of(m)));
  out += format("dataset    fingerprint {}\n", printable(m.text));
  for (const auto& file : m.files)
    out += format("file       {}, {}, XXH3 {} verified\n", printable(file.name), bytes_text(double(file.bytes)), file.checksum);
  std::vector<io::SafetensorsFile> files;
  for (const auto& file : m.files) files.push_back(io::SafetensorsFile::open(store.path(*step) + "/" + file.name, io::Link::refuse));
  std::vector<const io::SafetensorsFile*> all;
  for (const auto& file : files) all.push_back(&file);
  return out + "\n" + tensors_text(all);
}

}  // namespace octet::inspect

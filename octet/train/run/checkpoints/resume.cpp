#include "octet/train/run/checkpoints/resume.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "octet/base/host_name.hpp"
#include "octet/base/log.hpp"
#include "octet/config/attributes.hpp"
#include "octet/config/write.hpp"
#include "octet/health/text_state.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/checkpoint/state_files.hpp"

namespace octet::train {
namespace {

constexpr const char* new_run = "start a new run without --resume";

std::int64_t ranks_of(const RunConfig& c) { return c.ranks.sequence_groups(); }

// Numbers of ranks among which n sequences can be divided.
std::string divisors_text(std::int64_t n) {
  std::vector<std::string> divisors;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(n, 1024); ++d)
    if (n % d == 0) divisors.push_back(to_text(d));
  return joined(divisors);
}

// How `now` can have as many sequences per step: by train.accumulate alone, or by both keys.
std::string split_text(const RunConfig& now, std::int64_t sequences) {
  const auto split = split_of(sequences, ranks_of(now), now.train.batch);
  if (!split) return format("{} sequences need {} ranks", sequences, divisors_text(sequences));
  if (split->batch == now.train.batch) return format("set train.accumulate = {}", split->accumulate);
  return format("set train.batch = {} and train.accumulate = {}", split->batch, split->accumulate);
}

// Another number of ranks may divide a step otherwise, and has the same sequences in it.
void require_same_step(const RunConfig& then, const RunConfig& now) {
  const std::int64_t before = sequences_per_step(then), after = sequences_per_step(now);
  if (before == after) return;
  throw ConfigError(
      format("ranks.data = {} (it was {}): a resumed run keeps its {} sequences per step, and {} ranks x train.batch = {} x "
             "train.accumulate = {} are {}; {}",
             ranks_of(now), ranks_of(then), before, ranks_of(now), now.train.batch, now.train.accumulate, after, split_text(now, before)));
}

}  // namespace

std::int64_t sequences_per_step(const RunConfig& c) { return ranks_of(c) * c.train.batch * c.train.accumulate; }

std::optional<StepSplit> split_of(std::int64_t sequences, std::int64_t ranks, std::int64_t most_batch) {
  if (sequences % ranks != 0) return {};
  const std::int64_t each = sequences / ranks;
  std::int64_t batch = std::min(most_batch, each);
  while (each % batch != 0) --batch;
  return StepSplit{batch, each / batch};
}

RunConfig config_of(const Manifest& manifest, const std::string& checkpoint) {
  RunConfig out;
  try {
    config::read_toml(manifest.config, format("{}/{}: config", checkpoint, Manifest::file_name), out, config::Written::by_program);
  } catch (const ConfigError& e) {
    throw DataError(format("{}; the checkpoint is of another version of octet: {}", e.what(), new_run));
  }
  return out;
}

namespace {

// "" where an earlier version wrote the checkpoint, and a step that was stopped could not tell.
std::string recipe_in(const StateFiles& files, const RunConfig& then) {
  const auto found = files.find("run.final_precision.on");
  std::int64_t on = 0;
  if (!found || found->bytes.size() != sizeof on) return "";
  std::memcpy(&on, found->bytes.data(), sizeof on);
  return on == 0 ? then.recipe.recipe : scaling::has_final_part(then.recipe) ? then.recipe.final_recipe : "";
}

std::vector<std::string> safer_layers_in(const StateFiles& files) {
  const auto found = files.find("recovery.safer");
  if (!found) return {};
  std::vector<double> bytes(found->bytes.size() / sizeof(double));
  if (!bytes.empty()) std::memcpy(bytes.data(), found->bytes.data(), bytes.size() * sizeof(double));
  return health::texts_of(bytes);
}

}  // namespace

PrecisionNow precision_of(const Manifest& manifest, const std::string& checkpoint) {
  const RunConfig then = config_of(manifest, checkpoint);
  const StateFiles files(checkpoint, manifest);
  const std::string recipe = recipe_in(files, then);
  return {recipe.empty() ? recipe_of_step(then, manifest.step) : recipe, safer_layers_in(files)};
}

void require_same_run(const RunConfig& now, const std::string& text, const Manifest& manifest, const std::string& checkpoint) {
  const RunConfig then = config_of(manifest, checkpoint);
  std::vector<std::string> changeable = config::keys_that_may_change(now);
  if (ranks_of(then) != ranks_of(now)) {
    require_same_step(then, now);
    changeable.insert(changeable.end(), {"train.batch", "train.accumulate"});
  }
  std::string wrong;
  for (const config::Difference& d : config::differences(then, now))
    if (std::find(changeable.begin(), changeable.end(), d.key) == changeable.end())
      wrong += format("{}{} = {} (it was {})", wrong.empty() ? "" : ", ", d.key, d.b, d.a);
  if (!wrong.empty())
    throw ConfigError(format("a resumed run cannot change {}; leave that out, or {} (docs/checkpoints.md lists the keys that may change)",
                             wrong, new_run));
  if (text != manifest.text)
    throw DataError(
        format("data.path = \"{}\" holds another text than the one {} was trained on, or data.mix has other texts or shares; name "
               "the datasets that the run began with",
               printable(now.data.path), printable(checkpoint)));
}

namespace {

std::vector<std::int64_t> steps_before(const CheckpointStore& store, std::int64_t before) {
  std::vector<std::int64_t> steps = store.steps();
  std::erase_if(steps, [&](std::int64_t step) { return step >= before; });
  return steps;
}

// The newest of `steps`, which rise, in which fault_of(step) finds none.
template <class FaultOf>
std::optional<std::int64_t> newest_without_fault(const std::vector<std::int64_t>& steps, std::vector<std::string>* damaged,
                                                 const FaultOf& fault_of) {
  std::vector<std::string> wrong;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (const std::string fault = fault_of(*step); !fault.empty()) {
      wrong.push_back(format("the checkpoint of step {} cannot be used: {}", *step, fault));
      continue;
    }
    for (const auto& sentence : wrong) log::warn("{}", sentence);
    if (damaged != nullptr) *damaged = wrong;
    return *step;
  }
  if (steps.empty()) return std::nullopt;
  throw DataError(format("{}{}; restore it from a copy, or {}",
                         steps.size() == 1 ? "" : format("none of the {} checkpoints of this run is intact; ", steps.size()), wrong.front(),
                         new_run));
}

// The text of an Error of f(), or "".
template <class F>
std::string error_text(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::vector<std::int64_t> steps_of_first(Stream& stream, comm::Communicator& ranks, const CheckpointStore& store, std::int64_t before) {
  std::vector<std::int64_t> own = steps_before(store, before), out;
  const std::int64_t count = parallel::of_first(stream, ranks, std::int64_t(own.size()));
  own.resize(std::size_t(count));
  for (const std::int64_t step : own) out.push_back(parallel::of_first(stream, ranks, step));
  return out;
}

// Of the first rank that finds one in its share of a checkpoint's files.
std::string fault_of_any(Stream& stream, comm::Communicator& ranks, const CheckpointStore& store, std::int64_t step) {
  std::string own;
  parallel::long_work(stream, ranks, [&] {
    own = error_text([&] {
      const Manifest manifest = store.manifest(step);
      for (std::size_t i = std::size_t(ranks.rank()); i < manifest.files.size(); i += std::size_t(ranks.size()))
        store.verify_file(step, manifest.files[i]);
    });
  });
  if (!own.empty() && ranks.rank() > 0) own = format("rank {} on {}: {}", ranks.rank(), host_name(), own);
  for (const std::string& fault : parallel::gathered(stream, ranks, own))
    if (!fault.empty()) return fault;
  return "";
}

}  // namespace

std::optional<Manifest> newest_good(const CheckpointStore& store, std::vector<std::string>* damaged, std::int64_t before) {
  Manifest good;
  const auto step = newest_without_fault(steps_before(store, before), damaged,
                                         [&](std::int64_t candidate) { return error_text([&] { good = store.verify(candidate); }); });
  return step ? std::optional(good) : std::nullopt;
}

std::optional<Manifest> newest_good(Stream& stream, comm::Communicator& ranks, const CheckpointStore& store,
                                    std::vector<std::string>* damaged, std::int64_t before) {
  const auto step = newest_without_fault(steps_of_first(stream, ranks, store, before), damaged,
                                         [&](std::int64_t candidate) { return fault_of_any(stream, ranks, store, candidate); });
  return step ? std::optional(store.manifest(*step)) : std::nullopt;
}

std::string difference_of(const telemetry::MachineFacts& before, const telemetry::MachineFacts& now) {
  std::string out;
  const auto compare = [&](std::string_view what, const auto& a, const auto& b) {
    if (a != b) out += format("{}{} {} instead of {}", out.empty() ? "" : ", ", what, b, a);
  };
  compare("processor", printable(before.cpu), printable(now.cpu));
  compare("threads", before.threads, now.threads);
  compare("GEMMs compute in", printable(before.gemm_compute), printable(now.gemm_compute));
  return out.empty() ? "" : format("the run resumes on another machine: {}; sums are rounded differently from here on", out);
}

std::string last_run_folder(const RunConfig& c) {
  const std::string base = c.output + "/" + (c.name.empty() ? c.recipe.recipe : c.name);
  std::string last;
  std::error_code ignored;
  for (int i = 1;; ++i) {
    const std::string folder = base + (i == 1 ? "" : format("-{}", i));
    if (!std::filesystem::is_directory(folder, ignored)) break;
    last = folder;
  }
  if (last.empty())
    throw ConfigError(format("--resume: there is no run {}; name the run's folder, or leave --resume out to begin one", printable(base)));
  return last;
}

}  // namespace octet::train

#include "octet/train/run/checkpoints/run_checkpoints.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <sstream>

#include "octet/base/clock.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/log.hpp"
#include "octet/config/write.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/run/folder/gemm_algorithms_file.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/ranks/stop.hpp"

namespace octet::train {
namespace {

std::string text_of(const std::vector<Restore::Conversion>& conversions, std::int64_t step) {
  std::string out;
  for (const auto& c : conversions)
    out += format("{}{} tensors from {} to {} ({} values)", out.empty() ? "" : ", ", c.variables, c.from, c.to, grouped(c.values));
  return out.empty() ? "" : format("the checkpoint of step {} stores values otherwise than this run; converted {}", step, out);
}

// A number of the state, or none. Its type is checked where its owner reads it.
std::optional<std::int64_t> number_in(const StateFiles& files, std::string_view name) {
  const auto tensor = files.find(name);
  std::int64_t x = 0;
  if (!tensor || tensor->bytes.size() != sizeof x) return {};
  std::memcpy(&x, tensor->bytes.data(), sizeof x);
  return x;
}

// An altered state must not cut the run's record, or continue at another step than its name says.
void require_own_step(const StateFiles& files, std::int64_t step, telemetry::MetricsWriter& metrics) {
  const auto refuse = [&](const char* name, std::int64_t value, const std::string& leads_to) {
    throw DataError(
        format("{}: {} = {} leads to {}, and the checkpoint is of step {}; restore it from a copy, or start a new run without "
               "--resume",
               printable(files.path()), name, value, leads_to, step));
  };
  if (const auto own = number_in(files, "run.step"); own && *own != step) refuse("run.step", *own, format("step {}", *own));
  const auto bytes = number_in(files, "metrics.bytes");
  const auto last = bytes ? metrics.last_step(*bytes) : std::nullopt;
  if (last && *last != step) refuse("metrics.bytes", *bytes, format("step {} of metrics.jsonl", *last));
}

// As one rank tells it to the others.
std::string failure_text(const std::string& error) { return format("!{}: {}", host_name(), error); }

}  // namespace

RunCheckpoints::RunCheckpoints(const std::string& folder, const HeldFolder& held, const RunConfig& config, const std::string& text,
                               StateOfRun& run)
    : folder_(folder),
      held_(held),
      config_(config.checkpoint),
      written_config_(config::to_toml(config)),
      text_(text),
      run_(run),
      store_(checkpoint_folder(folder)) {}

void RunCheckpoints::start_clock() { last_save_ = monotonic_seconds(); }

std::string RunCheckpoints::restore(const Manifest& manifest) {
  std::string converted = read_state(manifest, [this](StateVisitor& v) { run_.visit_state(v); });
  replay_gemm_algorithms(folder_, stream().device());
  log::info("resumes after step {}, from {}", manifest.step, store_.path(manifest.step));
  return converted;
}

std::string RunCheckpoints::read_state(const Manifest& manifest, const std::function<void(StateVisitor&)>& state) {
  std::string converted;
  parallel::long_work(stream().device(), ranks(), [&] {
    const StateFiles files(store_.path(manifest.step), manifest);
    require_own_step(files, manifest.step, run_.recorder.metrics());
    for (const auto mode : {Restore::Mode::check, Restore::Mode::write}) {
      Restore visitor(stream(), files, mode);
      state(visitor);
      visitor.finish();
      converted = text_of(visitor.conversions(), manifest.step);
    }
  });
  saved_step_ = manifest.step;
  return converted;
}

RunCheckpoints::Found RunCheckpoints::newest_before(std::int64_t step) {
  finish();
  try {
    if (const auto good = newest_good(stream(), ranks(), store_, nullptr, step)) return {.step = good->step};
  } catch (const DataError& e) {
    return {.why = e.what()};
  }
  return {.why = format("there is no checkpoint of a step before {}", step)};
}

void RunCheckpoints::return_to(std::int64_t step, const std::function<void(StateVisitor&)>& part) {
  read_state(store_.manifest(step), part);
  // No rank reads any more.
  parallel::work_of_first(stream(), ranks(), [&] { store_.forget_after(step); });
}

bool RunCheckpoints::due(std::int64_t step) {
  report();
  if (saved_step_ == step) return false;
  if (config_.every > 0 && step > 0 && step % config_.every == 0) due_ = true;
  if (config_.minutes > 0 && monotonic_seconds() - last_save_ >= 60 * config_.minutes) due_ = true;
  if (take_save_request()) due_ = true;
  return due_;
}

void RunCheckpoints::save(std::int64_t step) {
  due_ = false, last_save_ = monotonic_seconds();
  if (!run_.engine.engine().shards_state() && !leads()) return void(saved_step_ = step);
  Snapshot snapshot;
  std::string error = begin_snapshot(snapshot, step);
  if (run_.engine.engine().shards_state()) save_part(std::move(snapshot), std::move(error));
  else if (error.empty()) save_whole(std::move(snapshot));
  else not_saved(step, error);
}

Capture::What RunCheckpoints::own_part() {
  if (leads()) return Capture::What::all;
  return run_.engine.engine().saves_parts() ? Capture::What::slices : Capture::What::none;
}

bool RunCheckpoints::all_ranks(bool own) {
  const double number = own;
  const std::vector<double> all = parallel::gathered(stream(), ranks(), std::span(&number, 1));
  return std::ranges::all_of(all, [](double n) { return n != 0; });
}

void RunCheckpoints::save_whole(Snapshot snapshot) {
  saved_step_ = snapshot.step;
  auto whole = std::make_shared<Snapshot>(std::move(snapshot));
  copying_ = true;
  saver_.begin(whole->step, [this, whole] {
    complete(*whole);
    run_.recorder.metrics().make_durable();  // before the checkpoint gets its name, since the state holds its length
    store_.write(*whole);
    store_.retain(whole->step, config_.keep);
  });
}

// In the saver's thread.
void RunCheckpoints::complete(Snapshot& snapshot) {
  struct Copied {
    std::atomic<bool>& copying;
    ~Copied() { copying = false, copying.notify_all(); }
  } const copied{copying_};
  snapshot.missing->run();
}

// A text of each rank. One that begins with "!" is an error, which rank 0 reports; then there are none.
std::vector<std::string> RunCheckpoints::told_by_ranks(const std::string& own, std::int64_t step) {
  std::vector<std::string> texts = parallel::gathered(stream(), ranks(), own);
  bool whole = true;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (!texts[r].starts_with("!")) continue;
    whole = false;
    not_saved(step, format("rank {} on {}", r, texts[r].substr(1)));
  }
  return whole ? texts : std::vector<std::string>();
}

// Every rank into its own file, once all have a snapshot and there is a folder.
void RunCheckpoints::save_part(Snapshot snapshot, std::string error) {
  const std::int64_t step = snapshot.step;
  if (error.empty()) error = prepare(step);
  if (told_by_ranks(error.empty() ? "" : failure_text(error), step).empty()) return;
  saved_step_ = written_step_ = step;
  auto part = std::make_shared<Snapshot>(std::move(snapshot));
  copying_ = true;
  saver_.begin(step, [this, part] {
    complete(*part);
    own_file_ = store_.write_file(*part, ranks().rank());
  });
}

std::string RunCheckpoints::prepare(std::int64_t step) {
  if (!leads()) return "";
  try {
    store_.prepare(step);
  } catch (const IoError& e) {
    return e.what();
  }
  return "";
}

bool RunCheckpoints::commit() {
  if (written_step_ < 0) return false;
  const auto result = saver_.result();
  const std::string error = result ? result->error : "it was not written";
  const std::int64_t step = std::exchange(written_step_, -1);
  const std::vector<std::string> texts = told_by_ranks(
      error.empty() ? format("{} {} {}", own_file_.bytes, own_file_.checksum.high, own_file_.checksum.low) : failure_text(error), step);
  if (texts.empty()) saved_step_ = -1;
  if (!leads()) return true;
  if (texts.empty()) return store_.abandon(step), true;
  std::vector<Manifest::File> files;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    Manifest::File file{.name = state_file_name(int(r))};
    std::istringstream(texts[r]) >> file.bytes >> file.checksum.high >> file.checksum.low;
    files.push_back(file);
  }
  write_manifest(step, std::move(files));
  return true;
}

void RunCheckpoints::write_manifest(std::int64_t step, std::vector<Manifest::File> files) {
  saver_.begin(step, [this, step, files = std::move(files)] {
    run_.recorder.metrics().make_durable();
    store_.commit({.step = step, .config = written_config_, .text = text_, .file = nullptr}, files);
    store_.retain(step, config_.keep);
  });
}

// "", or the reason why there is none.
std::string RunCheckpoints::begin_snapshot(Snapshot& snapshot, std::int64_t step) {
  snapshot.step = step, snapshot.config = written_config_, snapshot.text = text_;
  try {
    Capture capture(stream(), own_part());
    run_.visit_state(capture);
    Snapshot taken = capture.begin();
    snapshot.file = std::move(taken.file), snapshot.bytes = taken.bytes, snapshot.missing = std::move(taken.missing);
    store_gemm_algorithms(held_, stream().device());  // now with the forms of evaluation
  } catch (const IoError& e) {
    return e.what();
  } catch (const std::bad_alloc&) {
    return "there is no memory for a copy of its state";
  }
  return "";
}

void RunCheckpoints::save_last(std::int64_t step) {
  finish();
  if (all_ranks(saved_step_ == step)) return;  // the first one alone knows that its checkpoint failed
  save(step);
  finish();
}

void RunCheckpoints::finish() {
  wait_saved();
  commit();
  wait_saved();
  report();
}

void RunCheckpoints::wait_saved() {
  parallel::until_idle(stream(), ranks(), [this] { return busy(); });
}

void RunCheckpoints::report() {
  if (written_step_ >= 0) return;  // commit() reads it
  const auto result = saver_.result();
  if (!result || result->error.empty()) return;
  saved_step_ = -1;
  not_saved(result->step, result->error);
}

void RunCheckpoints::not_saved(std::int64_t step, const std::string& why) {
  run_.recorder.warn(step, "checkpoint", format("the checkpoint of step {} was not saved, training continues: {}", step, why));
}

}  // namespace octet::train

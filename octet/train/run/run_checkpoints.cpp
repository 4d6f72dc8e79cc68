#include "octet/train/run/run_checkpoints.hpp"

#include <new>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/run/gemm_algorithms_file.hpp"
#include "octet/train/run/resume.hpp"
#include "octet/train/run/stop.hpp"

namespace octet::train {
namespace {

std::string text_of(const std::vector<Restore::Conversion>& conversions, std::int64_t step) {
  std::string out;
  for (const auto& c : conversions)
    out += format("{}{} tensors from {} to {} ({} values)", out.empty() ? "" : ", ", c.variables, c.from, c.to, grouped(c.values));
  return out.empty() ? "" : format("the checkpoint of step {} stores values otherwise than this run; converted {}", step, out);
}

}  // namespace

RunCheckpoints::RunCheckpoints(const std::string& folder, const CheckpointConfig& config, Stream& stream, Recorder& recorder,
                               Contents contents)
    : folder_(folder),
      config_(config),
      stream_(stream),
      recorder_(recorder),
      contents_(std::move(contents)),
      saver_(CheckpointStore(checkpoint_folder(folder)), config.keep, recorder.metrics()) {}

void RunCheckpoints::start_clock() { last_save_ = monotonic_seconds(); }

std::string RunCheckpoints::restore(const Manifest& manifest) {
  const std::string from = CheckpointStore(checkpoint_folder(folder_)).path(manifest.step);
  const auto file = io::SafetensorsFile::open(from + "/" + CheckpointStore::state_file, io::Link::refuse);
  std::string converted;
  for (const auto mode : {Restore::Mode::check, Restore::Mode::write}) {
    Restore visitor(stream_, file, mode);
    contents_.state(visitor);
    visitor.finish();
    converted = text_of(visitor.conversions(), manifest.step);
  }
  replay_gemm_algorithms(folder_, stream_.device());
  saved_step_ = manifest.step;
  log::info("resumes after step {}, from {}", manifest.step, from);
  return converted;
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
  if (!contents_.written) return void(saved_step_ = step);
  Snapshot snapshot;
  if (!take_snapshot(snapshot, step)) return;
  saver_.save(std::move(snapshot));
  saved_step_ = step;
}

bool RunCheckpoints::take_snapshot(Snapshot& snapshot, std::int64_t step) {
  try {
    Capture capture(stream_);
    contents_.state(capture);
    snapshot = capture.take();
    store_gemm_algorithms(folder_, stream_.device());  // now with the forms of evaluation
  } catch (const IoError& e) {
    return not_saved(step, e.what()), false;
  } catch (const std::bad_alloc&) {
    return not_saved(step, "there is no memory for a copy of its state"), false;
  }
  snapshot.step = step, snapshot.config = contents_.config, snapshot.text = contents_.text;
  return true;
}

void RunCheckpoints::save_last(std::int64_t step) {
  if (saved_step_ == step) return;
  save(step);
  finish();
}

void RunCheckpoints::finish() {
  saver_.wait();
  report();
}

void RunCheckpoints::report() {
  const auto result = saver_.result();
  if (!result || result->error.empty()) return;
  saved_step_ = -1;
  not_saved(result->step, result->error);
}

void RunCheckpoints::not_saved(std::int64_t step, const std::string& why) {
  recorder_.warn(step, "checkpoint", format("the checkpoint of step {} was not saved, training continues: {}", step, why));
}

}  // namespace octet::train

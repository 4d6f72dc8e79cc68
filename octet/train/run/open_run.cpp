#include "octet/train/run/open_run.hpp"

#include "octet/base/log.hpp"
#include "octet/base/file.hpp"
#include "octet/base/new_file.hpp"
#include "octet/base/path.hpp"
#include "octet/config/write.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/folder/run_folder.hpp"

namespace octet::train {

OpenRun::OpenRun(const RunConfig& config, telemetry::RunFacts facts, const models::Companions& companions, Resumed& resumed, Stream& stream,
                 RunRanks& ranks)
    : folder_(resumed.folder), held_(std::move(resumed.held)), facts_(std::move(facts)) {
  parallel::work_of_first(stream, ranks.all(), [&] {  // it also removes what killed writers have left
    if (folder_.empty()) begin(config);
    else go_on(resumed);
    store_companions(folder_, config.model, companions);
    write_own_file(folder_ + "/config.toml", config::to_toml(config));
    write_facts();
  });
  folder_ = parallel::of_first(stream, ranks.all(), folder_);
}

void OpenRun::begin(const RunConfig& config) {
  folder_ = make_run_folder(config.output, facts_.name);
  held_ = HeldFolder(folder_);
}

void OpenRun::go_on(Resumed& resumed) {
  CheckpointStore(checkpoint_folder(folder_)).collect_garbage();
  remove_abandoned(folder_);
  if (!exists(folder_ + "/run.json")) return;
  const telemetry::RunFacts before = telemetry::read_run_facts(folder_ + "/run.json");
  if (const std::string difference = difference_of(before.machine, facts_.machine); !difference.empty()) {
    log::warn("{}", difference);
    resumed.told.emplace_back("machine", difference);
  }
  facts_.name = before.name, facts_.arm = before.arm, facts_.twin = before.twin, facts_.started = before.started;
  facts_.baseline = before.baseline, facts_.gradient_cosine = before.gradient_cosine;
}

void OpenRun::write_facts() const {
  held_.write("run.json", [&](const std::string& path) { telemetry::write_run_facts(path, facts_); });
}

void OpenRun::watch(std::int64_t step, Recorder& recorder) {
  const bool lost = !held_.in_place();
  if (lost == lost_) return;
  lost_ = lost;
  recorder.warn(
      step, "folder",
      lost ? format("after step {} the run's folder {} is no longer there: nothing can be saved until it is put back", step, folder_)
           : format("after step {} the run's folder {} is there again", step, folder_));
}

void OpenRun::require_in_place(std::int64_t step) const {
  if (held_.in_place()) return;
  throw IoError(
      format("the run's folder {} was moved or removed while it trained, so its end after step {} was not saved; put it back, and resume "
             "from its last checkpoint with octet train --resume {}",
             printable(folder_), step, printable(folder_)));
}

}  // namespace octet::train

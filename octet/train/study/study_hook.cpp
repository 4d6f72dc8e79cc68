#include "octet/train/study/study_hook.hpp"

#include <cmath>

#include "octet/parallel/long_work.hpp"
#include "octet/train/study/first_gradient.hpp"

namespace octet::train {
namespace {

// Only where gradients have the same shapes has their cosine a meaning.
std::string folder_to_compare_with(const Study& study, const StudyRun& run) {
  if (study.is_baseline(run)) return "";
  const StudyRun baseline = study.baseline_of(run);
  return study.config_of(run).model.shape() == study.config_of(baseline).model.shape() ? study.folder_of(baseline) : "";
}

}  // namespace

StudyHook::StudyHook(const Study& study, const StudyRun& run)
    : Twin(run.seed, int(run.twin)),
      arm_(run.arm),
      baseline_(study.config().compare.baseline),
      baseline_folder_(folder_to_compare_with(study, run)),
      keeps_gradient_(study.is_baseline(run)) {}

void StudyHook::describe(telemetry::RunFacts& facts) {
  Twin::describe(facts);
  facts.arm = arm_, facts.baseline = baseline_;
  if (!baseline_folder_.empty()) facts.gradient_cosine = NAN;  // until the first step
}

void StudyHook::after(const StepResults& s) {
  if (s.step != 1 || (!keeps_gradient_ && baseline_folder_.empty())) return;
  const std::vector<float> flat = s.engine.flat_gradients();
  parallel::work_of_first(s.engine.stream, s.engine.all_ranks(), [&] {
    if (keeps_gradient_) write_first_gradient(s.run.folder(), flat);
    if (baseline_folder_.empty()) return;
    s.run.facts().gradient_cosine = cosine_with_first_gradient(baseline_folder_, flat);
    s.run.write_facts();
  });
}

}  // namespace octet::train

#pragma once

#include "octet/train/study/study.hpp"
#include "octet/train/study/twin.hpp"

namespace octet::train {

/// A run as a member of a comparison: the facts of its arm, a twin's first weights, and the gradient of its first step. The baseline
/// stores that one in its folder; others have its cosine with the baseline's in run.json.
class StudyHook final : public Twin {
 public:
  StudyHook(const Study&, const StudyRun&);

  /// Of the baseline, if its gradient has the shapes of this run's; else "".
  const std::string& baseline_folder() const { return baseline_folder_; }
  void describe(telemetry::RunFacts&) override;
  void after(const StepResults&) override;

 private:
  std::string arm_, baseline_, baseline_folder_;
  bool keeps_gradient_;
};

}  // namespace octet::train

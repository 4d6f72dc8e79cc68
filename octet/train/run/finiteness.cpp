#include "octet/train/run/finiteness.hpp"

#include <cmath>

#include "octet/train/step/nonfinite.hpp"

namespace octet::train {

bool Finiteness::of_weights() {
  const std::string parameter = nonfinite_parameter(run_.engine.engine());
  if (!parameter.empty()) end_.not_finite = format("the weights of {} are", parameter);
  return tell();
}

bool Finiteness::of_result() {
  if (!of_weights()) return false;
  if (run_.at.last_eval_step == run_.at.step && !std::isfinite(run_.at.eval_loss)) end_.not_finite = "the loss on held-out text is";
  return tell();
}

bool Finiteness::tell() {
  if (end_.not_finite.empty()) return true;
  run_.recorder.warn(run_.at.step, "nonfinite", format("after step {} {} not finite", run_.at.step, end_.not_finite));
  return false;
}

}  // namespace octet::train

#include "octet/train/run/record/progress.hpp"

#include <cmath>

namespace octet::train {

Progress::Progress() : eval_loss(NAN) {}

void Progress::visit_state(StateVisitor& v) {
  v.count("step", step), v.count("skipped", skipped), v.count("skipped_in_a_row", skipped_in_a_row);
  v.count("last_eval_step", last_eval_step, {.least = -1});
  v.state("eval_loss", eval_loss), v.state("train_seconds", train_seconds), v.state("elapsed", elapsed);
  if (v.has("last_sample")) v.section("last_sample", last_sample);              // checkpoints of earlier versions have none
  if (v.has("final_precision")) v.section("final_precision", final_precision);  // the same
  v.section("losses", losses), v.section("rates", rates);
}

}  // namespace octet::train

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Pipeline schedules as data: the actions of every stage, computed without ranks.

namespace octet::parallel {

/// The order in which a stage computes. Sources: gpipe: Huang et al. 2019. one_f_one_b: PipeDream-flush, Narayanan et al. 2021a.
/// interleaved: Narayanan et al. 2021b, section 2.2. zero_bubble: ZB-H1, Qi et al. 2023, section 2. dualpipe_v: DualPipeV of
/// github.com/deepseek-ai/DualPipe, which is DualPipe (DeepSeek-AI 2024, section 3.2.1) cut in half.
enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble, dualpipe_v };
inline constexpr Schedule schedules[] = {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble,
                                         Schedule::dualpipe_v};

/// "gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe_v".
std::string_view to_text(Schedule);
/// Throws ConfigError with the names for another word.
Schedule schedule_named(std::string_view);
/// Of all of them: "gpipe, 1f1b, ... or dualpipe_v".
std::string schedule_names();

/// Whether the second half of the parts goes back from the last stage to the first one, which then has both ends of the model.
constexpr bool folds(Schedule s) { return s == Schedule::dualpipe_v; }
/// Chunks of a stage, where `given` is 1 unless somebody chose a number.
constexpr std::int64_t chunks_of(Schedule s, std::int64_t given) { return folds(s) && given == 1 ? 2 : given; }
/// Whether a stage may have so many.
constexpr bool takes_chunks(Schedule s, std::int64_t chunks) { return s == Schedule::interleaved ? chunks > 1 : chunks == chunks_of(s, 1); }

/// The layers of a model are cut into stages * chunks consecutive parts. Part q is chunk q / stages of stage q % stages. Of a folded
/// pipeline, whose stages have two chunks, parts of the second half are on the stages in falling order.
struct PipelineShape {
  int stages = 1;
  int chunks = 1;  // parts of one stage
  int micro_batches = 1;
  bool folded = false;
  bool pairs = false;  // forwards and backwards that dualpipe_v pairs begin and end together, as where experts of ranks run beside them

  int parts() const { return stages * chunks; }
  int part(int stage, int chunk) const { return chunk * stages + (folded && chunk == 1 ? stages - 1 - stage : stage); }
  int chunk_of(int part) const { return part / stages; }
  int stage_of(int part) const { return folded && part >= stages ? 2 * stages - 1 - part : part % stages; }
  bool operator==(const PipelineShape&) const = default;
};
/// Of a schedule.
constexpr PipelineShape pipeline_shape(Schedule s, std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches) {
  return {.stages = int(stages), .chunks = int(chunks), .micro_batches = int(micro_batches), .folded = folds(s)};
}

/// Whether it exists for so many micro-batches: `interleaved` needs a multiple of the stages, dualpipe_v twice the stages.
constexpr bool takes_micro_batches(Schedule schedule, const PipelineShape& s) {
  if (schedule == Schedule::dualpipe_v) return s.micro_batches >= 2 * s.stages;
  return schedule != Schedule::interleaved || s.micro_batches % s.stages == 0;
}
/// The nearest number of micro-batches from the given one on that it takes.
constexpr std::int64_t next_micro_batches(Schedule schedule, const PipelineShape& s) {
  if (takes_micro_batches(schedule, s)) return s.micro_batches;
  return schedule == Schedule::dualpipe_v ? 2 * s.stages : (s.micro_batches + s.stages - 1) / s.stages * s.stages;
}
/// Throws ConfigError that names the rule and the nearest valid value: counts from 1 on; chunks; takes_micro_batches().
void require_valid(Schedule, const PipelineShape&);

/// One action of a stage. Transfers move the boundary tensor of one micro-batch between neighbouring parts, of two stages or of one.
struct PipelineAction {
  enum class Kind : std::uint8_t {
    forward,
    backward,         // both gradients
    input_gradient,   // the part of backward that the stage before waits for
    weight_gradient,  // the rest
    send_activation,
    receive_activation,
    send_gradient,
    receive_gradient,
    keep_activation,  // the output becomes the input of this stage's other chunk
    keep_gradient,    // the gradient of the input becomes that of the other chunk's output
  };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int chunk = 0;        // of this stage: whose input, output or gradient is computed, or moved from or into
  int peer = -1;        // of a transfer: the other stage, or the other chunk of `keep`
  bool paired = false;  // of a forward: it begins and ends together with the next action, a backward of another micro-batch

  bool computes() const { return kind <= Kind::weight_gradient; }
  bool transfers() const { return !computes() && kind < Kind::keep_activation; }  // between two stages
  bool sends() const { return kind == Kind::send_activation || kind == Kind::send_gradient; }
  bool operator==(const PipelineAction&) const = default;
};
std::string_view to_text(PipelineAction::Kind);

/// The actions of one stage, in order.
using StageActions = std::vector<PipelineAction>;

/// The actions of all stages. A pure function. Transfers of all stages follow one global order, so the schedule ends even if every send
/// blocks until its receive begins. Throws as require_valid().
std::vector<StageActions> pipeline_actions(Schedule, const PipelineShape&);

/// The same of each part after the other, forth and then back: of all micro-batches through a part before the next one. For any numbers.
std::vector<StageActions> actions_in_turn(const PipelineShape&);

/// Of one stage that has the whole model: each forward but the first is paired with the backward of the micro-batch before it.
StageActions actions_in_pairs(int micro_batches);

/// The most chunks of micro-batches for which a stage keeps activations at one time: from the forward to the end of the gradient of
/// weights. gpipe: m. one_f_one_b: min(m, p - stage). interleaved: min(m v, 2 (p - stage - 1) + (v - 1) p + 1). zero_bubble: min(m, p).
/// dualpipe_v: 2 p + 1.
int chunks_in_flight(Schedule, const PipelineShape&, int stage);
/// Of these, the most whose products of weights' gradients come later: zero_bubble all, dualpipe_v p, others none.
int chunks_deferred(Schedule, const PipelineShape&, int stage);

/// Seconds of the actions of one chunk; transfers take no time of their own.
struct PipelineCosts {
  double forward = 1;
  double input_gradient = 1, weight_gradient = 1;  // `backward` takes both
  double total() const { return forward + input_gradient + weight_gradient; }
};

/// The time in which a stage waits, divided by the time in which it computes, with equal stages and free transfers. Costs matter to
/// zero_bubble, whose sends wait for their receives, and to dualpipe_v. f, b and w are those of forward, input_gradient and
/// weight_gradient:
///
///   gpipe, one_f_one_b    (p - 1) / m
///   interleaved           (p - 1) / (v m)
///   zero_bubble           ((p - 1) max(f, b, w, f + b - w) + (m - p) |f - w|) / (m (f + b + w)), for m >= p: (p - 1) / (3 m) if f = b = w
///                         for m < p, (p - m) (f + b - max(f, b, w, f + b - w)) instead of (m - p) |f - w|
///   dualpipe_v            (p - 1) / (6 m) if f = b = w; with pairs (p - 1) (F&B + B - 3 W) / (2 m (f + b + w)) = (p - 1) / (3 m), where
///                         F&B = f + b + w and B = b + w; for other costs that of the simulation: waiting does not depend on m
double bubble_ratio(Schedule, const PipelineShape&, const PipelineCosts& = {});

}  // namespace octet::parallel

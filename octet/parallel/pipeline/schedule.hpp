#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// Pipeline schedules as data: the actions of every stage, computed without ranks.

namespace octet::parallel {

/// The order in which a stage computes. Sources: gpipe: Huang et al. 2019. one_f_one_b: PipeDream-flush, Narayanan et al. 2021a.
/// interleaved: Narayanan et al. 2021b, section 2.2. zero_bubble: ZB-H1, Qi et al. 2023, section 2.
enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble };
inline constexpr Schedule schedules[] = {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble};

/// "gpipe", "1f1b", "interleaved", "zero_bubble".
std::string_view to_text(Schedule);
/// Throws ConfigError with the names for another word.
Schedule schedule_named(std::string_view);

/// The layers of a model are cut into stages * chunks consecutive parts. Part q is chunk q / stages of stage q % stages.
struct PipelineShape {
  int stages = 1;
  int chunks = 1;  // parts of one stage; above 1 with `interleaved` only
  int micro_batches = 1;

  int parts() const { return stages * chunks; }
  int part(int stage, int chunk) const { return chunk * stages + stage; }
  bool operator==(const PipelineShape&) const = default;
};

/// Whether it exists for so many micro-batches: `interleaved` needs a multiple of the stages.
constexpr bool takes_micro_batches(Schedule schedule, const PipelineShape& s) {
  return schedule != Schedule::interleaved || s.micro_batches % s.stages == 0;
}
/// Throws ConfigError that names the rule and the nearest valid value: counts from 1 on; one chunk unless `interleaved`;
/// takes_micro_batches().
void require_valid(Schedule, const PipelineShape&);

/// One action of a stage. Transfers move the boundary tensor of one micro-batch between neighbouring parts.
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
  };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int chunk = 0;  // of this stage: whose input, output or gradient is computed or moved
  int peer = -1;  // of a transfer: the other stage

  bool computes() const { return kind <= Kind::weight_gradient; }
  bool sends() const { return kind == Kind::send_activation || kind == Kind::send_gradient; }
  bool operator==(const PipelineAction&) const = default;
};
std::string_view to_text(PipelineAction::Kind);

/// The actions of one stage, in order.
using StageActions = std::vector<PipelineAction>;

/// The actions of all stages. A pure function. Transfers of all stages follow one global order, so the schedule ends even if every send
/// blocks until its receive begins. With one stage there are no transfers between chunks. Throws as require_valid().
std::vector<StageActions> pipeline_actions(Schedule, const PipelineShape&);

/// The same of each part after the other, forth and then back: of all micro-batches through a part before the next one. For any numbers.
std::vector<StageActions> actions_in_turn(const PipelineShape&);

/// The most chunks of micro-batches for which a stage keeps activations at one time: from the forward to the end of the gradient of
/// weights. gpipe: m. one_f_one_b: min(m, p - stage). interleaved: min(m v, 2 (p - stage - 1) + (v - 1) p + 1). zero_bubble: min(m, p).
int chunks_in_flight(Schedule, const PipelineShape&, int stage);

/// Seconds of the actions of one chunk; transfers take no time of their own.
struct PipelineCosts {
  double forward = 1;
  double input_gradient = 1, weight_gradient = 1;  // `backward` takes both
  double total() const { return forward + input_gradient + weight_gradient; }
};

/// The time in which a stage waits, divided by the time in which it computes, with equal stages and free transfers. Costs matter to
/// zero_bubble alone, whose sends wait for their receives. f, b and w are those of forward, input_gradient and weight_gradient:
///
///   gpipe, one_f_one_b    (p - 1) / m
///   interleaved           (p - 1) / (v m)
///   zero_bubble           ((p - 1) max(f, b, w, f + b - w) + (m - p) |f - w|) / (m (f + b + w)), for m >= p: (p - 1) / (3 m) if f = b = w
///                         for m < p, (p - m) (f + b - max(f, b, w, f + b - w)) instead of (m - p) |f - w|
double bubble_ratio(Schedule, const PipelineShape&, const PipelineCosts& = {});

}  // namespace octet::parallel

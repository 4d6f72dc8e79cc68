#include "octet/parallel/pipeline/order.hpp"

#include <algorithm>

namespace octet::parallel {
namespace {

using Kind = PipelineAction::Kind;

StageActions gpipe(const PipelineShape& s) {
  StageActions out;
  for (int c = 0; c < s.chunks; ++c)
    for (int m = 0; m < s.micro_batches; ++m) out.push_back({Kind::forward, m, c});
  for (int c = s.chunks; c-- > 0;)
    for (int m = 0; m < s.micro_batches; ++m) out.push_back({Kind::backward, m, c});
  return out;
}

// `warm` forwards, then one forward and one backward in turn, then the remaining backwards. The i-th forward and the i-th backward are
// those of forward_at(i) and backward_at(i).
template <class ForwardAt, class BackwardAt>
StageActions in_turn(int warm, int total, const ForwardAt& forward_at, const BackwardAt& backward_at) {
  StageActions out;
  for (int i = 0; i < std::min(warm, total); ++i) out.push_back(forward_at(i));
  for (int i = 0; i < total; ++i) {
    if (i + warm < total) out.push_back(forward_at(i + warm));
    out.push_back(backward_at(i));
  }
  return out;
}

StageActions one_f_one_b(const PipelineShape& s, int stage) {
  return in_turn(
      s.stages - stage - 1, s.micro_batches,
      [](int i) {
        return PipelineAction{Kind::forward, i};
      },
      [](int i) {
        return PipelineAction{Kind::backward, i};
      });
}

// Micro-batches pass a chunk in groups of as many as there are stages, then the next chunk.
StageActions interleaved(const PipelineShape& s, int stage) {
  const int group = s.stages * s.chunks;
  const auto micro_batch = [&](int i) { return i / group * s.stages + i % s.stages; };
  const auto chunk = [&](int i) { return i % group / s.stages; };
  return in_turn(
      2 * (s.stages - stage - 1) + (s.chunks - 1) * s.stages, s.micro_batches * s.chunks,
      [&](int i) {
        return PipelineAction{Kind::forward, micro_batch(i), chunk(i)};
      },
      [&](int i) {
        return PipelineAction{Kind::backward, micro_batch(i), s.chunks - 1 - chunk(i)};
      });
}

// 1F1B in which stage i computes gradients of weights i micro-batches later than gradients of inputs. The stage before gets its gradient
// earlier, weight gradients fill the end, and no stage has more than p micro-batches in flight.
StageActions zero_bubble(const PipelineShape& s, int stage) {
  StageActions out;
  const auto add = [&](Kind kind, int micro_batch) { out.push_back({kind, micro_batch}); };
  const int warm = s.stages - stage - 1, m = s.micro_batches;
  for (int i = 0; i < std::min(warm, m); ++i) add(Kind::forward, i);
  for (int i = 0; i < m; ++i) {
    if (i + warm < m) add(Kind::forward, i + warm);
    add(Kind::input_gradient, i);
    if (i >= stage) add(Kind::weight_gradient, i - stage);
  }
  for (int i = std::max(0, m - stage); i < m; ++i) add(Kind::weight_gradient, i);
  return out;
}

// The eight phases of DualPipeV on one stage. Chunk 0 is on the way to the last stage, chunk 1 on the way back. A backward whose products
// come later is `split`; these wait in a queue.
class DualPipeV {
 public:
  DualPipeV(const PipelineShape& s, int stage) : after_(s.stages - stage - 1), pairs_(s.pairs) {
    const int before = stage, p = s.stages;
    for (int i = 0; i < 2 * after_; ++i) forward(0);
    for (int i = 0; i <= before; ++i) forward(0), forward(1);
    for (int i = 0; i < after_; ++i) split_backward(1), weights(), forward(1);
    for (int i = 0; i < s.micro_batches - 2 * p + stage + 1; ++i) {
      // The first pair of the last stage is apart: its backward is the first one, for which all stages wait.
      pair(0, 1, i > 0 || after_ > 0), pair(1, 0, true);
    }
    for (int i = 0; i < after_; ++i) backward(1), pair(1, 0, true);
    end(before + 1);
  }
  StageActions out;

 private:
  // The second half of the last backwards is split, so that the first gradients reach the stages before early.
  void end(int last) {
    const bool odd = last % 2 == 0;  // the number of the stage
    for (int i = 0; i < last; ++i) {
      const bool first = i < last / 2 || (i == last / 2 && !odd), second = i < last / 2;
      first ? backward(1) : split_backward(1);
      second ? backward(0) : split_backward(0);
    }
    for (int i = 0; i < after_; ++i) weights(), split_backward(0);
    for (int i = 0; i < last; ++i) weights();
  }
  void forward(int chunk) { out.push_back({Kind::forward, forwards_[chunk]++, chunk}); }
  void backward(int chunk) { out.push_back({Kind::backward, backwards_[chunk]++, chunk}); }
  void split_backward(int chunk) {
    later_.push_back({Kind::weight_gradient, backwards_[chunk], chunk});
    out.push_back({Kind::input_gradient, backwards_[chunk]++, chunk});
  }
  void weights() { out.push_back(later_[done_++]); }
  void pair(int forwards, int backwards, bool together) {
    forward(forwards);
    out.back().paired = together && pairs_;
    backward(backwards);
  }

  int after_;  // stages after this one
  bool pairs_;
  int forwards_[2] = {}, backwards_[2] = {};
  StageActions later_;
  std::size_t done_ = 0;
};

}  // namespace

std::vector<StageActions> compute_order(Schedule schedule, const PipelineShape& s) {
  std::vector<StageActions> out;
  for (int stage = 0; stage < s.stages; ++stage) switch (schedule) {
      case Schedule::gpipe: out.push_back(gpipe(s)); break;
      case Schedule::one_f_one_b: out.push_back(one_f_one_b(s, stage)); break;
      case Schedule::interleaved: out.push_back(interleaved(s, stage)); break;
      case Schedule::zero_bubble: out.push_back(zero_bubble(s, stage)); break;
      case Schedule::dualpipe_v: out.push_back(DualPipeV(s, stage).out); break;
    }
  return out;
}

std::vector<StageActions> order_in_turn(const PipelineShape& s) { return std::vector<StageActions>(std::size_t(s.stages), gpipe(s)); }

}  // namespace octet::parallel

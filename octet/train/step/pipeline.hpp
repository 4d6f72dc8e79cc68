#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "octet/comm/communicator.hpp"
#include "octet/data/windows.hpp"
#include "octet/models/model.hpp"
#include "octet/parallel/ranks_config.hpp"
#include "octet/parallel/transfers.hpp"
#include "octet/parallel/turns.hpp"
#include "octet/tensor/replay.hpp"
#include "octet/train/step/upload.hpp"

namespace octet::train {

/// One stage of a pipeline: the chunks of a model that this rank has, and the exchange of boundary tensors with the stages beside it.
///
///   forward of chunk q    x[q + 1] = blocks(x[q])           x[q]: [T, D], in the type of activations
///   backward              d[q] = gradient of d[q + 1]       of the same shape and type
///
/// A micro-batch in flight has slots of the region of micro-batches, each of which it gives back as soon as it can:
///
///   boundaries    from its input's arrival until its gradient leaves; the next micro-batch there waits until it has left
///   saved      activations, from its forward to the end of the gradient of its input
///   operands   of weights' gradients, from its forward to the end of these. Of micro-batches for which the schedule computes them later;
///              others have operands beside the activations
///
/// The computation of a chunk is recorded and replayed by parts (tensor/replay.hpp): forward, backward, gradients of weights. A form of it
/// is a combination of slots, since each has addresses of its own. Transfers are launched between these parts.
///
/// One stage is a pipeline of one chunk, which has all of a micro-batch before the next one begins: forward, backward and the work after
/// them are one part of a recording, and nothing travels.
///
/// A forward and a backward of different micro-batches that a schedule pairs run in turn (parallel/turns.hpp). They are of different
/// chunks, or of the one that one stage has where tensor or expert ranks take turns: then two micro-batches are in flight.
///
/// On a stage all work is in one order, and each gradient gets the sums of micro-batches in their order. So results have the bits of the
/// same micro-batches on one rank. All stages make the same calls, with batches of the same content and shape.
class Pipeline {
 public:
  /// The format in which boundary tensors travel: as they are, or as codes with a power-of-two scale per 128 values.
  using Wire = parallel::TensorWire;
  /// The model's chunks are those of this rank of `stages`, in the order of parallel::PipelineShape. All outlive this.
  Pipeline(Stream&, models::Model&, comm::Communicator& stages, parallel::Schedule, int chunks, Wire = Wire::activations,
           const SequenceMember& = {}, parallel::Turns& = parallel::apart());
  ~Pipeline() { stages_.withdraw_sends(); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// The facts of a step that hold for each of its micro-batches.
  struct Step {
    scaling::Pass pass;  // in whichever slot
    nn::LossSums sums;   // used by the last stage
    nn::LossFactor factor;
    std::function<void(int micro_batch)> before = [](int) {};   // each forward and backward of a chunk, and the gradients of its weights
    std::function<void(int micro_batch)> resumed = [](int) {};  // a pass computes on after its turn
    std::function<void()> after = [] {};                        // all of these that are in flight together
    std::function<bool()> proceeds = [] { return true; };       // asked before micro-batches of which none is in flight; false: ends
    // Gradients are exchanged: with several stages by other queues, as the last micro-batch completes them. A recorded part would wait for
    // the end of that work, and the boundary's gradient with it, so this micro-batch runs normally. With one stage the work of a
    // micro-batch depends on its place.
    bool exchanges = false;
    parallel::Turns::Piece piece = {};  // is told of each piece of passes in turn
  };
  /// Forward and backward of all micro-batches in the order of the schedule. False if a micro-batch did not begin.
  bool train(std::span<const data::Batch>, const Step&);
  /// The same of one micro-batch, one chunk after the other under every schedule.
  void train_one(const data::Batch&, const Step&);
  /// Adds the loss of a batch to `sums` on the last stage, without saved activations.
  void loss(const data::Batch&, const scaling::Pass&, const nn::LossSums& sums);
  /// models::Model::logits(), on every stage.
  void logits(const models::TokenBatch&, const scaling::Pass&, std::int64_t last, const Tensor& logits);
  Replay& recordings() { return recordings_; }
  /// Whether each micro-batch of a step is done before the next one begins.
  bool one_by_one() const { return shape_.parts() == 1 && !shape_.pairs; }

 private:
  /// The purpose of a slot.
  enum class Use : std::uint8_t { saved, boundaries, operands };
  static constexpr int uses = 3;

  using Leaving = parallel::Transfers::Begun;

  /// A micro-batch on its way through a chunk.
  struct Flight {
    std::array<int, uses> slots{-1, -1, -1};  // by use; -1: none
    std::optional<DeferredWork> later;        // the products of weights' gradients
    models::TokenBatch batch;
    Tensor in;        // empty where the chunk embeds
    Tensor boundary;  // the output until it is sent, then that output's gradient, which becomes the input's
    Tensor choices;   // of routers that all chunks count together, with both: so far, then those of all; empty where there are none
    Stored codes;     // of a boundary while it is sent, if codes travel: the output's have arrived before the gradient's are made
    Leaving output;
    Replay::Turn turn;
  };
  using Key = std::pair<int, int>;  // micro-batch, chunk

  /// The actions of this stage, and the micro-batches whose gradients of weights are computed apart from those of inputs.
  struct Course {
    parallel::StageActions actions;
    std::set<Key> deferred;
  };
  Course course_of(parallel::StageActions) const;
  parallel::StageActions actions_of(int micro_batches) const;
  int part(int chunk) const { return shape_.part(stages_.rank(), chunk); }
  bool embeds(int chunk) const { return part(chunk) == 0; }
  bool has_head(int chunk) const { return part(chunk) + 1 == shape_.parts(); }
  // Depths of further tokens that it predicts.
  std::int64_t ahead(int chunk) const { return has_head(chunk) ? model_.shape().mtp_depth : 0; }
  // The region's first slot is left to recomputed activations, which then have the same place for each micro-batch in flight.
  static Region region(Use use, int slot) { return {Lifetime::micro_batch, scaling::recomputing.keep.slot + 1 + uses * slot + int(use)}; }
  Region take(Flight&, Use);
  /// The flight ends with its last slot.
  void give_back(const Key&, Use);
  Flight& open(const Key&, const data::Batch&);
  scaling::Pass pass_of(Flight&, const Step&);
  Replay::Form form_of(const Key&, const Flight&, const Step&) const;
  Replay::Turn turn_of(const Key&, const Flight&, int micro_batches, const Step&);
  void run(const Course&, std::span<const data::Batch>, const Step&);
  bool train_whole(std::span<const data::Batch>, const Step&);
  void receive(const parallel::PipelineAction&, std::span<const data::Batch>);
  void send(const parallel::PipelineAction&, std::span<const data::Batch>);
  void compute(const parallel::PipelineAction&, const Course&, std::span<const data::Batch>, const Step&);
  void forward(const Key&, bool defers, std::span<const data::Batch>, const Step&);
  void backward(const Key&, const Step&, Stream&);
  void pair(const parallel::PipelineAction& forward, const parallel::PipelineAction& backward, const Course&, std::span<const data::Batch>,
            const Step&);
  void weight_gradient(const Key&, const Step&);
  /// f(boundaries) for each chunk of this stage, without saved activations.
  template <class F>
  void each_chunk(const models::TokenBatch&, const F& f);
  /// The boundary leaves while this stage computes.
  Leaving begin_send(const Flight& f, int to) { return transfers_.begin_send(stream_, f.boundary, f.codes, f.choices, to); }
  void send_gradient(const Key&, int to);
  /// From one chunk of this stage to another.
  void pass_on(const Flight& from, const Tensor& boundary, const Flight& to);

  Stream& stream_;
  models::Model& model_;
  comm::Communicator& stages_;
  parallel::Schedule schedule_;
  parallel::PipelineShape shape_;
  parallel::Transfers transfers_;
  SequenceMember member_;
  parallel::Turns& turns_;
  std::unique_ptr<Stream> second_;  // of the second pass of a pair
  std::map<Key, Flight> flights_;
  Replay recordings_;
  std::array<std::vector<bool>, uses> taken_;  // slots, by use
  std::map<int, Leaving> leaving_;             // gradients of inputs, by their slot of boundaries
  std::map<int, Course> courses_;              // by the number of micro-batches
};

}  // namespace octet::train

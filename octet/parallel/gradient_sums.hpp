#pragma once

#include <memory>
#include <unordered_map>

#include "octet/nn/parameters.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/parallel/ranks_config.hpp"
#include "octet/parallel/shared_scale_sum.hpp"
#include "octet/parallel/tensor_group.hpp"

namespace octet::parallel {

/// Gradients of all ranks become their sums, bucket by bucket: each as soon as backward of a step's last micro-batch has completed it.
///
///   g = sum over ranks of g           in the format of CommConfig::gradients, the same bits on every rank
///
/// Where masters are divided (nn::Share), a rank gets the sums of its part alone, and the other parts are left undefined: half of the
/// bytes. Formats with one scale per tensor give all sums in any case.
///
/// Where sums are divided, too (nn::Share::gradients), a bucket's values are exchanged in every micro-batch, and added to the sums of the
/// own part: in FP32, then rounded to their storage; 8-bit sums stochastically, see ops::accumulate. Factors mu then move per micro-batch.
///
/// Where format and storage differ, the bucket is converted in scratch; sums go back to the storage, rounded to nearest even. Vectors
/// always travel in their own type. Buckets and communicator must outlive this.
///
/// With a side queue exchanges are its work, beside backward of the next buckets. join() ends them.
class GradientSums final : public GradientListener {
 public:
  /// Listens to the gradients of all parameters. side: a side queue of the stream for exchanges, which must outlive this; or null.
  /// `copied`: sums that come first, of each bucket's own rank; or null.
  GradientSums(Stream&, Stream* side, comm::Communicator&, const nn::Parameters&, const CommConfig&, CopiedGradients* copied = nullptr);
  ~GradientSums() override;

  /// The place of a micro-batch in its step.
  struct MicroBatch {
    bool first = true, last = true;
    bool exchanges = true;  // false: gradients stay those of this rank
  };
  /// Before each micro-batch.
  void begin_micro_batch(const MicroBatch&);
  /// Then of a pipeline, whose micro-batches are in flight together: before each of their forwards and backwards. Those of the step's last
  /// micro-batch complete the gradients.
  void begin_in_flight(bool last) { completes_ = last; }
  /// After backward of each micro-batch: work put into the stream from now on finds the sums.
  void join(Stream&);
  /// After the step's last micro-batch: throws ContractError unless every bucket was summed.
  void require_done() const;

  /// All sums of this step as one row, in the order of the parameters' list. All ranks call it.
  std::vector<float> gathered_values(Stream&);

  /// Paths of the tensors whose sums have one shared scale, in the order of scale_uses(). Empty for other formats.
  std::vector<std::string> scaled_tensors() const;
  /// Of each, in the last exchange: a step has one, or one per micro-batch where sums are divided. Waits for the stream.
  std::vector<ScaleUse> scale_uses(Stream&) const;

  /// The factors mu, where there are some.
  void visit_state(StateVisitor&);

 private:
  struct Part {
    const nn::Bucket* bucket;
    Wire wire;
    std::size_t pending = 0;                 // parameters that this micro-batch has not completed
    std::unique_ptr<SharedScaleSum> shared;  // of the formats with one scale per tensor
  };
  void begin(Stream&, const Gradient&) override;
  void complete(Stream&, const Gradient&) override;
  void exchange(Stream&, Part&);
  void sum(Stream&, Part&);
  void sum_values(Stream&, Part&, const Tensor& values);
  Stored own_part(const Stored&) const;
  void sum_own_part(Stream&, const Part&, const Tensor& values);
  void sum_of_micro_batch(Stream&, Part&);
  void add_parts(Stream&, Part&, const Tensor& values, const Stored& sum, bool adds);
  bool divides() const { return parameters_.share().masters; }  // masters
  bool has_own_sums_only(const Part&) const;
  Stored gathered(Stream&, const nn::Bucket&);

  comm::Communicator& ranks_;
  const nn::Parameters& parameters_;
  std::vector<Part> parts_;
  std::unordered_map<const Gradient*, std::size_t> part_of_;
  MicroBatch micro_batch_;
  bool completes_ = true;  // what backward reports now
  Stream* side_;
  bool exchanged_ = false;  // in this micro-batch
  CopiedGradients* copied_;
  EightBitSum eight_bit_sum_;
  struct Exchange {
    bool begun = false;  // in this micro-batch
    Point end;           // of the last one
  };
  std::unordered_map<const void*, Exchange> exchanges_;  // of memory that buckets share in turn
};

}  // namespace octet::parallel

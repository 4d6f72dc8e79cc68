#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "octet/nn/parameters.hpp"
#include "octet/parallel/axes.hpp"
#include "octet/parallel/copied_gradients.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/parallel/ranks_config.hpp"
#include "octet/parallel/shared_scale_sum.hpp"
#include "octet/tensor/stream_event.hpp"

namespace octet::parallel {

/// Gradients of all ranks become their sums, bucket by bucket: each as soon as backward of a step's last micro-batch has completed it.
///
///   g = sum over ranks of g           in the format of CommConfig::gradients, the same bits on every rank
///
/// Where masters are sharded (nn::Sharded), a rank gets the sums of its part alone, and the other parts are left undefined: half of the
/// bytes. Formats with one scale per tensor give all sums in any case. Where several groups of ranks divide the same masters, the sums of a
/// part within a group become those of all groups: at the end of a step, in the same format.
///
/// Where sums are sharded, too (nn::Sharded::gradients), a bucket's values are exchanged in every micro-batch, and added to the sums of the
/// own part: in FP32, then rounded to their storage; 8-bit sums stochastically, see ops::accumulate. Factors mu then move per micro-batch.
///
/// Where format and storage differ, the bucket is converted in scratch; sums go back to the storage, rounded to nearest even. Vectors
/// always travel in their own type. Buckets and communicators must outlive this.
///
/// Gradients of stacks of experts are summed over the ranks that have the same experts: those of other ranks' tokens, which came to these
/// experts, are in them.
///
/// With a side queue exchanges are its work, beside backward of the next buckets. join() ends them.
///
/// One rank has nothing to exchange: its sums are its gradients.
class GradientSums final : public GradientListener {
 public:
  /// Of several ranks, listens to the gradients of all parameters. side: a side queue of the stream for exchanges, which must outlive this;
  /// or null. `copied`: sums that come first, of each bucket's own rank.
  GradientSums(Stream&, Stream* side, const Sharers&, const SharedEnd&, const nn::Parameters&, const CommConfig&, CopiedGradients& copied);
  ~GradientSums() override;

  /// Whether one rank has all of the gradients' sums.
  bool empty() const { return bucket_sums_.empty(); }
  /// Before a step's first micro-batch. Without `exchanges` gradients stay those of this rank.
  void begin_step(int micro_batches, bool exchanges);
  /// Before each micro-batch; where several are in flight together, before each of their forwards and backwards. A pass that took turns
  /// with another one resumes its micro-batch.
  void begin_micro_batch(int micro_batch);
  void resume_micro_batch(int micro_batch) { micro_batch_ = micro_batch; }
  /// After backward of a micro-batch, or of all that are in flight: work put into the stream from now on finds the sums.
  void join(Stream&);
  /// After the step's last micro-batch: throws ContractError unless every bucket was summed.
  void require_done() const;
  /// After the step's last micro-batch: sums the copies of buckets that no other rank's sequences add to.
  void sum_other_copies(Stream&);
  /// After the step's sums of gradients, on both stages of a SharedEnd: its two exchanges have one factor mu, which moves now.
  void join_ends(Stream&);

  /// All sums of this step as one row, in the order of the parameters' list. All ranks call it.
  std::vector<float> gathered_values(Stream&);

  /// Of each tensor here whose sums have one shared scale, in the last exchange: a step has one, or one per micro-batch where sums are
  /// sharded. Empty for other formats. Waits for the stream.
  std::map<const Parameter*, ScaleUse> scale_uses(Stream&) const;

  /// The factors mu, each once per whole parameter.
  void visit_state(StateVisitor&);

 private:
  /// The way of a bucket's gradients to their sums.
  struct BucketSum {
    const nn::Bucket* bucket;
    comm::Communicator &ranks, &owners, &copies;  // of all that have it, those that divide it, those that have the same part
    Wire wire;
    std::unique_ptr<SharedScaleSum> shared;  // of the formats with one scale per tensor
    bool leads = false;                      // of all ranks with a part of it, or a copy: this one saves its factors
    std::size_t pending = 0;                 // passes of the micro-batch to exchange that have not completed their parameters

    BucketSum(const nn::Bucket& b, const Sharers& s, Wire w)
        : bucket(&b), ranks(s.of(b)), owners(s.owners_of(b)), copies(s.copies), wire(w) {}
    virtual ~BucketSum() = default;
    void expect();
    virtual void begin_micro_batch() {}
    /// Whether values of this micro-batch are exchanged when backward has completed them.
    virtual bool exchanges(int micro_batch, int micro_batches) const = 0;
    virtual void exchange(GradientSums&, Stream&) = 0;
    /// Work of the stream may write into the bucket's memory from now on; that work has been put into the queue.
    virtual void hold(GradientSums&, Stream&) {}
    virtual void exchanged(GradientSums&, Stream&) {}
    /// Whether `sums` of the bucket alone are sums: of other parts, only their owners have any.
    virtual bool has_own_sums_only() const = 0;
    bool shards_masters() const { return bucket->shard.shards(nn::Sharded::masters); }
    /// Of values of the bucket.
    Stored own_part(const Stored& whole) const;
  };
  class OfStep;
  class OfMicroBatches;
  void begin(Stream&, const Gradient&) override;
  void complete(Stream&, const Gradient&) override;
  void share_scales(Stream&, BucketSum&, const Sharers&, const SharedEnd&, const CommConfig&);
  void visit_factor(StateVisitor&, const Parameter&);
  void visit_tables(StateVisitor&);
  void sum(Stream&, BucketSum&);
  void sum_values(Stream&, BucketSum&, const Tensor& values);
  void sum_own_part(Stream&, const BucketSum&, const Tensor& values);
  void sum_of_micro_batch(Stream&, BucketSum&);
  void add_micro_batch(Stream&, BucketSum&);
  void sum_copies(Stream&, const BucketSum&, const Stored& own);
  void add_parts(Stream&, BucketSum&, const Tensor& values, const Stored& sum, bool adds);
  Stored gathered(Stream&, const BucketSum&);

  const nn::Parameters& parameters_;
  std::vector<std::unique_ptr<BucketSum>> bucket_sums_;
  std::unordered_map<const Gradient*, std::size_t> number_of_;
  int micro_batch_ = 0, micro_batches_ = 1;  // the current one of this step
  bool exchanges_ = true;
  Stream* side_;
  bool exchanged_ = false;  // since the last join()
  CopiedGradients& copied_;
  comm::SelfCommunicator alone_;
  struct Exchange {
    bool begun = false;  // since the last join()
    StreamEvent end;     // of the last one
  };
  std::unordered_map<const void*, Exchange> exchanges_of_;  // of memory that buckets share in turn
};

/// Whether sums of a parameter's gradient, stored as `gradients` where it may be narrow, travel with one scale for all of it.
bool sums_share_scale(const Parameter&, const CommConfig&, Storage gradients);

}  // namespace octet::parallel

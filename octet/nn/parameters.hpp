#pragma once

#include <deque>
#include <vector>

#include "octet/nn/bucket.hpp"
#include "octet/nn/host_values.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/tensor/state.hpp"

namespace octet::nn {

/// Storage of the parameters of a model that train, in buckets: of all, or, where layers have adapters, of these. Gradients of one storage
/// are one buffer, in the order in which backward fills them. Codes of each parameter are aligned to 256 bytes.
class Parameters {
 public:
  /// Binds the value (and the gradient, when `gradients`) of every such parameter that `model.visit` shows. Contents are zero.
  template <class Model>
  Parameters(Stream& stream, Model& model, bool gradients, const ParameterStorage& storage = {}, const Shards& shards = {})
      : shards_(shards) {
    Collect collect(list_, storage.codes && shard().shards(Sharded::masters));
    model.visit(collect);
    buckets_ = make_buckets(list_, collect.contexts, storage, shards);
    bind(stream, gradients);
  }

  const std::vector<Parameter*>& list() const { return list_; }
  /// In the order of backward.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Of the parameters that all ranks have.
  const Shard& shard() const { return shards_.all; }
  /// The slice of each parameter that is updated here, in the list's order: where masters are not divided, all of it.
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  /// f32 [n, 2], or empty: {descale, max} of the divided masters of every bucket with a scale per tensor.
  std::vector<Tensor> master_scalars() const;
  /// i64 [2], see ops::Accumulate; empty unless gradients are in 8 bits.
  const Tensor& draws() const { return draws_; }
  /// The value of each parameter, as modules read it, and the gradient, in the list's order. A value that is read as codes is empty.
  std::vector<Stored> values() const;
  std::vector<Stored> gradients() const;
  std::int64_t count() const { return count_; }

  /// Every master has changed, or is to take another scale: copies of it in other types are stale.
  void mark_changed() {
    for (Parameter* p : list_) ++p->version;
  }
  /// All values of a parameter, list()[i], from the host's floats, its master rounded to nearest.
  void set_values(Stream&, std::size_t i, const float* host);
  /// Every parameter from its own Init. Where masters are divided, only these: their copies are made from all parts.
  void initialize(Stream&, std::uint64_t seed);
  /// Backward then begins sums: gradients are zero or stale where the first micro-batch stores them: those of 8 bits, and on a CPU those
  /// that a GEMM reaches first.
  void clear_gradients(Stream&);
  /// Before each micro-batch; if several are in flight, before each of their forwards and backwards.
  void begin_micro_batch();
  /// The work that follows is that of a micro-batch of this number in its step. Draws of gradients in 8 bits follow from update and number.
  /// `updates`: i64 [1], updates before this step, in the device's memory; empty: 0.
  void number_draws(Stream&, const Tensor& updates, std::int64_t number);
  /// Every value, in the type it is stored in.
  void visit_state(StateVisitor&);

 private:
  struct Collect final : Visitor {
    std::vector<Parameter*>& list;
    std::vector<ParameterContext> contexts;
    bool codes;             // weights are asked whether their codes can be made of parts
    bool adapters = false;  // there are some
    int now = -1;
    const Parameter* stack = nullptr;
    Collect(std::vector<Parameter*>& list, bool codes) : list(list), codes(codes) {}
    void block(int number) override { now = number; }
    void experts(const Parameter& p) override { stack = &p; }
    void parameter(Parameter& p) override;
    void adapter(Parameter& p) override;
    void weight(Weight&) override;
  };
  void bind(Stream&, bool gradients);
  void bind_whole_copies(Stream&);
  void bind_copies_in_turn(Stream&);
  void bind_codes(Bucket&);
  void bind_masters(Stream&);
  void bind_gradients(Stream&);
  void bind_slices();
  void bind_shared_gradients(Stream&);
  void make_draws(Stream&);
  /// Those whose masters are divided.
  std::vector<Bucket*> sharded_buckets();
  template <class T>
  std::vector<Bucket*> those_of(T Bucket::*field, T wanted) {
    std::vector<Bucket*> out;
    for (Bucket& b : buckets_)
      if (b.*field == wanted) out.push_back(&b);
    return out;
  }

  std::vector<Parameter*> list_;
  Shards shards_;
  std::vector<Bucket> buckets_;
  std::deque<Cut> copies_;  // of parameters that another member counts
  std::vector<ParameterSlice> slices_;
  std::vector<Tensor> gradient_buffers_;  // of f32 and bf16
  Tensor draws_;                          // i64 [2], see ops::Accumulate; empty unless gradients are in 8 bits
  std::int64_t count_ = 0;
};

/// The master of a slice, from the parameter's own Init; normal values are keyed by seed and path (see ops::fill_normal), the same on every
/// backend and in every slice.
void initialize(Stream&, const ParameterSlice&, std::uint64_t seed);
/// The same of a whole parameter.
void initialize(Stream&, Parameter&, std::uint64_t seed);
/// The master of a slice from all values of the parameter in the host's memory, rounded to nearest.
void set_values(Stream&, const ParameterSlice&, const float* whole, Tiny tiny = Tiny::flush);

}  // namespace octet::nn

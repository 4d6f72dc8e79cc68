#pragma once

#include <span>
#include <vector>

#include "octet/base/checksum.hpp"
#include "octet/nn/frozen_bucket.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/tensor/state.hpp"

namespace octet::nn {

/// The own parameters of a model whose adapters train: values that no step changes, without gradients, masters and moments. Of a model
/// without adapters there are none.
///
/// A weight that only GEMMs read is in memory as their operands alone, which Weight::hold() makes. Of other matrices, such as the
/// embedding, there are values in the type of activations, f32 where these are not BF16; vectors are f32. Where shards divide weights, such
/// operands of blocks are in buckets().
class FrozenParameters {
 public:
  /// Binds those that `model.visit` shows, before nn::Parameters binds the adapters. Values of weights are missing until they are set.
  template <class Model>
  FrozenParameters(Stream& stream, Model& model, DType activations, const Shards& shards = {})
      : type_(activations == DType::bf16 ? DType::bf16 : DType::f32) {
    Collect collect;
    model.visit(collect);
    if (collect.adapters) bind(stream, std::move(collect), shards);
  }

  const std::vector<Parameter*>& list() const { return list_; }
  std::int64_t count() const;
  /// Of which each rank keeps a part.
  const std::vector<FrozenBucket>& buckets() const { return buckets_; }
  /// Notes all values of a whole parameter of the model, wherever it is: each once, in the order of the whole model.
  void note(std::span<const float> whole);
  /// The part here of a parameter, list()[i], from the whole one's values, rounded to nearest. Workspace: the values of one weight.
  void set_values(Stream&, std::size_t i, std::span<const float> whole);
  /// The sum of the squares of all that was noted.
  double squares() const { return squares_; }
  /// The checksum of it. When it is restored, throws ConfigError if the state is of other values.
  void visit_state(StateVisitor&);
  /// Every parameter from its own Init.
  void initialize(Stream&, std::uint64_t seed);

 private:
  struct Collect final : Visitor {
    std::vector<Parameter*> list;
    std::vector<ParameterContext> contexts;
    std::vector<Weight*> weights;
    bool adapters = false;
    int now = -1;
    const Parameter* stack = nullptr;
    void block(int number) override { now = number; }
    void experts(const Parameter& p) override { stack = &p; }
    void parameter(Parameter& p) override { list.push_back(&p), contexts.push_back({.block = now, .experts = &p == stack}); }
    void adapter(Parameter&) override { adapters = true; }
    void weight(Weight& w) override { weights.push_back(&w); }
  };
  void bind(Stream&, Collect, const Shards&);
  void divide(Stream&, const std::vector<ParameterContext>&, const Shards&);
  template <class Fill>
  void fill(Stream&, std::size_t i, const Tensor& largest, const Fill&);
  Tensor largest_of(Stream&, std::size_t i, std::span<const float> whole) const;
  bool holds_part(std::size_t i) const;
  DType type_of(const Parameter& p) const { return p.role == ParameterRole::matrix ? type_ : DType::f32; }

  DType type_;
  std::vector<Parameter*> list_;
  std::vector<Weight*> held_;  // of each, or null for those with values
  std::vector<FrozenBucket> buckets_;
  data::Checksummer checksum_;
  double squares_ = 0;
};

}  // namespace octet::nn

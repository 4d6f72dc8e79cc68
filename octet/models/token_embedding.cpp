#include "octet/models/token_embedding.hpp"

#include "octet/nn/gradient_accumulator.hpp"

namespace octet::models {
namespace {

// Each member adds those of the tokens whose rows of the embedding it has.
std::unique_ptr<Parameter> make_positions(std::int64_t positions, std::int64_t width, const nn::Partition& p) {
  if (positions == 0) return nullptr;
  const Shape shape{positions, width};
  auto table = std::make_unique<Parameter>("positions.weight", shape, Init{}, ParameterRole::position, nn::own_copy(p, shape));
  table->gradient.add_use(GradientUse::sum);
  return table;
}

Cut cut_of_table(const nn::Partition& p, const ModelShape& shape, bool copy) {
  const Cut own = nn::own_rows(p, {shape.padded_vocabulary(), shape.width});
  return copy ? own.shared(2, false) : own;
}

std::int64_t whole_sequence(const TokenBatch& b) { return b.part ? b.part.whole : b.sequence; }

}  // namespace

TokenEmbedding::TokenEmbedding(const ModelShape& shape, std::int64_t learned_positions, bool copy, nn::Partition& partition)
    : partition_(partition),
      table_("embedding.weight", {nn::own_range(partition, shape.padded_vocabulary()).count, shape.width}, {}, ParameterRole::matrix,
             cut_of_table(partition, shape, copy)),
      positions_(make_positions(learned_positions, shape.width, partition)),
      factor_(shape.multipliers.embedding) {}

ops::TableRows TokenEmbedding::own_rows() const {
  const std::int64_t rows = table_.shape[0];
  return {partition_.member() * rows, partition_.members() * rows};
}

void TokenEmbedding::forward(Stream& stream, const TokenBatch& batch, const Tensor& tokens, const Tensor& x) {
  const Scope scope(stream);
  const Tensor all = partition_.all_rows(stream, x), places = batch.cache->places();
  const auto positions = [&] { return places ? positions_->value.values() : positions_->value.values().rows(0, whole_sequence(batch)); };
  ops::embedding_forward(stream, {.table = table_.value.codes,
                                  .tokens = tokens,
                                  .out = all,
                                  .positions = positions_ ? positions() : Tensor{},
                                  .document_starts = batch.document_starts,
                                  .descale = table_.value.tensor_descale(),
                                  .rows = own_rows(),
                                  .places = places,
                                  .part = batch.part});
  partition_.reduce_exactly(stream, all, x);
  factor_.apply(stream, x);
  stream.observe("embedding", "y", x);
}

void TokenEmbedding::backward(Stream& stream, const TokenBatch& batch, const Tensor& tokens, const Tensor& d, int pass) {
  if (!nn::trains(table_)) return;
  factor_.apply(stream, d);
  const Scope scope(stream);
  nn::GradientAccumulator of_table(stream, table_, DType::f32);
  const auto sum = [&](Parameter& p) { return p.gradient.target(stream, GradientUse::sum).data; };
  const Tensor all = partition_.all_rows(stream, d);
  partition_.gather(stream, d, all);
  ops::embedding_backward(stream, {.dy = all,
                                   .tokens = tokens,
                                   .dtable = sum(table_),
                                   .dpositions = positions_ ? sum(*positions_).rows(0, whole_sequence(batch)) : Tensor{},
                                   .document_starts = batch.document_starts,
                                   .rows = own_rows(),
                                   .part = batch.part});
  of_table.end(stream, pass);
  if (positions_) positions_->gradient.done(stream);
}

void TokenEmbedding::visit_positions(nn::Visitor& visitor) {
  if (positions_) visitor.parameter(*positions_);
}

}  // namespace octet::models

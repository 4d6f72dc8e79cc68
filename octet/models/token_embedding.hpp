#pragma once

#include <memory>

#include "octet/models/model.hpp"
#include "octet/nn/multiplier.hpp"
#include "octet/nn/partition.hpp"
#include "octet/ops/embedding/embedding.hpp"

namespace octet::models {

/// x = f (E[token] + P[place]): a table of tokens, a table of places where the family learns one, and a constant factor f. Members of a
/// partition have a range of E's rows, and each adds the places of the tokens in its range.
class TokenEmbedding {
 public:
  /// learned_positions: rows of P, 0 for none. copy: of a table that the first chunk counts and saves, for the last one, which reads it,
  /// too.
  TokenEmbedding(const ModelShape&, std::int64_t learned_positions, bool copy, nn::Partition&);

  /// x: [T, D], of several members the own rows. tokens: [T], of all members.
  void forward(Stream&, const TokenBatch&, const Tensor& tokens, const Tensor& x);
  /// Adds to the gradients of the tables in one pass of the gradient's uses. Overwrites d, the gradient of x, with that of E[token] +
  /// P[place].
  void backward(Stream&, const TokenBatch&, const Tensor& tokens, const Tensor& d, int pass);

  bool learns_positions() const { return bool(positions_); }
  Parameter& table() { return table_; }
  void visit_positions(nn::Visitor&);

 private:
  ops::TableRows own_rows() const;

  nn::Partition& partition_;
  Parameter table_;                       // E [V, D], or the own rows
  std::unique_ptr<Parameter> positions_;  // P [max sequence, D]
  nn::Multiplier factor_;
};

}  // namespace octet::models

#pragma once

#include <span>
#include <vector>

#include "octet/nn/expert_exchange.hpp"

namespace octet::parallel {

/// The probability that one of L experts is among the K of E that a token chooses by chance: 1 - C(E - L, K) / C(E, K). A plan sends so
/// many rows per token to each rank, rounded to nearest.
double visit_chance(std::int64_t choices, std::int64_t experts, std::int64_t experts_of_rank);

/// How memory for rows of experts is bounded: E experts over N ranks, K choices per token, and a factor F of the rows at equal loads. Each
/// rank's tokens are divided into G chunks of neighbours. A round has as many chunks, of the same numbers on all ranks, as have room. A
/// chunk alone always has room, so G = 2 ceil(N / F) chunks are enough for all choices of tokens.
struct ExpertRoom {
  double factor = 0;  // F; 0: the rows of the worst choice have room
  std::int64_t ranks = 1, experts = 1, choices = 1;

  std::int64_t experts_of_rank() const { return experts / ranks; }
  std::int64_t packed() const { return std::min(choices, experts_of_rank()); }  // J
  /// Whether any choice could have no room.
  bool bounded() const { return factor > 0 && factor * double(choices) < double(ranks * packed()); }
  std::int64_t chunks() const;
  /// Chunk g of T own tokens.
  nn::IndexRange chunk(std::int64_t tokens, std::int64_t g) const;
  /// Tokens that may visit a rank at once, and choices that come with them, where no rank has more than T tokens of its own.
  std::int64_t visits(std::int64_t tokens) const;
  std::int64_t rows(std::int64_t tokens) const;

  /// The loads of a rank: its tokens, then per chunk the visits to each rank and the choices of each expert.
  std::int64_t table_size() const { return 1 + chunks() * (ranks + experts); }
  /// Of the tables of all ranks, one after the other.
  std::int64_t most_tokens(std::span<const std::int32_t> tables) const;
  /// The rounds of one rank; every rank has as many.
  std::vector<nn::ExpertExchange::Round> rounds(std::span<const std::int32_t> tables, int rank) const;

 private:
  std::int64_t visits_of(std::span<const std::int32_t> tables, std::int64_t from, std::int64_t chunk, std::int64_t to) const;
  std::int64_t choices_of(std::span<const std::int32_t> tables, std::int64_t chunk, std::int64_t to) const;
};

}  // namespace octet::parallel

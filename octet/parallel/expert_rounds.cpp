#include "octet/parallel/expert_rounds.hpp"

#include <cmath>

#include "octet/base/check.hpp"

namespace octet::parallel {
namespace {

std::int64_t rounded_up(double x) { return std::int64_t(std::ceil(x)); }

}  // namespace

double visit_chance(std::int64_t choices, std::int64_t experts, std::int64_t experts_of_rank) {
  double none = 1;
  for (std::int64_t k = 0; k < choices; ++k) none *= std::max(0.0, double(experts - experts_of_rank - k) / double(experts - k));
  return 1 - none;
}

std::int64_t ExpertRoom::chunks() const { return bounded() ? 2 * rounded_up(double(ranks) / factor) : 1; }

nn::IndexRange ExpertRoom::chunk(std::int64_t tokens, std::int64_t g) const {
  const std::int64_t each = ceil_div(tokens, chunks()), first = std::min(g * each, tokens);
  return {first, std::min(each, tokens - first)};
}

std::int64_t ExpertRoom::visits(std::int64_t tokens) const {
  if (!bounded()) return ranks * tokens;
  const std::int64_t of_each = rounded_up(factor * double(tokens) * visit_chance(choices, experts, experts_of_rank()));
  return ranks * std::min(tokens, std::max(of_each, ceil_div(tokens, chunks())));
}

std::int64_t ExpertRoom::rows(std::int64_t tokens) const {
  const std::int64_t worst = ranks * tokens * packed();
  if (!bounded()) return worst;
  const std::int64_t of_chunk = ranks * ceil_div(tokens, chunks()) * packed();
  return std::min(worst, std::max(rounded_up(factor * double(tokens * choices)), of_chunk));
}

std::int64_t ExpertRoom::most_tokens(std::span<const std::int32_t> tables) const {
  std::int64_t out = 0;
  for (std::int64_t r = 0; r < ranks; ++r) out = std::max<std::int64_t>(out, tables[std::size_t(r * table_size())]);
  return out;
}

std::int64_t ExpertRoom::visits_of(std::span<const std::int32_t> tables, std::int64_t from, std::int64_t chunk, std::int64_t to) const {
  return tables[std::size_t(from * table_size() + 1 + chunk * (ranks + experts) + to)];
}

std::int64_t ExpertRoom::choices_of(std::span<const std::int32_t> tables, std::int64_t chunk, std::int64_t to) const {
  std::int64_t out = 0;
  for (std::int64_t from = 0; from < ranks; ++from) {
    const std::int64_t first = from * table_size() + 1 + chunk * (ranks + experts) + ranks + to * experts_of_rank();
    for (std::int64_t e = 0; e < experts_of_rank(); ++e) out += tables[std::size_t(first + e)];
  }
  return out;
}

std::vector<nn::ExpertExchange::Round> ExpertRoom::rounds(std::span<const std::int32_t> tables, int rank) const {
  const std::size_t n = std::size_t(ranks);
  const std::int64_t most = most_tokens(tables), own = tables[std::size_t(rank * table_size())];
  std::vector<nn::ExpertExchange::Round> out;
  std::vector<std::int64_t> visits_now(n), rows_now(n);  // of the last round, by rank
  for (std::int64_t g = 0; g < chunks(); ++g) {
    std::vector<std::int64_t> more_visits(n), more_rows(n);
    bool fits = !out.empty();
    for (std::size_t to = 0; to < n; ++to) {
      for (std::int64_t from = 0; from < ranks; ++from) more_visits[to] += visits_of(tables, from, g, std::int64_t(to));
      more_rows[to] = choices_of(tables, g, std::int64_t(to));
      check(more_visits[to] <= visits(most) && more_rows[to] <= rows(most), "experts: a chunk of tokens has no room: {} rows, and {} have",
            more_rows[to], rows(most));
      fits = fits && visits_now[to] + more_visits[to] <= visits(most) && rows_now[to] + more_rows[to] <= rows(most);
    }
    const nn::IndexRange tokens = chunk(own, g);
    if (!fits) {
      out.push_back({.tokens = {tokens.first, 0}, .out = std::vector<std::int64_t>(n), .in = std::vector<std::int64_t>(n)});
      std::ranges::fill(visits_now, 0), std::ranges::fill(rows_now, 0);
    }
    nn::ExpertExchange::Round& now = out.back();
    now.tokens.count += tokens.count, now.choices += more_rows[std::size_t(rank)];
    for (std::size_t r = 0; r < n; ++r) {
      visits_now[r] += more_visits[r], rows_now[r] += more_rows[r];
      now.out[r] += visits_of(tables, rank, g, std::int64_t(r)), now.in[r] += visits_of(tables, std::int64_t(r), g, rank);
    }
  }
  return out;
}

}  // namespace octet::parallel

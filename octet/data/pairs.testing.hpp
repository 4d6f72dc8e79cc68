#pragma once

#include <string>
#include <vector>

#include "octet/data/dataset_writer.hpp"
#include "octet/data/token_format.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/tokenizer/byte_tokenizer.hpp"

// Datasets of pairs of answers, as ids.

namespace octet::data {

struct PairOfIds {
  std::vector<std::int32_t> question, chosen, rejected;
};

/// A dataset of these in a folder, which it returns.
inline std::string write_pairs(const std::string& folder, const std::vector<PairOfIds>& pairs) {
  const tokenizer::ByteTokenizer bytes;
  DatasetWriter writer(folder, false);
  ShardBuilder builder(bytes, 1 << 24, true, true);
  for (const PairOfIds& p : pairs)
    for (const auto* answer : {&p.chosen, &p.rejected}) {
      std::vector<std::int32_t> ids;
      for (const std::int32_t id : p.question) ids.push_back(std::int32_t(std::uint32_t(id) | context_mark));
      ids.insert(ids.end(), answer->begin(), answer->end());
      builder.begin_document();
      builder.append(ids);
    }
  writer.add(builder.finish());
  writer.commit();
  return folder;
}

/// Pairs of 4 to 20 ids below `vocabulary`, of which chosen answers are of even ids and rejected ones of odd ids.
inline std::vector<PairOfIds> random_pairs(std::size_t count, std::int32_t vocabulary, std::uint64_t seed) {
  std::vector<PairOfIds> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t at = 100 * i;
    const auto draw = [&](std::int32_t below) { return std::int32_t(philox(seed, at++).w[0] % std::uint32_t(below)); };
    const auto ids = [&](std::int32_t n, std::int32_t each, std::int32_t plus) {
      std::vector<std::int32_t> of;
      for (std::int32_t k = 0; k < n; ++k) of.push_back(draw(vocabulary / each) * each + plus);
      return of;
    };
    out.push_back({ids(2 + draw(4), 1, 0), ids(1 + draw(7), 2, 0), ids(1 + draw(7), 2, 1)});
  }
  return out;
}

}  // namespace octet::data

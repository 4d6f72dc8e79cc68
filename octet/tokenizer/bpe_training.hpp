#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace octet::tokenizer {

/// A trained byte-level vocabulary: tokens by id as bytes, first the 256 bytes, and the merges in the order of their ranks.
struct TrainedBpe {
  std::vector<std::string> tokens;
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;
};

/// The 256 bytes as tokens, in the order of the characters that represent them, which is the order of their ids.
std::vector<std::string> byte_tokens();

/// Byte pair encoding: as long as there are fewer than `size` tokens, the most frequent pair of neighbours becomes a token; of equal
/// frequencies the pair with the lower ids. Ends earlier when no pair occurs `least_count` times. `words`: text -> frequency; pairs are
/// counted within words. `progress` is called with the number of tokens now and then. Source: Sennrich et al. 2016; ids and ties as in PyPI
/// `tokenizers`.
TrainedBpe train_bpe(const std::unordered_map<std::string, std::uint64_t>& words, std::size_t size, std::uint64_t least_count,
                     const std::function<void(std::size_t)>& progress = {});

/// The tokenizer.json of a trained vocabulary: parts by `pattern`, byte-level, and `special` tokens behind the vocabulary.
std::string tokenizer_json(const TrainedBpe& bpe, const std::string& pattern, const std::vector<std::string>& special);

}  // namespace octet::tokenizer

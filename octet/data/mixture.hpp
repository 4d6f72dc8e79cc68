#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/data/windows.hpp"

namespace octet::data {

/// A share of all samples, exactly: so many millionths.
struct Share {
  std::string path;
  std::int64_t millionths = 0;
};
constexpr std::int64_t whole_share = 1000000;
/// Of "PATH:SHARE" with a number above 0 and below 1 of at most 6 decimals, each; together they leave some for data.path. Throws
/// ConfigError naming data.mix.
std::vector<Share> parse_shares(const std::vector<std::string>& mix);

/// Windows of several texts, mixed by shares. Which window a sample shows is a pure function of (seed, sample number, texts): samples come
/// in blocks of P, the least number of which every share is an integer n_i. A permutation of each block by the seed deals its places to the
/// texts, so that each block has exactly n_i samples of text i, which are that text's next ones; those follow a permutation per epoch of
/// it. One text alone has P = 1.
class Mixture {
 public:
  struct Text {
    Windows windows;
    std::int64_t millionths;
  };
  Mixture(const Windows& alone) : Mixture(std::vector{Text{alone, whole_share}}) {}
  /// Shares have the sum whole_share. All windows have one length and treat documents alike. The datasets must outlive this.
  explicit Mixture(std::vector<Text>);

  struct Place {
    std::size_t text;
    std::uint64_t sample;  // of this text alone
  };
  Place place(std::uint64_t sample, std::uint64_t seed) const;
  /// Writes the window of sample `sample` to a batch's row. Throws DataError as Windows::read does.
  void read(std::uint64_t sample, std::uint64_t seed, Batch&, std::int64_t row) const;

  std::int64_t length() const { return texts_.front().windows.length(); }
  Documents documents() const { return texts_.front().windows.documents(); }
  /// Windows of the first text, and samples in which it is shown once.
  std::uint64_t count() const { return texts_.front().windows.count(); }
  std::uint64_t epoch_samples() const;

 private:
  std::vector<Text> texts_;
  std::vector<std::uint64_t> ends_;  // of each text's places in a block
};

}  // namespace octet::data

#pragma once

#include <cstdint>
#include <memory>
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

/// Samples of several texts, mixed by shares. Which one a sample of a run shows is a pure function of (seed, sample number, texts): samples
/// come in blocks of P, the least number of which every share is an integer n_i. A permutation of each block by the seed deals its places
/// to the texts, so that each block has exactly n_i samples of text i, which are that text's next ones; those follow a permutation per
/// epoch of it. One text alone has P = 1.
class Mixture {
 public:
  struct Text {
    std::shared_ptr<const Samples> samples;
    std::int64_t millionths;

    Text(const Windows& windows, std::int64_t share) : Text(std::make_shared<Windows>(windows), share) {}
    Text(std::shared_ptr<const Samples> all, std::int64_t share) : samples(std::move(all)), millionths(share) {}
  };
  Mixture(const Windows& alone) : Mixture(std::vector{Text{alone, whole_share}}) {}
  /// Shares have the sum whole_share. All texts have samples of one kind and length, and treat documents alike. The datasets must outlive
  /// this.
  explicit Mixture(std::vector<Text>);

  struct TextSample {
    std::size_t text;
    std::uint64_t sample;  // of this text alone
  };
  TextSample place(std::uint64_t sample, std::uint64_t seed) const;
  /// Writes the text's sample that sample `sample` shows to a batch's row. Throws DataError as Samples::read does.
  void read(std::uint64_t sample, std::uint64_t seed, Batch&, std::int64_t row) const;

  /// Of the first text, which tells the kind of all.
  const Samples& first() const { return *texts_.front().samples; }
  const std::vector<Text>& texts() const { return texts_; }
  std::int64_t length() const { return first().length(); }
  Documents documents() const { return first().documents(); }
  /// Samples of the first text, and those of a run in which it is shown once.
  std::uint64_t count() const { return first().count(); }
  std::uint64_t epoch_samples() const;

 private:
  std::vector<Text> texts_;
  std::vector<std::uint64_t> ends_;  // of each text's places in a block
};

}  // namespace octet::data

#pragma once

#include <optional>
#include <vector>

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/key_cache/key_cache.hpp"

namespace octet::nn {

/// Where attention finds keys and values, and the places of tokens in their sequences. This form keeps nothing: a batch has whole
/// sequences, and attention reads those of the batch.
class KeyCache {
 public:
  virtual ~KeyCache() = default;
  /// Of each token, i32 [T]; empty: those of the batch.
  virtual Tensor places() const { return {}; }
  /// Fills a.o of queries and keys at their rotary positions, in a block of that number. `window`: last tokens that it reads, 0 for all;
  /// a.document_starts have it already.
  virtual void attend(Stream& stream, int /*block*/, const ops::AttentionForward& a, std::int64_t /*window*/) {
    ops::attention_forward(stream, a);
  }
};
KeyCache& no_cache();

/// Keeps the keys and values of every token that it sees. Only for forwards that save nothing for a backward.
class StoredKeys final : public KeyCache {
 public:
  struct Config {
    std::int64_t sequences = 1, capacity = 0;  // texts, and tokens of each
    std::optional<DType> codes = {};           // e4m3; none: values of activations' type
    Region region = Lifetime::step;            // of the memory; a block's is taken when it first attends
  };
  explicit StoredKeys(const Config& config) : config_(config) {}

  /// Of the next forward: where its tokens belong. `whole`: they are the first ones of one sequence, in order, so that keys of the batch
  /// are all that they read. Either way a token reads the values that are stored.
  void begin(const ops::TokenPlaces& at, bool whole) { at_ = at, whole_ = whole; }

  Tensor places() const override { return at_.place; }
  void attend(Stream&, int block, const ops::AttentionForward&, std::int64_t window) override;

 private:
  const ops::KeyRows& rows_of(Stream&, int block, const ops::AttentionForward&);

  Config config_;
  ops::TokenPlaces at_;
  bool whole_ = false;
  std::vector<std::optional<ops::KeyRows>> blocks_;
};

}  // namespace octet::nn

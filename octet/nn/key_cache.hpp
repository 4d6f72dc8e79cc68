#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/key_cache/key_cache.hpp"
#include "octet/ops/latent_heads/latent_heads.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::nn {

/// Of latent attention: columns of matrices with a row per token, from which keys and values of all heads follow.
struct Latents {
  ops::ColumnsOf latent, shared;  // `rank` columns, and the `turned` ones that keys of all heads share, not yet at their positions
  std::int64_t rank = 0, turned = 0;
};
/// Fills keys and values of qkv [S, columns] for S tokens, the first ones of a sequence. Queries are undefined.
using ExpandLatents = std::function<void(Stream&, const Latents&, const Tensor& qkv)>;

/// Where attention finds keys and values, and the places of tokens in their sequences. This form keeps nothing: a batch has whole
/// sequences, and attention reads those of the batch.
class KeyCache {
 public:
  virtual ~KeyCache() = default;
  /// Of each token, i32 [T]; empty: those of the batch.
  virtual Tensor places() const { return {}; }
  /// The latents of a batch, before attend() of the same block. They become the ones that are stored. Objects that `expand` refers to live
  /// until then.
  virtual void keep(Stream&, int /*block*/, const Latents&, ExpandLatents /*expand*/) {}
  /// Fills `o`, whose values are a.o, of queries and keys, in a block of that number. `turn` puts them at their rotary positions first;
  /// without a table they are there. `window`: last tokens that it reads, 0 for all; a.document_starts have it already.
  virtual void attend(Stream& stream, int /*block*/, const ops::RopeForward& turn, const ops::AttentionForward& a, std::int64_t /*window*/,
                      ops::Sink& o) {
    if (turn.table.cos) ops::rope_forward(stream, turn);
    ops::attention_forward(stream, a);
    ops::quantize(stream, a.o, o);
  }
};
KeyCache& no_cache();

/// Keeps the keys and values of every token that it sees, or, of latent attention, the latents: then each forward expands them again, block
/// by block. Only for forwards that save nothing for a backward.
class StoredKeys final : public KeyCache {
 public:
  struct Config {
    std::int64_t sequences = 1, capacity = 0;  // texts, and tokens of each
    std::optional<DType> codes = {};           // e4m3; none: values of activations' type
    Region region = Lifetime::step;            // of the memory; a block's is taken when it first attends
  };
  /// The tokens of a forward.
  struct Batch {
    ops::TokenPlaces at;
    bool whole = false;      // the first ones of one sequence, in order: keys of the batch are all that they read
    bool apart = false;      // each is the only one of its sequence
    std::int64_t reach = 0;  // places that they read are below it
  };
  explicit StoredKeys(const Config&);
  ~StoredKeys() override;

  /// Of the next forward. A token reads the values that are stored, also in a whole batch.
  void begin(const Batch& batch) { batch_ = batch; }

  Tensor places() const override { return batch_.at.place; }
  void keep(Stream&, int block, const Latents&, ExpandLatents expand) override;
  void attend(Stream&, int block, const ops::RopeForward& turn, const ops::AttentionForward&, std::int64_t window, ops::Sink& o) override;

 private:
  class Block;
  class Heads;
  class OfLatents;
  template <class Form>
  Block& block(int number);

  Config config_;
  Batch batch_;
  std::vector<std::unique_ptr<Block>> blocks_;
  ops::TokenPlaces all_;  // of every row of latents, sequence by sequence
};

/// The shape by which latents are stored: one head whose key has the shared columns, and whose value has the others.
ops::QkvShape shape_of_latents(std::int64_t rank, std::int64_t turned);

}  // namespace octet::nn

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "octet/nn/key_cache.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Logits after the texts of a batch, each of which grows, shrinks or changes between the calls.
class Decoder {
 public:
  struct Config {
    std::int64_t texts = 1;           // of the batch
    std::int64_t longest = 0;         // tokens of a text that the model reads: the last ones
    std::optional<DType> codes = {};  // of stored keys and values: e4m3; none: values of activations' type
  };
  /// One that stores keys and values, so that a token is computed once. Of latent attention it stores latents, of which each call makes
  /// keys and values again, block by block. Attention in 8 bits has scales of whole sequences and keeps none: then each call computes all
  /// tokens again. The engine outlives it; memory for keys is taken at the first calls and freed with the decoder, the last of the engine's
  /// that was made. Throws ConfigError where the machine has no memory for it.
  static std::unique_ptr<Decoder> make(Engine&, const Config&);
  virtual ~Decoder() = default;

  /// Logits [vocabulary] after each text, in f32; an empty text has none and is left out. A text that no longer fits in `longest` tokens is
  /// read from its last longest / 2 tokens on, and then grows again. Changes no other state of the engine. All ranks call it that have a
  /// part of the model, with the same texts.
  virtual std::vector<std::vector<float>> logits(std::span<const std::span<const std::int32_t>> texts) = 0;
  /// The most likely token after each text, the first one of equals, which the device finds among such logits; -1 where they are not
  /// finite, and for an empty text.
  virtual std::vector<std::int32_t> most_likely(std::span<const std::span<const std::int32_t>> texts) = 0;

  /// Bytes of keys and values, or of latents, that such a decoder stores on this rank.
  static std::int64_t key_bytes(Engine&, const Config&);
  /// Takes and gives back this memory, so that a dry run, which generates nothing, includes it.
  static void reserve(Engine&, const Config&);
};

}  // namespace octet::train

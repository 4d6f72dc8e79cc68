#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/python/aside.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/sampling.hpp"
#include "octet/trained/eval_set.hpp"
#include "octet/trained/trained_model.hpp"

namespace octet::python {

/// A model that Python has opened, in one precision. Functions but those of the tokenizer are called in the thread of `aside`.
class OpenModel {
 public:
  /// `sequence`: longest sequence; 0: that of the model, at most most_tokens. Call open() before the others.
  OpenModel(trained::TrainedModel wish, std::int64_t sequence) : wish_(std::move(wish)), sequence_(sequence) {}
  static constexpr std::int64_t most_tokens = 2048;

  /// Throws as trained::TrainedModel.
  void open();
  /// Logits of `rows` sequences of one length, [ids.size(), vocabulary()]. Throws ConfigError if they are longer than sequence().
  std::vector<float> logits(std::span<const std::int32_t> ids, std::int64_t rows);
  /// The tokens that follow each text, up to the one that completes one of `stops`. `codes`: keys and values are stored in E4M3.
  std::vector<std::vector<std::int32_t>> generate(std::vector<std::vector<std::int32_t>> texts, std::int64_t tokens, const train::Sampling&,
                                                  const std::vector<std::string>& stops, bool codes);
  /// In the precision of `recipe`, "": its own; with its weights as they are now only in its own. `given`: names of options that were set.
  train::Evaluation evaluate(trained::EvalSet, const std::vector<std::string>& given, const std::string& recipe, std::int64_t calibration);

  std::int64_t vocabulary() const { return wish_.source().shape.vocabulary; }
  std::int64_t max_sequence() const { return wish_.max_sequence(); }
  std::int64_t sequence() const { return sequence_; }
  const tokenizer::Tokenizer& tokenizer();
  train::Engine& engine() { return *engine_; }
  /// Values were given away and may change at any time: layers read them again before each call.
  void share_values() { shared_ = true; }
  Aside& aside() { return aside_; }

 private:
  void begin();

  trained::TrainedModel wish_;
  std::int64_t sequence_;
  bool shared_ = false;
  std::unique_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<train::Engine> engine_;
  Aside aside_;
};

}  // namespace octet::python

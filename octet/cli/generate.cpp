#include <algorithm>
#include <cmath>

#include "octet/base/output.hpp"
#include "octet/cli/trained_model.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/tokenizer/text_stream.hpp"

namespace octet::cli {
namespace {

struct Options : TrainedModel {
  std::string prompt = "#include <", tokenizer;
  std::int64_t tokens = 200, top_k = 40, seed = 1;
  double temperature = 0.8;
};

// The next token: the most likely one at temperature 0, otherwise drawn from the top_k by the softmax of logits / temperature.
std::int32_t choose(const std::vector<float>& logits, const Options& o, std::uint64_t draw) {
  std::vector<std::int32_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int32_t(i);
  const auto kept = std::ptrdiff_t(o.temperature == 0 ? 1
                                   : o.top_k > 0      ? std::min<std::size_t>(std::size_t(o.top_k), order.size())
                                                      : order.size());
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](std::int32_t a, std::int32_t b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
  if (kept == 1) return order[0];
  std::vector<double> weight;
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < kept; ++i) {
    weight.push_back(std::exp((double(logits[std::size_t(order[std::size_t(i)])]) - logits[std::size_t(order[0])]) / o.temperature));
    sum += weight.back();
  }
  double left = double(uniform(philox(std::uint64_t(o.seed), draw).w[0])) * sum;
  for (std::size_t i = 0; i < weight.size(); ++i)
    if ((left -= weight[i]) <= 0) return order[i];
  return order[std::size_t(kept) - 1];
}

// Logits of the token after `ids`.
std::vector<float> next_logits(train::Engine& e, std::span<const std::int32_t> ids) {
  const Scope scope(e.stream);
  const std::int64_t n = std::int64_t(ids.size()), padded = e.model->shape().padded_vocabulary();
  const Tensor tokens = e.stream.empty({n}, DType::i32), logits = e.stream.empty({1, padded}, e.precision.activations());
  upload(e.stream, ids.data(), tokens);
  e.model->last_logits(e.stream, {.tokens = tokens, .sequence = n}, {}, logits);
  std::vector<float> out(std::size_t(e.model->shape().vocabulary));
  const HostCopy shown(e.stream, logits);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = value_at(shown.tensor(), std::int64_t(i));
  return out;
}

ExitCode generate_text(const Options& o) {
  const auto tokenizer = o.open_tokenizer(o.tokenizer);
  const auto separator = tokenizer->document_separator();
  const auto prefix = tokenizer->document_prefix();
  std::vector<std::int32_t> ids(prefix.begin(), prefix.end());
  tokenizer->encode(o.prompt, ids);
  if (ids.empty() && !separator)
    throw ConfigError("--prompt is empty, and the tokenizer has no token that could begin a text; give a prompt");
  if (ids.empty()) ids.push_back(*separator);
  const std::int64_t longest = o.max_sequence();
  const auto engine = o.load(std::min<std::int64_t>(longest, std::int64_t(ids.size()) + std::min(longest, o.tokens)));
  if (tokenizer->vocab_size() > engine->model->shape().vocabulary)
    throw ConfigError(format("{} has {} tokens, the model {}; it was trained with another one", tokenizer->name(), tokenizer->vocab_size(),
                             engine->model->shape().vocabulary));
  output::write(o.prompt);
  tokenizer::TextStream text(*tokenizer, ids);
  for (std::int64_t i = 0; i < o.tokens; ++i) {
    const std::size_t window = std::min(ids.size(), std::size_t(longest));
    const std::int32_t next = choose(next_logits(*engine, std::span(ids).last(window)), o, std::uint64_t(i));
    if (next == separator) break;
    ids.push_back(next);
    output::write(text.next(next));
    output::finish();
  }
  output::write(text.finish() + "\n");
  return ExitCode::done;
}

}  // namespace

void add_generate(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("generate", "Generate text",
                                    "  octet generate runs/bf16 --prompt '#include <'\n"
                                    "  octet generate runs/current --recipe current --temperature 0 --tokens 100");
  o->add_to(command);
  command.option("--prompt", o->prompt, "text to continue", {.may_be_empty = true});
  command.option("--tokens", o->tokens, "tokens to generate", {.at_least = 1});
  command.option("--temperature", o->temperature, "0: always the most likely token", {.at_least = 0});
  command.option("--top-k", o->top_k, "draw from this many most likely tokens; 0: from all", {.at_least = 0});
  command.option("--seed", o->seed, "of the draws");
  command.option("--tokenizer", o->tokenizer, "a tokenizer.json, a folder that has one, or byte; without it, the model folder's");
  command.run([o] { return generate_text(*o); });
}

}  // namespace octet::cli

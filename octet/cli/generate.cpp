#include "octet/base/output.hpp"
#include "octet/cli/model_options.hpp"
#include "octet/tokenizer/text_stream.hpp"
#include "octet/train/step/generate.hpp"

namespace octet::cli {
namespace {

struct Options : ModelOptions {
  std::string prompt = "#include <", tokenizer, as = "text";
  std::int64_t tokens = 200, seed = 1;
  train::Sampling sampling;
};

/// Writes tokens as they are generated: text, after the prompt's; or ids without the prompt's, separated by spaces.
class Writer {
 public:
  Writer(const Options& o, const tokenizer::Tokenizer& tokenizer, std::span<const std::int32_t> prompt)
      : as_text_(o.as == "text"), text_(tokenizer, prompt) {
    if (as_text_) output::write(o.prompt);
  }
  void add(std::int32_t id) {
    output::write(as_text_ ? text_.next(id) : format("{}{}", first_ ? "" : " ", id));
    output::finish();
    first_ = false;
  }
  void finish() { output::write((as_text_ ? text_.finish() : "") + "\n"); }

 private:
  bool as_text_, first_ = true;
  tokenizer::TextStream text_;
};

ExitCode generate_text(const Options& o) {
  const auto tokenizer = o.open_tokenizer(o.tokenizer);
  std::vector<std::int32_t> ids = train::prompt_ids(*tokenizer, o.prompt);
  if (ids.empty()) throw ConfigError("--prompt is empty, and the tokenizer has no token that could begin a text; give a prompt");
  const std::vector<std::int64_t> ends = o.end_ids(*tokenizer);
  const std::int64_t longest = o.max_sequence();
  const auto engine = o.load(std::min<std::int64_t>(longest, std::int64_t(ids.size()) + std::min(longest, o.tokens)));
  if (tokenizer->vocab_size() > engine->model->shape().vocabulary)
    throw ConfigError(format("{} has {} tokens, the model {}; it was trained with another one", tokenizer->name(), tokenizer->vocab_size(),
                             engine->model->shape().vocabulary));
  train::Sampling sampling = o.sampling;
  sampling.seed = std::uint64_t(o.seed);
  Writer writer(o, *tokenizer, ids);
  const train::GenerationEnd end = train::generate(
      *engine, ids, {.sampling = sampling, .tokens = o.tokens, .longest = longest, .ends = ends}, [&](std::int32_t id) { writer.add(id); });
  writer.finish();
  if (end == train::GenerationEnd::not_finite)
    throw DataError(
        format("{}: the model's logits are not finite: the weights are damaged, or their training diverged; octet inspect shows them",
               printable(o.source().folder)));
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
  command.option("--temperature", o->sampling.temperature, "0: always the most likely token", {.at_least = 0});
  command.option("--top-k", o->sampling.top_k, "draw from this many most likely tokens; 0: from all", {.at_least = 0});
  command.option("--top-p", o->sampling.top_p, "draw from the fewest most likely tokens that have this probability together",
                 {.at_least = 0, .at_most = 1});
  command.option("--seed", o->seed, "of the draws");
  command.option("--tokenizer", o->tokenizer, "a tokenizer.json, a folder that has one, or byte; without it, the model folder's");
  command.option("--as", o->as, "print text, or ids of tokens", {.one_of = {"text", "ids"}});
  command.run([o] { return generate_text(*o); });
}

}  // namespace octet::cli

#include "octet/base/file.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/generation_options.hpp"
#include "octet/cli/generation_pace.hpp"
#include "octet/data/json_lines.hpp"
#include "octet/json/fields.hpp"

namespace octet::cli {
namespace {

using Ids = std::vector<std::int32_t>;

struct Options : GenerationOptions {
  std::string prompt = "#include <", prompts, as = "text";
  std::int64_t batch = 8;
};

/// Writes tokens as they are generated: text, after the prompt's; or ids without the prompt's, separated by spaces.
class Writer {
 public:
  Writer(const Options& o, const tokenizer::Tokenizer& tokenizer, std::span<const std::int32_t> prompt)
      : as_text_(o.as == "text"), text_(tokenizer, prompt, o.stops) {
    if (as_text_) output::write(o.prompt);
  }
  /// False: a stop string ended the text.
  bool add(std::int32_t id) {
    const std::string shown = text_.next(id);
    output::write(as_text_ ? shown : format("{}{}", first_ ? "" : " ", id));
    output::finish();
    first_ = false;
    return !text_.stopped();
  }
  void finish() { output::write((as_text_ ? text_.finish() : "") + "\n"), output::finish(); }

 private:
  bool as_text_, first_ = true;
  GeneratedText text_;
};

Ids encoded(const Options& o, const tokenizer::Tokenizer& tokenizer, const std::string& prompt, const std::string& place) {
  Ids ids = train::prompt_ids(tokenizer, prompt);
  if (ids.empty()) throw ConfigError(place + " is empty, and the tokenizer has no token that could begin a text; give a prompt");
  if (std::int64_t(ids.size()) > o.max_sequence())
    throw ConfigError(format("{} has {} tokens, and the model in {} reads at most {}; shorten it", place, ids.size(),
                             printable(o.source().folder), o.max_sequence()));
  return ids;
}

std::int64_t longest_of(const Options& o, std::size_t prompt) {
  return std::min<std::int64_t>(o.max_sequence(), std::int64_t(prompt) + std::min(o.max_sequence(), o.tokens));
}

void generate_one(const Options& o, const tokenizer::Tokenizer& tokenizer) {
  Ids ids = encoded(o, tokenizer, o.prompt, "--prompt");
  const std::vector<std::int64_t> ends = o.end_ids(tokenizer);
  GenerationPace pace;
  const auto engine = o.load(longest_of(o, ids.size()));
  const auto decoder = train::Decoder::make(*engine, o.decoding(1, engine->longest_sequence));
  Writer writer(o, tokenizer, ids);
  pace.loaded(), pace.begin_batch();
  const auto end = train::generate(*engine, *decoder, std::span(&ids, 1), o.generation(ends), [&](std::size_t, std::int32_t id) {
    pace.token();
    return writer.add(id);
  });
  writer.finish();
  pace.tell();
  if (end.front() == train::GenerationEnd::not_finite) o.refuse_logits();
}

std::vector<std::string> read_prompts(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t(1) << 30;
  std::vector<std::string> out;
  const auto take = [&](std::string_view line, const std::string& place) {
    const json::Value value = json::parse({.text = line, .file = place, .place = json::Place::column});
    out.push_back(json::Fields(value, place).text("prompt"));
    return true;
  };
  data::each_line(false, "each line is an object {\"prompt\": \"...\"}", read_file(path, most_bytes), path, 1, take);
  if (out.empty()) throw DataError(format("{} has no prompts; each line is an object {\"prompt\": \"...\"}", printable(path)));
  return out;
}

/// A text of a batch, as a line of JSON.
struct Line {
  std::string prompt, text;
  std::int64_t tokens = 0;
  GeneratedText shown;

  bool add(std::int32_t id) {
    text += shown.next(id), ++tokens;
    return !shown.stopped();
  }
  std::string json(train::GenerationEnd end) {
    text += shown.finish();
    const auto quoted = [](const std::string& s) { return json::quoted(s, json::Invalid::replace); };
    return format("{\"prompt\":{},\"text\":{},\"tokens\":{},\"end\":{}}\n", quoted(prompt), quoted(text), tokens,
                  quoted(std::string(name(end))));
  }
};

void generate_batches(const Options& o, const tokenizer::Tokenizer& tokenizer) {
  if (o.as == "ids") throw ConfigError("--prompts writes lines of JSON; leave --as out");
  const std::vector<std::string> prompts = read_prompts(o.prompts);
  std::vector<Ids> texts;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    texts.push_back(encoded(o, tokenizer, prompts[i], format("prompt {} of {}", i + 1, printable(o.prompts))));
    longest = std::max(longest, texts.back().size());
  }
  const std::vector<std::int64_t> ends = o.end_ids(tokenizer);
  GenerationPace pace;
  const auto engine = o.load(longest_of(o, longest));
  const std::size_t batch = std::min(std::size_t(o.batch), texts.size());
  const auto decoder = train::Decoder::make(*engine, o.decoding(std::int64_t(batch), engine->longest_sequence));
  pace.loaded();
  for (std::size_t first = 0; first < texts.size(); first += batch) {
    const std::span<Ids> part = std::span(texts).subspan(first, std::min(batch, texts.size() - first));
    std::vector<Line> lines;
    for (std::size_t i = 0; i < part.size(); ++i) lines.push_back({prompts[first + i], "", 0, GeneratedText(tokenizer, part[i], o.stops)});
    pace.begin_batch();
    const auto end = train::generate(*engine, *decoder, part, o.generation(ends), [&](std::size_t i, std::int32_t id) {
      pace.token();
      return lines[i].add(id);
    });
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (end[i] == train::GenerationEnd::not_finite) o.refuse_logits();
      output::write(lines[i].json(end[i]));
    }
    output::finish();
  }
  pace.tell();
}

ExitCode generate_text(const Options& o) {
  o.check_values();
  const auto tokenizer = o.open_tokenizer(o.tokenizer);
  o.require_vocabulary(*tokenizer);
  if (o.prompts.empty()) generate_one(o, *tokenizer);
  else generate_batches(o, *tokenizer);
  return ExitCode::done;
}

}  // namespace

void add_generate(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("generate", "Generate text",
                                    "  octet generate runs/bf16 --prompt '#include <'\n"
                                    "  octet generate runs/current --recipe current --temperature 0 --tokens 100\n"
                                    "  octet generate Qwen3-0.6B --prompts prompts.jsonl --batch 16 --stop '\\n\\n' > answers.jsonl");
  o->add_to(command);
  command.option("--prompt", o->prompt, "text to continue", {.may_be_empty = true});
  command.option("--prompts", o->prompts, "JSON lines {\"prompt\": ...} instead: write a line with the text of each");
  command.option("--batch", o->batch, "with --prompts: texts that are generated side by side", {.at_least = 1, .at_most = 4096});
  command.option("--as", o->as, "print text, or ids of tokens", {.one_of = {"text", "ids"}});
  command.run([o] { return generate_text(*o); });
}

}  // namespace octet::cli

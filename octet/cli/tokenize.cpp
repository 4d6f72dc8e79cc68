#include <unistd.h>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/path.hpp"
#include "octet/cli/command.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/models/chat_template.hpp"

namespace octet::cli {
namespace {

constexpr double least_mb = 1e-6;  // a byte

struct Options {
  std::vector<std::string> inputs;
  std::string output, model, chat_template;
  bool chat = false, pairs = false;
  double max_mb = 0;
  std::int64_t shard_bytes = std::int64_t(data::TokenizeOptions{}.shard_bytes);
  data::TokenizeOptions tokenize;
};

models::ChatTemplate chat_template_of(const Options& o) {
  const std::string& tokenizer = o.tokenize.tokenizer;
  const std::string folder = tokenizer == data::TokenizeOptions{}.tokenizer ? "" : is_folder(tokenizer) ? tokenizer : folder_of(tokenizer);
  if (!o.chat_template.empty()) return models::ChatTemplate::named(o.chat_template, folder.empty() ? "" : models::begin_of_text(folder));
  if (folder.empty())
    throw ConfigError(format("{} needs the template of a model: name its folder with --model, or a template with --chat-template",
                             o.pairs ? "--pairs" : "--chat"));
  return models::ChatTemplate::of_folder(folder);
}

class Bar final : public data::TokenizeProgress {
 public:
  void advance(std::uint64_t done, std::uint64_t total) override {
    if (isatty(STDERR_FILENO) == 0 || total == 0) return;
    constexpr int width = 40;
    const int filled = int(double(width) * double(done) / double(total));
    std::fprintf(stderr, "\r[%s%s] %3d%%  %s of %s\x1b[K", std::string(std::size_t(filled), '#').c_str(),
                 std::string(std::size_t(width - filled), '.').c_str(), int(100.0 * double(done) / double(total)),
                 bytes_text(double(done)).c_str(), bytes_text(double(total)).c_str());
    if (done == total) std::fputc('\n', stderr);
  }
};

ExitCode run(Options& o) {
  if (o.max_mb > 0 && o.max_mb < least_mb) throw ConfigError(format("--max-mb {}: less than one byte; 0 takes all files", o.max_mb));
  o.tokenize.max_bytes = std::uint64_t(o.max_mb * 1e6), o.tokenize.shard_bytes = std::uint64_t(o.shard_bytes);
  if (!o.model.empty()) {
    if (o.tokenize.tokenizer != data::TokenizeOptions{}.tokenizer)
      throw ConfigError("--tokenizer and --model both name a tokenizer; leave one out");
    o.tokenize.tokenizer = o.model;
  }
  if (o.chat && o.pairs) throw ConfigError("--chat and --pairs are two forms of JSON lines; leave one out");
  o.tokenize.pairs = o.pairs;
  const bool conversations = o.chat || o.pairs;
  if (!conversations && !o.chat_template.empty())
    throw ConfigError("--chat-template is that of conversations; give --chat, too, or --pairs");
  if (conversations) o.tokenize.chat = [form = chat_template_of(o)](const auto& messages) { return form.render(messages); };
  Bar bar;
  const data::TokenizeResult r = data::tokenize(o.inputs, o.output, o.tokenize, &bar);
  const std::string units = o.pairs ? counted((long long)r.documents / 2, "pair") : counted((long long)r.documents, "document");
  output::print("{}: {} in {}, {} of text, {}\n", printable(o.output), counted((long long)r.tokens, "token"), units,
                bytes_text(double(r.bytes)), counted((long long)r.shards, "shard"));
  if (r.bad_lines > 0) log::warn("left out: {}", counted((long long)r.bad_lines, "bad line"));
  if (r.empty_files + r.empty_lines > 0)
    log::info("without text, and so without a document: {} and {}", counted((long long)r.empty_files, "file"),
              counted((long long)r.empty_lines, "line"));
  if (r.replaced > 0)
    log::warn("{} invalid UTF-8 sequences were encoded as U+FFFD; the byte tokenizer keeps every byte", grouped((long long)r.replaced));
  if (r.separators > 0)
    log::warn("the texts contain the token that ends a document {} times; each is an end of a document to the model",
              grouped((long long)r.separators));
  return ExitCode::done;
}

}  // namespace

void add_tokenize(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("tokenize", "Convert text files and JSON lines to a token folder",
                                    "  octet tokenize --input 'docs/**/*.md' --output data/docs\n"
                                    "  octet tokenize --input '/usr/include/**/*.h' --max-mb 20 --output data/headers --force\n"
                                    "  octet tokenize --chat --model Qwen3-0.6B --input chat.jsonl --output data/chat\n"
                                    "  octet tokenize --pairs --model Qwen3-0.6B --input pairs.jsonl --output data/pairs\n"
                                    "  octet tokenize --input 'web-*.jsonl.zst' --field content --output data/web",
                                    Result::file);
  command.option("-i,--input", o->inputs,
                 "files or patterns, quoted: *, ?, ** for any folders; may be repeated; .gz and .zst are decompressed", 0, true);
  command.option("-o,--output", o->output, "folder to create", {}, true);
  command.option("--tokenizer", o->tokenize.tokenizer, "a tokenizer.json, a folder that has one, or byte: one token per byte");
  command.option("--model", o->model, "Hugging Face folder whose tokenizer to use");
  command.option("--end-of-document", o->tokenize.end_of_document,
                 "token that ends each document; without it, eos_token of the tokenizer's folder");
  command.option("--max-mb", o->max_mb, "stop before the file that would pass this many megabytes of text, decompressed; 0: all",
                 {.at_least = 0, .at_most = 1e12});
  command.option("--field", o->tokenize.field, "member of each object in JSON lines (.jsonl, .ndjson) that has the text");
  command.flag("--chat", o->chat,
               "JSON lines are conversations, of which a model learns the answers alone: messages, ShareGPT, prompt and completion, or "
               "instruction and output");
  command.flag("--pairs", o->pairs,
               "JSON lines are pairs of a chosen and a rejected answer to a prompt, of which training with dpo.beta learns preferences");
  command.option("--chat-template", o->chat_template,
                 "with --chat or --pairs: " + joined(models::ChatTemplate::names()) + "; without it, that of the tokenizer's folder");
  command.flag("--skip-bad-lines", o->tokenize.skip_bad_lines, "leave out JSON lines without such a text, and count them");
  command.option("--shard-bytes", o->shard_bytes, "largest size of a shard file", {.at_least = 1024});
  command.flag("--any-bytes", o->tokenize.any_bytes,
               "take files that are no text as they are, such as images and tables: their bytes become tokens");
  command.flag("--force", o->tokenize.force, "replace an existing token folder");
  command.run([o] { return run(*o); });
}

}  // namespace octet::cli

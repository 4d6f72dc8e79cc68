#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "octet/base/descriptor.hpp"
#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/base/path.hpp"
#include "octet/cli/command.hpp"
#include "octet/data/json_lines.hpp"
#include "octet/data/text_check.hpp"
#include "octet/data/text_source.hpp"
#include "octet/json/value.hpp"
#include "octet/tokenizer/bpe_tokenizer.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/word_counts.hpp"

namespace octet::cli {
namespace {

constexpr std::size_t most_text = std::size_t(1) << 30;

struct Options {
  std::string action, tokenizer, output;
  std::vector<std::string> inputs, special;
  std::int64_t vocabulary = 32000, least_count = 2, threads = 0;
  double max_mb = 0;
  bool force = false;
  std::string field = "text", digits{tokenizer::pattern_digits[0]};
};

/// Adds the words of the next pieces to `own` until there are no more. `mutex` guards the reader.
void count_pieces(data::PieceReader& reader, std::mutex& mutex, const data::JsonLines& lines, tokenizer::WordCounts& own) {
  const auto next = [&] {
    const std::scoped_lock lock(mutex);
    return reader.next();
  };
  for (auto piece = next(); piece; piece = next()) {
    if (!piece->json_lines) own.add(piece->text);
    else data::each_document(lines, piece->text, piece->path, piece->first_line, [&](std::string_view text) { own.add(text); });
  }
}

/// Counts the words of all files with `threads` threads.
void count_words(data::PieceReader& reader, const data::JsonLines& lines, const tokenizer::Regex& pattern, int threads,
                 tokenizer::WordCounts& all) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    tokenizer::WordCounts own(pattern);
    std::exception_ptr failed;
    try {
      count_pieces(reader, mutex, lines, own);
    } catch (...) {
      failed = std::current_exception();
    }
    const std::scoped_lock lock(mutex);
    if (failed) error = failed;
    all.join(own);
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

void show_progress(std::size_t done, std::size_t total) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%s of %s tokens\x1b[K", grouped((long long)done).c_str(), grouped((long long)total).c_str());
  if (done >= total) std::fputc('\n', stderr);
}

/// For transformers, which reads the token that ends a text from here.
std::string config_text(const std::string& end) {
  json::Value config = json::Object();
  config.set("tokenizer_class", "PreTrainedTokenizerFast").set("eos_token", end).set("clean_up_tokenization_spaces", false);
  return config.dump(json::Layout::indented) + "\n";
}

void require_train_options(const Options& o) {
  if (o.inputs.empty()) throw ConfigError("nothing to train on: name the text with --input, such as --input 'docs/**/*.md'");
  if (o.output.empty()) throw ConfigError("--output is missing: name the tokenizer.json to write");
  if (!o.tokenizer.empty()) throw ConfigError("--tokenizer is for encode, decode and inspect; train makes a new one");
  const auto least = std::int64_t(tokenizer::byte_tokens().size() + o.special.size());
  if (o.vocabulary < least)
    throw ConfigError(format("--vocabulary must be at least {}: the bytes and the special tokens, got {}", least, o.vocabulary));
  if (const int reason = make_folders(folder_of(o.output))) refuse_file("create", folder_of(o.output), reason);
  require_writable(o.output);
  if (std::error_code ignored; !o.force && std::filesystem::is_regular_file(o.output, ignored))
    throw ConfigError(
        format("--output {}: the file is there already, and datasets and models are bound to it; give --force to replace it, or "
               "name another file",
               printable(o.output)));
}

ExitCode train(Options o) {
  if (o.special.empty()) o.special = {"<|endoftext|>"};
  require_train_options(o);
  const std::string pattern(tokenizer::pattern_with_digits(o.digits));
  const tokenizer::BpeTokenizer bytes(tokenizer::tokenizer_json({tokenizer::byte_tokens(), {}}, pattern, o.special),
                                      "the vocabulary of bytes");
  const tokenizer::Regex regex(pattern, "the pattern", "train");
  const data::Selection selection = data::select_files(o.inputs, std::uint64_t(o.max_mb * 1e6));
  data::require_text(selection);
  const int threads = o.threads > 0 ? int(o.threads) : std::max(1, int(std::thread::hardware_concurrency()));
  tokenizer::WordCounts words(regex);
  data::PieceReader reader(selection.files, bytes);
  count_words(reader, {.field = o.field}, regex, threads, words);
  const std::size_t size = std::size_t(o.vocabulary) - o.special.size();
  const auto bpe = tokenizer::train_bpe(words.counts(), size, std::uint64_t(o.least_count), [&](std::size_t n) { show_progress(n, size); });
  show_progress(size, size);
  if (bpe.tokens.size() < size)
    log::warn("the text has only {} pairs that occur {} times, so the vocabulary has {} tokens instead of {}", bpe.merges.size(),
              o.least_count, bpe.tokens.size() + o.special.size(), o.vocabulary);
  write_file(o.output, tokenizer::tokenizer_json(bpe, pattern, o.special));
  const std::string config = folder_of(o.output) + "/" + tokenizer::config_file_name;
  if (exists(config)) log::warn("{} exists and was not changed; its eos_token must be a token of the new tokenizer", printable(config));
  else write_file(config, config_text(o.special.front()));
  output::print("{}: {} tokens from {} of text, {} different words\n", printable(o.output),
                grouped(std::int64_t(bpe.tokens.size()) + std::int64_t(o.special.size())), bytes_text(double(selection.bytes)),
                grouped((long long)words.counts().size()));
  return ExitCode::done;
}

/// The text of the --input files one after another, or of standard input.
std::string input_text(const Options& o) {
  std::string text;
  for (const std::string& path : o.inputs) text += read_file(path, most_text);
  if (!o.inputs.empty()) return text;
  char buffer[1 << 16];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    text.append(buffer, n);
    if (text.size() > most_text)
      throw DataError(format("standard input: at most {} are encoded at once; use octet tokenize", bytes_text(double(most_text))));
  }
  if (std::ferror(stdin) != 0) throw IoError("cannot read standard input");
  return text;
}

std::unique_ptr<const tokenizer::Tokenizer> opened(const Options& o) {
  if (o.tokenizer.empty()) throw ConfigError("--tokenizer is missing: name a tokenizer.json, a folder that has one, or byte");
  return tokenizer::open_tokenizer(o.tokenizer);
}

ExitCode encode(const Options& o) {
  std::vector<std::int32_t> ids;
  const std::size_t replaced = opened(o)->encode(input_text(o), ids);
  for (std::size_t i = 0; i < ids.size(); ++i) output::write((i > 0 ? " " : "") + std::to_string(ids[i]));
  output::write("\n");
  if (replaced > 0) log::warn("{} invalid UTF-8 sequences were encoded as U+FFFD", replaced);
  return ExitCode::done;
}

ExitCode decode(const Options& o) {
  const auto tokenizer = opened(o);
  std::vector<std::int32_t> ids;
  const std::string text = input_text(o);
  for (const char* at = text.c_str(); *(at += std::strspn(at, " \t\r\n")) != 0;) {
    char* end = nullptr;
    errno = 0;
    const long id = std::strtol(at, &end, 10);
    if (end == at || errno != 0 || id < 0 || id >= tokenizer->vocab_size())
      throw DataError(format("each id must be a number from 0 to {}, got '{}'", tokenizer->vocab_size() - 1,
                             printable(std::string_view(at, std::min(std::strlen(at), std::strcspn(at, " \t\r\n"))), 40)));
    ids.push_back(std::int32_t(id)), at = end;
  }
  output::write(tokenizer->decode(ids));
  return ExitCode::done;
}

ExitCode inspect_tokenizer(const Options& o) {
  const auto tokenizer = opened(o);
  const auto separator = tokenizer->document_separator();
  output::print("tokenizer        {}\nids              {}\nidentity         {}\n", printable(o.tokenizer), grouped(tokenizer->vocab_size()),
                tokenizer->name());
  output::print("ends a document  {}\n", separator ? "id " + std::to_string(*separator) : std::string("unknown"));
  const auto* bpe = dynamic_cast<const tokenizer::BpeTokenizer*>(tokenizer.get());
  if (bpe == nullptr) return ExitCode::done;
  output::print("model            BPE of {}, {} merges\n",
                bpe->model().byte_level()      ? "bytes"
                : bpe->model().byte_fallback() ? "characters, bytes for others"
                                               : "characters",
                grouped((long long)bpe->model().merges()));
  for (const auto& token : bpe->added_tokens())
    output::print("{}  {}{}\n", token.special ? "special token  " : "added token    ", printable(token.content),
                  "  id " + std::to_string(token.id));
  return ExitCode::done;
}

}  // namespace

void add_tokenizer(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("tokenizer", "Train or inspect a tokenizer, encode or decode text",
                                    "  octet tokenizer train --input 'docs/**/*.md' --vocabulary 32000 --output tokenizer/tokenizer.json\n"
                                    "  octet tokenizer inspect --tokenizer tokenizer/tokenizer.json\n"
                                    "  octet tokenizer encode --tokenizer tokenizer/tokenizer.json --input text.txt\n"
                                    "  echo 72 105 | octet tokenizer decode --tokenizer byte");
  command.positional("action", o->action, "train, inspect, encode or decode", true);
  command.option("--tokenizer", o->tokenizer, "a tokenizer.json, a folder that has one, or byte");
  command.option("-i,--input", o->inputs, "train: files or patterns, quoted; encode, decode: files instead of standard input");
  command.option("-o,--output", o->output, "train: the tokenizer.json to write");
  command.option("--vocabulary", o->vocabulary, "train: number of ids", {.at_least = 1, .at_most = 1 << 24});
  command.option("--digits", o->digits, "train: digits that a token may have: up to 3 as Llama 3, 1 as Qwen2, or any number as GPT-2",
                 {.one_of = {tokenizer::pattern_digits.begin(), tokenizer::pattern_digits.end()}});
  command.option("--special", o->special,
                 "train: a special token, may be repeated; the first one ends documents. Without it: <|endoftext|>");
  command.option("--least-count", o->least_count, "train: occurrences that a new token needs", {.at_least = 1});
  command.option("--field", o->field, "train: member of each object in JSON lines (.jsonl, .ndjson) that has the text");
  command.option("--max-mb", o->max_mb, "train: stop before the file that would pass this many megabytes of text, decompressed; 0: all",
                 {.at_least = 0, .at_most = 1e12});
  command.flag("--force", o->force, "train: replace a file that is there");
  command.option("--threads", o->threads, "train: threads that count words; 0: one for each processor", {.at_least = 0, .at_most = 256});
  command.run([o] {
    if (o->action == "train") return train(*o);
    if (o->action == "inspect") return inspect_tokenizer(*o);
    if (o->action == "encode") return encode(*o);
    if (o->action == "decode") return decode(*o);
    const std::string near = nearest(o->action, {"train", "inspect", "encode", "decode"});
    throw ConfigError(format("octet tokenizer has no action '{}'{}; there are train, inspect, encode and decode", printable(o->action),
                             near.empty() ? "" : ", did you mean '" + near + "'?"));
  });
}

}  // namespace octet::cli

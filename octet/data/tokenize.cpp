#include "octet/data/tokenize.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/conversation.hpp"
#include "octet/data/dataset_writer.hpp"
#include "octet/data/json_lines.hpp"
#include "octet/data/text_check.hpp"
#include "octet/data/text_source.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

/// The ids of a document or of a part of one: those before `end`, from the end of the part before.
struct Part {
  std::size_t end = 0;
  bool begins_document = true, ends_document = true;
};

struct Encoded {
  std::vector<std::int32_t> ids;
  std::vector<Part> parts;
  std::uint64_t text_bytes = 0;
  LineCounts lines;
  std::size_t replaced = 0;  // invalid UTF-8 sequences
  std::exception_ptr error;
};

/// How pieces become ids.
struct Encoding {
  const tokenizer::Tokenizer& tokenizer;
  JsonLines lines;
  tokenizer::ChatForm chat;  // JSON lines are conversations
  bool pairs = false;        // or pairs of answers
};

// A conversation, or the two of a pair.
void encode_line(std::string_view line, const std::string& place, const Encoding& how, Encoded& to) {
  const auto add = [&](const std::vector<tokenizer::ChatSpan>& parts) {
    to.text_bytes += encode_conversation(how.tokenizer, parts, to.ids);
    to.parts.push_back({to.ids.size(), true, true});
  };
  if (!how.pairs) return add(how.chat(conversation_of(line, place)));
  const AnswerPair pair = answer_pair_of(line, place);
  for (const auto& answer : {pair.chosen, pair.rejected}) add(parts_of_answer(how.chat, pair, answer));
}

void encode_conversations(const Piece& piece, const Encoding& how, Encoded& to) {
  if (!piece.json_lines)
    throw ConfigError(format("'{}': {} reads JSON lines, of files that end with .jsonl or .ndjson", printable(piece.path),
                             how.pairs ? "--pairs" : "--chat"));
  to.lines = each_line(how.lines.skip_bad, "correct the line, or leave bad lines out with octet tokenize --skip-bad-lines", piece.text,
                       piece.path, piece.first_line, [&](std::string_view line, const std::string& place) {
                         encode_line(line, place, how, to);
                         return true;
                       });
}

void encode(const Piece& piece, const Encoding& how, Encoded& to) {
  if (how.chat) return encode_conversations(piece, how, to);
  const auto add = [&](std::string_view text, bool begins, bool ends) {
    to.replaced += how.tokenizer.encode(text, to.ids, begins ? tokenizer::Position::start : tokenizer::Position::continued);
    to.parts.push_back({to.ids.size(), begins, ends});
    to.text_bytes += text.size();
  };
  if (!piece.json_lines) return add(piece.text, piece.begins_document, piece.ends_document);
  to.lines = each_document(how.lines, piece.text, piece.path, piece.first_line, [&](std::string_view text) { add(text, true, true); });
}

/// Encodes every piece, each into its own place. The first error in the order of the text is thrown.
void encode_all(const std::vector<Piece>& pieces, const Encoding& how, int threads, std::vector<Encoded>& encoded) {
  encoded.assign(pieces.size(), {});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      try {
        encode(pieces[i], how, encoded[i]);
      } catch (...) {
        encoded[i].error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(std::size_t(threads), pieces.size()); ++t) others.emplace_back(work);
    work();
  }
  for (const Encoded& e : encoded)
    if (e.error) std::rethrow_exception(e.error);
}

/// The token stream on its way into shards.
class Stream {
 public:
  /// `separator`: the id that ends each document. Conversations have their own begin and end, and marks.
  Stream(const Encoding& how, std::int32_t separator, std::uint64_t shard_bytes, DatasetWriter& writer)
      : separator_(separator), builder_(how.tokenizer, shard_bytes, bool(how.chat), how.pairs), writer_(writer) {
    if (how.chat) return;
    const tokenizer::Tokenizer& tokenizer = how.tokenizer;
    prefix_ = tokenizer.document_prefix();
    const auto suffix = tokenizer.document_suffix();
    end_.assign(suffix.begin(), suffix.end());
    if (end_.empty() || end_.back() != separator) end_.push_back(separator);
  }

  void add(const Encoded& encoded) {
    std::size_t begin = 0;
    for (const Part& part : encoded.parts) {
      add(part, std::span(encoded.ids).subspan(begin, part.end - begin));
      begin = part.end;
    }
  }
  /// Separators that the texts themselves contain.
  std::uint64_t separators() const { return separators_; }

  void finish() {
    if (!builder_.empty()) writer_.add(builder_.finish());
  }

 private:
  void add(const Part& part, std::span<const std::int32_t> ids) {
    if (part.begins_document) {
      builder_.begin_document();
      add(prefix_);
    }
    if (!end_.empty()) separators_ += std::uint64_t(std::ranges::count(ids, separator_));
    add(ids);
    if (part.ends_document) add(end_);
  }
  void add(std::span<const std::int32_t> ids) {
    while (!ids.empty()) {
      ids = ids.subspan(builder_.append(ids));
      if (!ids.empty()) finish();
    }
  }

  std::span<const std::int32_t> prefix_;
  std::vector<std::int32_t> end_;
  std::int32_t separator_;
  std::uint64_t separators_ = 0;
  ShardBuilder builder_;
  DatasetWriter& writer_;
};

/// As many pieces as keep every thread busy for a while.
std::vector<Piece> next_wave(PieceReader& reader, int threads) {
  const std::size_t enough = 2 * PieceReader::piece_bytes * std::size_t(threads);
  std::vector<Piece> wave;
  std::size_t bytes = 0;
  while (bytes < enough) {
    std::optional<Piece> piece = reader.next();
    if (!piece) break;
    bytes += piece->text.size();
    wave.push_back(std::move(*piece));
  }
  return wave;
}

/// Shards read as text are never meant, and happen when a pattern such as '**/*' meets an earlier output.
void refuse_own_output(const Selection& selection, const std::string& output) {
  std::error_code ignored, unusable;
  const std::string folder = (fs::weakly_canonical(output, unusable) / "").string();
  if (unusable) return;  // refused when it is made
  for (const TextFile& file : selection.files)
    if (fs::weakly_canonical(file.path, ignored).string().starts_with(folder))
      throw ConfigError(format("the input '{}' lies in the output folder '{}'; choose another --output folder or a narrower --input",
                               printable(file.path), printable(output)));
}

std::int32_t separator_of(const tokenizer::Tokenizer& tokenizer, const std::string& name) {
  if (tokenizer.document_separator()) return *tokenizer.document_separator();
  throw ConfigError(format(
      "the tokenizer '{}' does not say which token ends a document: neither {} nor generation_config.json beside it has one; name it "
      "with --end-of-document, such as --end-of-document '<|endoftext|>'",
      printable(name), tokenizer::config_file_name));
}

[[noreturn]] void refuse_no_text(const Selection& selection, const LineCounts& lines) {
  throw DataError(format("{}: the corpus has no text: {}, {} with an empty text, {}; choose files with text",
                         printable(selection.files.front().path), counted((long long)selection.files.size(), "file"),
                         counted((long long)lines.empty, "line"), counted((long long)lines.bad, "bad line")));
}

int thread_count(const TokenizeOptions& options) {
  if (options.threads < 0) throw ConfigError(format("--threads must be 0 (one for each CPU) or more, got {}", options.threads));
  return options.threads > 0 ? options.threads : std::max(1, int(std::thread::hardware_concurrency()));
}

}  // namespace

TokenizeResult tokenize(const std::vector<std::string>& inputs, const std::string& output, const TokenizeOptions& options,
                        TokenizeProgress* progress) {
  const auto tokenizer = tokenizer::open_tokenizer(options.tokenizer, {.end_of_document = options.end_of_document});
  const std::int32_t separator = separator_of(*tokenizer, options.tokenizer);
  const Encoding how{*tokenizer, {options.field, options.skip_bad_lines}, options.chat, options.pairs};
  const int threads = thread_count(options);
  if (options.shard_bytes < ShardBuilder::least_shard_bytes)
    throw ConfigError(format("--shard-bytes must be at least {}, got {}", ShardBuilder::least_shard_bytes, options.shard_bytes));
  const Selection selection = select_files(inputs, options.max_bytes);
  refuse_own_output(selection, output);
  if (!options.any_bytes) require_text(selection, "; --any-bytes takes its bytes as they are");

  DatasetWriter writer(output, options.force);
  writer.set_tokenizer(*tokenizer, options.tokenizer);
  Stream stream(how, separator, options.shard_bytes, writer);
  PieceReader reader(selection.files, *tokenizer);
  TokenizeResult result{.empty_files = selection.empty_files, .left_out_files = selection.left_out_files};
  std::vector<Encoded> encoded;
  LineCounts counts;
  std::uint64_t done = 0;
  for (auto wave = next_wave(reader, threads); !wave.empty();) {
    auto following = std::async(std::launch::async, [&] { return next_wave(reader, threads); });  // reads and decompresses meanwhile
    encode_all(wave, how, threads, encoded);
    for (std::size_t i = 0; i < wave.size(); ++i) {
      stream.add(encoded[i]);
      counts.add(encoded[i].lines);
      done += wave[i].file_bytes, result.bytes += encoded[i].text_bytes, result.replaced += encoded[i].replaced;
    }
    if (progress) progress->advance(done, selection.bytes);
    wave = following.get();
  }
  stream.finish();
  if (result.bytes == 0) refuse_no_text(selection, counts);
  const Manifest& manifest = writer.commit();
  result.tokens = manifest.tokens, result.documents = manifest.documents, result.shards = manifest.shards.size();
  result.empty_files += reader.empty_files(), result.empty_lines = counts.empty, result.bad_lines = counts.bad;
  result.separators = stream.separators();
  return result;
}

}  // namespace octet::data

#include "octet/data/tokenize.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/dataset_writer.hpp"
#include "octet/data/text_source.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

struct Encoded {
  std::vector<std::int32_t> ids;
  std::size_t replaced = 0;
  std::exception_ptr error;
};

/// Reads and encodes every piece, each into its own place. The first error in the order of the text is thrown.
void encode_all(const std::vector<Piece>& pieces, const tokenizer::Tokenizer& tokenizer, int threads, std::vector<Encoded>& encoded) {
  encoded.resize(pieces.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      try {
        encoded[i].ids.clear();
        const auto position = pieces[i].begins_document() ? tokenizer::Position::start : tokenizer::Position::continued;
        encoded[i].replaced = tokenizer.encode(read_piece(pieces[i]), encoded[i].ids, position);
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
  /// `separator`: the id that ends each document.
  Stream(const tokenizer::Tokenizer& tokenizer, std::int32_t separator, std::uint64_t shard_bytes, DatasetWriter& writer)
      : prefix_(tokenizer.document_prefix()), separator_(separator), builder_(tokenizer, shard_bytes), writer_(writer) {
    const auto suffix = tokenizer.document_suffix();
    end_.assign(suffix.begin(), suffix.end());
    if (end_.empty() || end_.back() != separator) end_.push_back(separator);
  }

  void add(const Piece& piece, std::span<const std::int32_t> ids) {
    if (piece.begins_document()) {
      builder_.begin_document();
      add(prefix_);
    }
    separators_ += std::uint64_t(std::ranges::count(ids, separator_));
    add(ids);
    if (piece.ends_document()) add(end_);
  }
  /// Separators that the texts themselves contain.
  std::uint64_t separators() const { return separators_; }

  void finish() {
    if (!builder_.empty()) writer_.add(builder_.finish());
  }

 private:
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
std::vector<Piece> next_wave(PieceCutter& cutter, int threads) {
  const std::uint64_t enough = 2 * PieceCutter::piece_bytes * std::uint64_t(threads);
  std::vector<Piece> wave;
  std::uint64_t bytes = 0;
  while (bytes < enough) {
    const std::optional<Piece> piece = cutter.next();
    if (!piece) break;
    wave.push_back(*piece);
    bytes += piece->end - piece->begin;
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

int thread_count(const TokenizeOptions& options) {
  if (options.threads < 0) throw ConfigError(format("--threads must be 0 (one for each CPU) or more, got {}", options.threads));
  return options.threads > 0 ? options.threads : std::max(1, int(std::thread::hardware_concurrency()));
}

}  // namespace

TokenizeResult tokenize(const std::vector<std::string>& inputs, const std::string& output, const TokenizeOptions& options,
                        TokenizeProgress* progress) {
  const auto tokenizer = tokenizer::open_tokenizer(options.tokenizer, {.end_of_document = options.end_of_document});
  const std::int32_t separator = separator_of(*tokenizer, options.tokenizer);
  const int threads = thread_count(options);
  if (options.shard_bytes < ShardBuilder::least_shard_bytes)
    throw ConfigError(format("--shard-bytes must be at least {}, got {}", ShardBuilder::least_shard_bytes, options.shard_bytes));
  const Selection selection = select_files(inputs, options.max_bytes);
  refuse_own_output(selection, output);

  DatasetWriter writer(output, options.force);
  writer.set_tokenizer(*tokenizer, options.tokenizer);
  Stream stream(*tokenizer, separator, options.shard_bytes, writer);
  PieceCutter cutter(selection.files, *tokenizer);
  std::vector<Encoded> encoded;
  std::uint64_t done = 0, replaced = 0;
  for (auto wave = next_wave(cutter, threads); !wave.empty(); wave = next_wave(cutter, threads)) {
    encode_all(wave, *tokenizer, threads, encoded);
    for (std::size_t i = 0; i < wave.size(); ++i) {
      stream.add(wave[i], encoded[i].ids);
      done += wave[i].end - wave[i].begin, replaced += encoded[i].replaced;
    }
    if (progress) progress->advance(done, selection.bytes);
  }
  stream.finish();
  const Manifest& manifest = writer.commit();
  return {selection.bytes,       manifest.tokens,          manifest.documents, manifest.shards.size(),
          selection.empty_files, selection.left_out_files, replaced,           stream.separators()};
}

}  // namespace octet::data

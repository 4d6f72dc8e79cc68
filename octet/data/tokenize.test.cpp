#include "octet/data/tokenize.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "octet/data/compressed.testing.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/data/text_check.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

/// Every file of a folder with its bytes.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files[entry.path().filename().string()] = bytes_of(entry.path().string());
  return files;
}

struct Watch : TokenizeProgress {
  std::function<void()> also = [] {};
  std::vector<std::uint64_t> done;
  std::uint64_t total = 0;
  void advance(std::uint64_t bytes_done, std::uint64_t bytes_total) override {
    done.push_back(bytes_done), total = bytes_total;
    also();
  }
};

TEST(Tokenize, WritesTheSameBytesWhateverTheNumberOfThreads) {
  const Scratch scratch;
  auto texts = some_texts(200);
  texts[100] = noise(5'300'000, 3);  // several pieces
  write_corpus(scratch, texts);
  std::map<std::string, std::string> first;
  for (const int threads : {1, 3, 16}) {
    TokenizeOptions options;
    options.threads = threads, options.shard_bytes = 3'000'000, options.force = true;
    tokenize({scratch.at("text/*.txt")}, scratch.at("data"), options);
    if (first.empty()) {
      first = contents(scratch.at("data"));
      EXPECT_EQ(all_tokens(Dataset(scratch.at("data"))), stream_of(texts));
    }
    EXPECT_TRUE(contents(scratch.at("data")) == first) << threads << " threads";
  }
  EXPECT_EQ(first.size(), 5u) << "four shards and the manifest";
}

TEST(Tokenize, FilesStandInTheOrderOfTheirPathsEachOnce) {
  const Scratch scratch;
  scratch.write("b.txt", "B"), scratch.write("a/z.txt", "Z"), scratch.write("a.txt", "A"), scratch.write("c/empty.txt", "");
  const auto result = tokenize({scratch.at("b.txt"), scratch.at("**/*.txt"), scratch.at("a.txt")}, scratch.at("data"), {});
  EXPECT_EQ(all_tokens(Dataset(scratch.at("data"))), stream_of({"A", "Z", "B"})) << "'.' sorts before '/'";
  EXPECT_EQ(result.documents, 3u);
  EXPECT_EQ(result.bytes, 3u);
  EXPECT_EQ(result.tokens, 6u);
  EXPECT_EQ(result.shards, 1u);
  EXPECT_EQ(result.empty_files, 1u);
  EXPECT_EQ(result.left_out_files, 0u);
}

TEST(Tokenize, MaxBytesTakesWholeFilesFromTheFrontOfTheList) {
  const Scratch scratch;
  write_corpus(scratch, {"12345", "123", "12", "1"});
  const auto documents = [&](std::uint64_t max_bytes) {
    TokenizeOptions options;
    options.max_bytes = max_bytes, options.force = true;
    const auto result = tokenize({scratch.at("text/*")}, scratch.at("data"), options);
    EXPECT_EQ(result.documents + result.left_out_files, std::filesystem::exists(scratch.at("text/0001.txt.zst")) ? 5u : 4u);
    return result.documents;
  };
  EXPECT_EQ(documents(5), 1u);
  EXPECT_EQ(documents(7), 1u);
  EXPECT_EQ(documents(8), 2u);
  EXPECT_EQ(documents(10), 3u);
  EXPECT_EQ(documents(11), 4u);
  EXPECT_EQ(documents(0), 4u);
  EXPECT_EQ(error_of<ConfigError>([&] { documents(4); }), "the content of the first file '" + scratch.at("text/0000.txt") +
                                                              "' has more bytes than the limit, 4; raise --max-mb or choose other files");
  // A file of a few bytes whose content is large.
  scratch.write("text/0001.txt.zst", zstd(std::string(3'000'000, 'a')));
  EXPECT_EQ(documents(3'000'007), 2u);
  EXPECT_EQ(documents(3'000'008), 3u);
}

TEST(Tokenize, ProgressRisesToTheTotal) {
  const Scratch scratch;
  write_corpus(scratch, {noise(3'000'000, 1), noise(3'000'000, 2)});
  Watch watch;
  TokenizeOptions options;
  options.threads = 1;
  tokenize({scratch.at("text/*")}, scratch.at("data"), options, &watch);
  EXPECT_EQ(watch.total, 6'000'000u);
  ASSERT_GE(watch.done.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(watch.done));
  EXPECT_EQ(watch.done.back(), watch.total);
}

TEST(Tokenize, ADatasetThatIsThereIsReplacedOnlyByForceAndOnlyWhenTheNewOneIsWhole) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, some_texts(60), 1024);
  scratch.write("data/notes.txt", "the user's own");
  const auto before = contents(folder);
  TokenizeOptions options;
  options.threads = 1;
  EXPECT_EQ(error_of<ConfigError>([&] { tokenize({scratch.at("text/*")}, folder, options); }),
            "'" + folder + "' already holds a dataset; give --force to replace it, or another --output folder");

  options.force = true, options.shard_bytes = 1'000'000;  // two are written before the first report
  replace_file(scratch.at("text/0000.txt"), noise(3'000'000, 5));
  replace_file(scratch.at("text/0001.txt"), noise(3'000'000, 6));
  Watch stop;
  stop.also = [] { throw IoError("stopped"); };
  EXPECT_EQ(error_of<IoError>([&] { tokenize({scratch.at("text/*")}, folder, options, &stop); }), "stopped");
  EXPECT_EQ(all_tokens(Dataset(folder)), stream_of(some_texts(60)));
  EXPECT_TRUE(contents(folder) == before);

  tokenize({scratch.at("text/0002.txt")}, folder, options);
  EXPECT_EQ(all_tokens(Dataset(folder)), stream_of({some_texts(60)[2]}));
  EXPECT_EQ(contents(folder).size(), 3u) << "one shard, the manifest, and the file that is not ours";
}

TEST(Tokenize, WhatAnUnfinishedRunLeftIsNoDatasetAndIsReplacedWithoutForce) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, some_texts(60), 1024);
  fs::remove(folder + "/dataset.toml");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Dataset{folder}; }), "no finished dataset"));
  tokenize({scratch.at("text/0002.txt")}, folder, {});
  EXPECT_EQ(contents(folder).size(), 2u);
}

TEST(Tokenize, TextThatCannotBeUsedIsNamed) {
  const Scratch scratch;
  scratch.write("empty/a.txt", ""), scratch.write("empty/b.txt", ""), scratch.write("a.txt", "x");
  const auto call = [&](std::vector<std::string> inputs) { tokenize(inputs, scratch.at("data"), {}); };
  EXPECT_TRUE(has(error_of<ConfigError>([&] { call({}); }), "nothing to tokenize"));
  EXPECT_EQ(
      error_of<ConfigError>([&] {
        call({scratch.at("a.txt"), scratch.at("**/*.md")});
      }),
      "--input '" + scratch.at("**/*.md") + "' matches no file; check the path, and quote a pattern so that `**` reaches this program");
  EXPECT_EQ(error_of<DataError>([&] { call({scratch.at("empty/*")}); }),
            scratch.at("empty/a.txt") + ": the corpus has no text: all 2 files that --input matches are empty; choose files with text");
  EXPECT_FALSE(fs::exists(scratch.at("data"))) << "nothing was begun";
}

TEST(Tokenize, AnUnreadableFileIsNamed) {
  const Scratch scratch;
  write_corpus(scratch, {"a", "b"});
  fs::create_directory(scratch.at("data"));
  fs::permissions(scratch.folder(), fs::perms::all), fs::permissions(scratch.at("data"), fs::perms::all);
  fs::permissions(scratch.at("text/0001.txt"), fs::perms::none);
  const auto user = ::geteuid();
  if (user == 0 && ::seteuid(65534) != 0) GTEST_SKIP() << "root reads everything";
  const std::string message = error_of<IoError>([&] { tokenize({scratch.at("text/*")}, scratch.at("data"), {}); });
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_EQ(message, "cannot read '" + scratch.at("text/0001.txt") + "': Permission denied; make it readable or choose other files");
}

TEST(Tokenize, AFileThatChangesOrGoesMeanwhileIsNamedAndNothingIsCommitted) {
  for (const bool gone : {false, true}) {
    const Scratch scratch;
    write_corpus(scratch, {noise(12'000'000, 1), "small"});  // its end is not read ahead
    const std::string last = scratch.at("text/0001.txt");
    Watch watch;
    watch.also = [&] { gone ? void(fs::remove(last)) : fs::resize_file(last, 2); };
    TokenizeOptions options;
    options.threads = 1;
    const auto call = [&] { tokenize({scratch.at("text/*")}, scratch.at("data"), options, &watch); };
    if (gone)
      EXPECT_EQ(error_of<IoError>(call), "cannot read '" + last + "': No such file or directory; make it readable or choose other files");
    else
      EXPECT_EQ(error_of<DataError>(call),
                last + ": the file had 5 bytes when it was chosen, now it has 2; leave it alone while it is tokenized");
    EXPECT_FALSE(fs::exists(scratch.at("data/dataset.toml")));
  }
}

TEST(Tokenize, APlaceThatCannotHoldTheOutputIsNamed) {
  const Scratch scratch;
  const std::string file = scratch.write("a.txt", "x");
  const auto refusal = [&](const std::string& output) { return error_of<IoError>([&] { tokenize({file}, output, {}); }); };
  EXPECT_EQ(refusal(file), "cannot write a dataset to '" + file + "': Not a directory; choose another --output folder");
  EXPECT_EQ(refusal(file + "/sub"), "cannot write a dataset to '" + file + "/sub': Not a directory; choose another --output folder");
  EXPECT_TRUE(has(refusal("/proc/octet"), "cannot write a dataset to '/proc/octet': ")) << "a file system that takes no folder";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { tokenize({file}, scratch.folder(), {}); }), "lies in the output folder"));
}

TEST(Tokenize, TwoWritersDoNotShareAFolder) {
  const Scratch scratch;
  const std::string file = scratch.write("text/a.txt", "x");
  fs::create_directory(scratch.at("data"));
  const int other = ::open(scratch.at("data").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(has(error_of<IoError>([&] { tokenize({file}, scratch.at("data"), {}); }), "another process is writing there"));
  ::close(other);
  tokenize({file}, scratch.at("data"), {});
}

TEST(Tokenize, OptionsOutOfRangeAreRefused) {
  const Scratch scratch;
  const std::string file = scratch.write("a.txt", "x");
  const auto refusal = [&](TokenizeOptions options) {
    return error_of<ConfigError>([&] { tokenize({file}, scratch.at("data"), options); });
  };
  EXPECT_TRUE(has(refusal({.tokenizer = "bite"}), "did you mean 'byte'?"));
  EXPECT_EQ(refusal({.shard_bytes = 1023}), "--shard-bytes must be at least 1024, got 1023");
  EXPECT_EQ(refusal({.threads = -1}), "--threads must be 0 (one for each CPU) or more, got -1");
}

/// Text may be cut before a line only: like tokenizers whose words must not be torn.
TEST(Tokenize, RefusesFilesThatAreNoText) {
  using namespace std::string_view_literals;
  struct File {
    std::string_view name, bytes, says;
  };
  for (const auto& [name, bytes, says] : {
           File{"a.parquet", "PAR1\x15\x04\x15"sv, "a Parquet table: write its texts as JSON lines"},
           {"a.txt", "PAR1\x15\x04\x15"sv, "a Parquet table"},
           {"a.npy", "\x93NUMPY\x01"sv, "a NumPy array"},
           {"a", "PK\x03\x04"sv, "an archive: unpack it"},
           {"a.txt.xz", "\xFD\x37zXZ"sv, "compressed with xz, bzip2 or lz4: decompress it"},
           {"a.PNG", "\x89PNG\r\n\x1A\n"sv, "an image"},
           {"train.bin", "any"sv, "tokens or weights of another program: tokens of other programs are not read"},
           {"a.txt", "\x1F\x8B\x08"sv, "end its name with .gz or .zst"},
           {"a.txt", "\xFF\xFE\x61\0"sv, "iconv -f UTF-16 -t UTF-8"},
           {"a.txt", "words\0and more"sv, "since byte 5 is 0"},
       }) {
    const Scratch scratch;
    write_corpus(scratch, {"a text"});
    scratch.write("text/" + std::string(name), std::string(bytes));
    TokenizeOptions options;
    const std::string error = error_of<DataError>([&] { tokenize({scratch.at("text/**/*")}, scratch.at("data"), options); });
    EXPECT_TRUE(has(error, std::string(name) + ": it is ") && has(error, std::string(says)) && has(error, "; --any-bytes takes")) << error;
    EXPECT_FALSE(std::filesystem::exists(scratch.at("data")));
    options.any_bytes = true;
    EXPECT_EQ(tokenize({scratch.at("text/**/*")}, scratch.at("data"), options).documents, 2u);
  }
}

TEST(Tokenize, TakesTextsOfEveryKind) {
  for (const char* text : {"PAR1 is a magic number", "GGUF and ORC, too", "%PDF", "ID3", "\xEF\xBB\xBFwith a mark", "\xE4 in Latin 1"})
    EXPECT_EQ(why_no_text("a.txt", text), "") << text;
  EXPECT_EQ(why_no_text("a.jsonl", std::string_view("{\0", 2), true), "") << "its parser names the line";
  EXPECT_NE(why_no_text("a.bin.gz", "text"), "");
}

class LineTokenizer final : public tokenizer::Tokenizer {
 public:
  std::string_view name() const override { return "line"; }
  std::int32_t vocab_size() const override { return 2; }
  std::optional<std::int32_t> document_separator() const override { return 1; }
  std::size_t encode(std::string_view, std::vector<std::int32_t>&, tokenizer::Position) const override { return 0; }
  std::string decode(std::span<const std::int32_t>) const override { return {}; }
  std::size_t last_cut(std::string_view text) const override { return text.rfind('\n') == text.npos ? 0 : text.rfind('\n'); }
};

TEST(PieceReader, CutsWhereTheTokenizerAllowsAndLosesNothing) {
  const Scratch scratch;
  std::string text(3'500'000, 'x');
  for (const std::size_t line : {1'048'000u, 1'300'000u, 2'900'000u}) text[line] = '\n';
  const std::vector<TextFile> files{
      {scratch.write("a", "small"), 5}, {scratch.write("b", text), text.size()}, {scratch.write("c", "x"), 1}};
  const LineTokenizer tokenizer;
  PieceReader reader(files, tokenizer);
  std::vector<std::size_t> sizes;
  std::string joined;
  bool ended = true;
  std::uint64_t read = 0;
  while (const auto piece = reader.next()) {
    EXPECT_EQ(piece->begins_document, ended);
    ended = piece->ends_document;
    joined += piece->text, read += piece->file_bytes;
    sizes.push_back(piece->text.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{5, 1'048'000, 1'852'000, 600'000, 1}));
  EXPECT_EQ(joined, "small" + text + "x");
  EXPECT_EQ(read, joined.size());
}

}  // namespace
}  // namespace octet::data

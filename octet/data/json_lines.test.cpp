#include "octet/data/json_lines.hpp"

#include <gtest/gtest.h>

#include "octet/data/compressed.testing.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/json/text.hpp"

namespace octet::data {
namespace {

struct Read {
  std::vector<std::string> texts;
  LineCounts counts;
};
Read read(const std::string& lines, const JsonLines& options = {}) {
  Read r;
  r.counts = each_document(options, lines, "a.jsonl", 7, [&](std::string_view text) { r.texts.emplace_back(text); });
  return r;
}

TEST(JsonLines, EachLineIsADocument) {
  const Read r = read(
      "{\"text\": \"one\"}\n"
      "\n"
      "  \r\n"
      "{\"id\": 1, \"meta\": {\"text\": \"not this\", \"list\": [1.5, -2, null, true, {\"text\": []}]}, \"text\": "
      "\"t\\u00e9\\n\\ud83d\\ude00\\u0000x\"}\r\n"
      "{\"text\": \"\"}\n"
      "{\"text\": \"the last line needs no end\", \"other\": \"b\"}");
  EXPECT_EQ(r.texts, (std::vector<std::string>{"one", std::string("té\n\U0001F600\0x", 10), "the last line needs no end"}));
  EXPECT_EQ(r.counts.documents, 3u);
  EXPECT_EQ(r.counts.empty, 1u);
  EXPECT_EQ(r.counts.bad, 0u);
  EXPECT_EQ(read("{\"text\": 1, \"content\": \"c\"}\n", {.field = "content"}).texts, std::vector<std::string>{"c"});
}

TEST(JsonLines, ABadLineIsRefusedByFileAndLineOrLeftOutAndCounted) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"{\"txet\": \"x\"}", "a.jsonl:8: the field \"text\" is missing"},
      {"{}", "a.jsonl:8: the field \"text\" is missing"},
      {"{\"text\": 3}", "a.jsonl:8: the field \"text\" must be a string, got a number"},
      {"{\"text\": null}", "a.jsonl:8: the field \"text\" must be a string, got null"},
      {"{\"text\": [\"x\"]}", "a.jsonl:8: the field \"text\" must be a string, got an array"},
      {"{\"text\": {\"text\": \"x\"}}", "a.jsonl:8: the field \"text\" must be a string, got an object"},
      {"{\"text\": \"x\", \"text\": \"y\"}", "a.jsonl:8: the field \"text\" occurs twice"},
      {"[\"text\"]", "a.jsonl:8: column 1: "},
      {"\"text\"", "a.jsonl:8: column 1: "},
      {"{\"text\": \"x\"} {\"text\": \"y\"}", "a.jsonl:8: column 15: "},
      {"{\"text\": \"x\"", "a.jsonl:8: column "},
      {"{\"text\": \"\\ud800\"}", "a.jsonl:8: column "},
      {"{\"text\": \"\xff\"}", "a.jsonl:8: column "},
      {"{\"text\": 'x'}", "a.jsonl:8: column "},
      {std::string("\0", 1), "a.jsonl:8: column 1: "},
  };
  for (const auto& [line, message] : bad) {
    const std::string lines = "{\"text\": \"a\"}\n" + line + "\n{\"text\": \"b\"}\n";
    const std::string refused = error_of<DataError>([&] { read(lines); });
    EXPECT_TRUE(refused.starts_with(message)) << refused;
    EXPECT_TRUE(refused.ends_with("; correct the line, name another --field, or leave bad lines out with octet tokenize --skip-bad-lines"))
        << refused;
    const Read rest = read(lines, {.skip_bad = true});
    EXPECT_EQ(rest.texts, (std::vector<std::string>{"a", "b"})) << line;
    EXPECT_EQ(rest.counts.bad, 1u);
  }
}

/// Lines of some texts, with other members before and behind.
std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += "{\"id\": 12, \"text\": " + json::quoted(text) + ", \"tags\": [\"a\", \"b\"]}\n";
  return lines;
}

std::vector<std::string> printable_texts(std::size_t documents, std::size_t least) {
  std::vector<std::string> texts = some_texts(documents, least);
  for (std::string& text : texts)
    for (char& c : text) c = char((c & 0x7f) == 0 ? ' ' : c & 0x7f);
  return texts;
}

TEST(JsonLines, AFolderOfPlainAndCompressedLinesMakesTheDatasetOfItsTextsWhateverTheThreads) {
  const Scratch scratch;
  std::vector<std::string> a = printable_texts(3000, 1000), b = printable_texts(300, 30), c = printable_texts(40, 60);
  b[7] = std::string(5'000'000, 'z');  // longer than a piece
  scratch.write("a.jsonl", lines_of(a)), scratch.write("b.ndjson.gz", gzip(lines_of(b))), scratch.write("c.jsonl.zst", zstd(lines_of(c)));
  scratch.write("d.txt.gz", gzip(a[5])), scratch.write("e.txt.zst", zstd("")), scratch.write("f.txt", a[6]);
  std::vector<std::string> all = a;
  all.insert(all.end(), b.begin(), b.end()), all.insert(all.end(), c.begin(), c.end());
  all.push_back(a[5]), all.push_back(a[6]);
  std::size_t bytes = 0;
  for (const std::string& text : all) bytes += text.size();
  for (const int threads : {1, 5}) {
    TokenizeOptions options;
    options.threads = threads, options.force = true;
    const TokenizeResult r = tokenize({scratch.at("*.*")}, scratch.at("data"), options);
    EXPECT_TRUE(all_tokens(Dataset(scratch.at("data"))) == stream_of(all));
    EXPECT_EQ(r.documents, all.size());
    EXPECT_EQ(r.bytes, bytes);
    EXPECT_EQ(r.empty_files, 1u);
  }
}

TEST(JsonLines, ABadLineFarInAFileIsNamedByItsNumber) {
  const Scratch scratch;
  const std::vector<std::string> texts = printable_texts(1500, 700);
  const std::string path = scratch.write("a.jsonl.gz", gzip(lines_of(texts) + "{\"text\": 1}\n" + lines_of(texts)));
  const auto call = [&](TokenizeOptions options) { return tokenize({path}, scratch.at("data"), options); };
  EXPECT_TRUE(has(error_of<DataError>([&] { call({}); }), path + ":1501: the field \"text\" must be a string"));
  EXPECT_FALSE(std::filesystem::exists(scratch.at("data/dataset.toml")));
  const TokenizeResult r = call({.skip_bad_lines = true});
  EXPECT_EQ(r.documents, 3000u);
  EXPECT_EQ(r.bad_lines, 1u);
}

TEST(JsonLines, LinesWithoutAnyTextAreNoDataset) {
  const Scratch scratch;
  const std::string path = scratch.write("a.jsonl", "{\"text\": \"\"}\n{\"text\": \"\"}\n");
  EXPECT_EQ(error_of<DataError>([&] { tokenize({path}, scratch.at("data"), {}); }),
            path + ": the corpus has no text: 1 file, 2 lines with an empty text, 0 bad lines; choose files with text");
  EXPECT_FALSE(std::filesystem::exists(scratch.at("data/dataset.toml")));
}

TEST(JsonLines, ALineThatIsTooLongIsRefusedByItsNumber) {
  const Scratch scratch;
  const std::string path =
      scratch.write("a.jsonl.zst", zstd("{\"text\": \"a\"}\n{\"text\": \"" + std::string(JsonLines::most_line_bytes + 3'000'000, 'x')));
  const std::string message = error_of<DataError>([&] { tokenize({path}, scratch.at("data"), {}); });
  EXPECT_TRUE(message.starts_with(path + ":2: a line may have at most ")) << message;
}

}  // namespace
}  // namespace octet::data

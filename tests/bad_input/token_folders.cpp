#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "octet/data/token_format.hpp"
#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;
using data::ShardHeader;

constexpr const char* manifest = "data/dataset.toml";

/// A case that trains on a dataset whose shard was changed.
Case shard(std::string name, std::vector<std::string> says, std::function<void(const Place&, const std::string& shard)> change) {
  return {"shard_" + std::move(name), "train tiny.toml", ExitCode::data, std::move(says),
          [change](const Place& p) { change(p, p.shard()); }};
}

/// The same with a header that says something else, under a checksum that fits.
Case header(std::string name, std::vector<std::string> says, std::function<void(ShardHeader&)> change) {
  return shard("header_" + std::move(name), std::move(says), [change](const Place& p, const std::string& path) {
    std::string bytes = p.bytes(path);
    ShardHeader h = data::decode_header(bytes.substr(0, ShardHeader::bytes), bytes.size(), path);
    change(h);
    p.write(path, data::encode_header(h) + bytes.substr(ShardHeader::bytes));
  });
}

/// A shard whose tokens or document table are `change`d, under checksums that fit.
Case contents(std::string name, std::vector<std::string> says, std::function<void(std::string& tokens, std::string& documents)> change) {
  return shard(std::move(name), std::move(says), [change](const Place& p, const std::string& path) {
    const std::string bytes = p.bytes(path);
    ShardHeader h = data::decode_header(bytes.substr(0, ShardHeader::bytes), bytes.size(), path);
    std::string tokens = bytes.substr(ShardHeader::bytes, h.table_offset() - ShardHeader::bytes),
                documents = bytes.substr(h.table_offset());
    change(tokens, documents);
    h.tokens = data::checksum_of(tokens), h.documents = data::checksum_of(documents);
    p.write(path, data::encode_header(h) + tokens + documents);
  });
}

Case manifest_edit(std::string name, std::string from, std::string to, std::vector<std::string> says) {
  says.push_back("data/dataset.toml: line ");
  says.push_back("octet tokenize");
  return {"dataset_" + std::move(name), "train tiny.toml", ExitCode::data, std::move(says),
          [=](const Place& p) { p.edit(manifest, from, to); }};
}

std::vector<Case> of_shards() {
  const std::string again = "octet tokenize";
  return {
      shard("truncated", {"is truncated", "data/shard-", again}, [](const Place& p, const std::string& s) { p.cut(s, 100); }),
      shard("cut_within_its_header", {"ends at byte 100", again},
            [](const Place& p, const std::string& s) { fs::resize_file(p.at(s), 100); }),
      shard("empty", {"ends at byte 0", again}, [](const Place& p, const std::string& s) { fs::resize_file(p.at(s), 0); }),
      shard("too_long", {"too long", again}, [](const Place& p, const std::string& s) { p.write(s, p.bytes(s) + "more"); }),
      shard("missing", {"no such file", again}, [](const Place& p, const std::string& s) { fs::remove(p.at(s)); }),
      shard("of_another_kind", {"byte 0: ", "begins with OCTETTOK", again}, [](const Place& p, const std::string& s) { p.flip(s, 0); }),
      shard("of_a_future_version", {"byte 8: ", "version 1, got version 2", again},
            [](const Place& p, const std::string& s) { p.edit(s, std::string("OCTETTOK\1", 9), std::string("OCTETTOK\2", 9)); }),
      shard("header_damaged", {"byte 240: ", "checksum", again}, [](const Place& p, const std::string& s) { p.flip(s, 17); }),
      shard("tokens_damaged", {"byte 256: ", "checksum", again}, [](const Place& p, const std::string& s) { p.flip(s, 1000); }),
      shard("documents_damaged", {"document table is damaged", "checksum", again},
            [](const Place& p, const std::string& s) { p.flip(s, p.bytes(s).size() - 1); }),
      shard("that_is_a_folder", {"data/shard-", "is a folder, not a regular file", again},
            [](const Place& p, const std::string& s) { fs::remove(p.at(s)), fs::create_directory(p.at(s)); }),
      shard("that_is_a_pipe", {"data/shard-", "is a pipe, not a regular file", again},
            [](const Place& p, const std::string& s) { fs::remove(p.at(s)), ::mkfifo(p.at(s).c_str(), 0600); }),
      header("of_no_token", {"byte 16: ", "token count must be", again}, [](ShardHeader& h) { h.token_count = 0; }),
      header("of_endless_tokens", {"byte 16: ", "token count must be", again}, [](ShardHeader& h) { h.token_count = ~std::uint64_t(0); }),
      header("of_more_tokens_than_bytes", {"truncated", again}, [](ShardHeader& h) { h.token_count = std::uint64_t(1) << 47; }),
      header("of_more_documents_than_tokens", {"byte 24: ", "documents can begin", again},
             [](ShardHeader& h) { h.document_count = std::uint64_t(1) << 61; }),
      header("of_three_bytes_a_token", {"byte 12: ", "2 or 4, got 3", again}, [](ShardHeader& h) { h.bytes_per_token = 3; }),
      header("of_no_vocabulary", {"byte 48: ", "vocabulary", again}, [](ShardHeader& h) { h.vocab_size = 0; }),
      header("of_another_place_in_the_text", {"first token's place", "dataset.toml", again}, [](ShardHeader& h) { h.first_token = 7; }),
      header("of_another_tokenizer", {"the tokenizer must be byte", again}, [](ShardHeader& h) { h.tokenizer = "words"; }),
      contents("ids_beyond_the_vocabulary", {"byte 258: ", "below the vocabulary of 257, token 1 is 65535", again},
               [](std::string& tokens, std::string&) { tokens[2] = tokens[3] = '\xff'; }),
      contents("documents_out_of_order", {"document 1 must begin at a token from 1", again},
               [](std::string&, std::string& documents) { std::memset(documents.data() + 8, 0, 8); }),
      contents("documents_beyond_its_tokens", {"document 3 must begin", again},
               [](std::string&, std::string& documents) { documents.back() = 1; }),
  };
}

std::vector<Case> of_folders() {
  constexpr ExitCode usage = ExitCode::usage, data = ExitCode::data;
  return {
      {"dataset_nowhere", "train tiny.toml --data nowhere", usage, {"data.path", "no folder 'nowhere'", "octet tokenize"}},
      {"dataset_unfinished",
       "train tiny.toml",
       usage,
       {"'data' holds no dataset.toml", "octet tokenize"},
       [](const Place& p) { fs::remove(p.at(manifest)); }},
      {"tokens_of_another_program_with_masks",
       "inspect x.bin",
       data,
       {"x.bin: byte 24: masks of LLM.Q are not read", "octet tokenize"},
       [](const Place& p) {
         std::string bytes("BIN.TOK\n\2\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0", 28);
         bytes.resize(1024, '*');
         p.write("x.bin", bytes);
       }},
      {"dataset_that_is_a_file", "train tiny.toml --data tiny.toml", usage, {"tiny.toml", "octet tokenize"}},
      manifest_edit("of_a_future_format", "format = 1", "format = 2", {"format 1, got 2"}),
      manifest_edit("with_an_unknown_key", "format = 1", "format = 1\ncolour = \"red\"", {"'colour' is unknown"}),
      manifest_edit("with_a_key_twice", "format = 1", "format = 1\nformat = 1", {"'format' occurs twice"}),
      manifest_edit("without_a_key", "vocab_size = 257\n", "", {"'vocab_size' is missing"}),
      manifest_edit("with_a_negative_count", "vocab_size = 257", "vocab_size = -257", {"'vocab_size' must be a whole number"}),
      manifest_edit("with_a_count_beyond_64_bits", "vocab_size = 257", "vocab_size = 99999999999999999999",
                    {"'vocab_size' must be a whole number"}),
      manifest_edit("with_sums_that_differ", "documents = 4", "documents = 5", {"1 shards listed hold"}),
      manifest_edit("with_a_file_outside", "file = \"", "file = \"../", {"'file' must be the name of a file in this folder"}),
      {"dataset_with_another_checksum",
       "train tiny.toml",
       data,
       {"data/shard-", "header's checksum", "dataset.toml", "octet tokenize"},
       [](const Place& p) { p.edit(manifest, "checksum = \"", "checksum = \"0"); }},
      manifest_edit("without_quotes", "tokenizer = \"byte\"", "tokenizer = byte", {"'tokenizer' must be a text in double quotes"}),
      manifest_edit("with_a_line_of_no_sense", "[[shard]]", "[[shards]]", {"'key = value' or '[[shard]]'"}),
      {"dataset_of_many_keys",
       "train tiny.toml",
       data,
       {"dataset.toml", "octet tokenize"},
       [](const Place& p) {
         std::string text;
         for (int i = 0; text.size() + 16 < (4 << 20); ++i) text += std::to_string(i) + "=1\n";
         p.write(manifest, text);
       }},
      {"dataset_of_many_shards",
       "train tiny.toml",
       data,
       {"dataset.toml", "octet tokenize"},
       [](const Place& p) {
         std::string text = p.bytes(manifest);
         while (text.size() + 16 < (4 << 20)) text += "[[shard]]\n";
         p.write(manifest, text);
       }},
      {"dataset_of_a_hundred_megabytes",
       "train tiny.toml",
       data,
       {"dataset.toml", "at most 4,194,304 bytes", "copy the dataset again"},
       [](const Place& p) { fs::resize_file(p.at(manifest), 100 << 20); }},
      {"texts_without_text",
       "tokenize --input empty.txt --output there",
       data,
       {"empty.txt", "no text", "choose files with text"},
       with_file("empty.txt", "")},
  };
}

}  // namespace

std::vector<Case> token_folders() { return all_of({of_shards(), of_folders()}); }

}  // namespace octet::bad_input

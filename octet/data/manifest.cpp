#include "octet/data/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/data/text_check.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t most_bytes = std::size_t(4) << 20;  // some 25,000 shards
constexpr std::uint64_t most = std::uint64_t(1) << 48;

[[noreturn]] void refuse(const std::string& path, std::size_t line, std::string_view what) {
  throw DataError(format("{}: line {}: {}; copy the dataset again or run `octet tokenize` again", printable(path), line, what));
}

/// The keys of one table, with their line numbers. Values are as written: 12 or "text".
class Section {
 public:
  Section(const std::string& path, std::size_t line) : path_(path), line_(line) {}

  void add(std::string_view key, std::string_view value, std::size_t line) {
    if (!values_.try_emplace(std::string(key), Value{std::string(value), line}).second)
      refuse(path_, line, format("the key '{}' occurs twice", printable(key)));
  }

  std::uint64_t take_whole(const std::string& key, std::uint64_t least) {
    const auto [text, line] = take(key);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
      refuse(path_, line, format("'{}' must be a whole number from {} to {}, got {}", key, least, most, printable(text)));
    return value;
  }

  std::string take_text(const std::string& key) {
    const auto [text, line] = take(key);
    const bool quoted = text.size() > 2 && text.front() == '"' && text.back() == '"';
    if (!quoted || text.find_first_of("\"\\", 1) != text.size() - 1)
      refuse(path_, line, format("'{}' must be a text in double quotes, got {}", key, printable(text)));
    return text.substr(1, text.size() - 2);
  }

  std::size_t line() const { return line_; }
  void require_all_taken() const {
    if (!values_.empty())
      refuse(path_, values_.begin()->second.line, format("the key '{}' is unknown here", printable(values_.begin()->first)));
  }

 private:
  struct Value {
    std::string text;
    std::size_t line;
  };

  Value take(const std::string& key) {
    auto node = values_.extract(key);
    if (node.empty()) refuse(path_, line_, format("the key '{}' is missing here", key));
    return std::move(node.mapped());
  }

  const std::string& path_;
  std::size_t line_;
  std::map<std::string, Value> values_;
};

std::string_view trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t\r"), last = s.find_last_not_of(" \t\r");
  return first == s.npos ? std::string_view() : s.substr(first, last - first + 1);
}

/// The file's tables: the keys at its top, then one Section for every [[shard]].
std::vector<Section> sections_of(std::string_view text, const std::string& path) {
  std::vector<Section> sections{{path, 1}};
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view words = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = words.find('=');
    if (words.empty() || words.front() == '#') continue;
    if (words == "[[shard]]") sections.emplace_back(path, line);
    else if (equals != words.npos) sections.back().add(trimmed(words.substr(0, equals)), trimmed(words.substr(equals + 1)), line);
    else refuse(path, line, format("a line must be 'key = value' or '[[shard]]', got '{}'", printable(words.substr(0, 60))));
  }
  return sections;
}

Manifest::Entry entry_of(Section& section, const std::string& path) {
  Manifest::Entry entry{section.take_text("file"), section.take_whole("tokens", 1), section.take_whole("documents", 0),
                        section.take_text("checksum")};
  section.require_all_taken();
  if (entry.file == "." || entry.file == ".." || entry.file.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    refuse(path, section.line(), format("'file' must be the name of a file in this folder, got '{}'", printable(entry.file)));
  return entry;
}

Manifest parse(std::string_view text, const std::string& path) {
  std::vector<Section> sections = sections_of(text, path);
  Section& top = sections.front();
  if (const auto version = top.take_whole("format", 0); version != Manifest::format_version)
    refuse(path, top.line(), format("this program reads dataset format {}, got {}", Manifest::format_version, version));
  Manifest manifest{
      top.take_text("tokenizer"), top.take_whole("vocab_size", 1), top.take_whole("tokens", 1), top.take_whole("documents", 1), {}};
  top.require_all_taken();
  std::uint64_t tokens = 0, documents = 0;
  for (std::size_t i = 1; i < sections.size(); ++i) {
    const auto& entry = manifest.shards.emplace_back(entry_of(sections[i], path));
    tokens += entry.tokens, documents += entry.documents;
  }
  if (tokens != manifest.tokens || documents != manifest.documents)
    refuse(path, top.line(),
           format("the {} shards listed hold {} tokens and {} documents, the dataset must have {} and {}", manifest.shards.size(), tokens,
                  documents, manifest.tokens, manifest.documents));
  return manifest;
}

/// Somebody named a file of the dataset, or a text.
[[noreturn]] void refuse_file_for_folder(const std::string& path, const std::string& key) {
  const std::string folder = folder_of(path);
  if (exists(folder + "/" + Manifest::file_name))
    throw ConfigError(format("{}: '{}' is a file of a token folder; name the folder, {}{}", key, printable(path),
                             key == "data.path"      ? "--data "
                             : key.starts_with("--") ? key + " "
                                                     : key + " = ",
                             printable(folder)));
  if (const std::string why = why_no_text(path); !why.empty())
    throw ConfigError(format("{}: '{}' is a file, not a token folder, and octet tokenize does not read it: {}", key, printable(path), why));
  throw ConfigError(format("{}: '{}' is a file, not a token folder; tokenize it first: octet tokenize --input {} --output data/tokens", key,
                           printable(path), printable(path)));
}

/// A folder of tokens whose tokenizing was interrupted, or of something else.
[[noreturn]] void refuse_unfinished(const std::string& folder, const std::string& key) {
  std::error_code error;
  bool shards = false, files = false;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    files = files || !name.starts_with(".");
    shards = shards || name.ends_with(".tok");
  }
  if (error) refuse_file("read the folder", folder, error.value());
  const std::string shown = printable(folder);
  if (shards || !files)
    throw ConfigError(format("{}: '{}' holds no {}, so it is no finished dataset; run `octet tokenize --output {}` to its end", key, shown,
                             Manifest::file_name, shown));
  throw ConfigError(
      format("{}: '{}' is a folder of other files, not a token folder; tokenize its text into another one: octet tokenize "
             "--input '{}/**/*' --output data/tokens",
             key, shown, shown));
}

}  // namespace

Manifest read_manifest(const std::string& folder, const std::string& key) {
  if (folder.empty()) throw ConfigError("data.path is not set; name a token folder with --data, or make one with `octet tokenize`");
  const std::string path = (fs::path(folder) / Manifest::file_name).string();
  if (!exists(folder))
    throw ConfigError(
        format("{}: there is no folder '{}'; name another{}, or make it with `octet tokenize --input 'docs/**/*.md' --output {}`", key,
               printable(folder), key == "data.path" ? " with --data" : "", printable(folder)));
  if (!is_folder(folder)) refuse_file_for_folder(folder, key);
  if (!exists(path)) refuse_unfinished(folder, key);
  return parse(with_remedy("copy the dataset again, or run `octet tokenize` again", [&] { return read_file(path, most_bytes); }), path);
}

void write_manifest(const std::string& folder, const Manifest& manifest) {
  std::string text = format(
      "# Written by `octet tokenize`; docs/token-format.md explains it.\n"
      "format = {}\ntokenizer = \"{}\"\nvocab_size = {}\ntokens = {}\ndocuments = {}\n",
      Manifest::format_version, manifest.tokenizer, manifest.vocab_size, manifest.tokens, manifest.documents);
  for (const Manifest::Entry& entry : manifest.shards)
    text += format("\n[[shard]]\nfile = \"{}\"\ntokens = {}\ndocuments = {}\nchecksum = \"{}\"\n", entry.file, entry.tokens,
                   entry.documents, entry.checksum);
  write_own_file((fs::path(folder) / Manifest::file_name).string(), text);
}

}  // namespace octet::data

#include "octet/tokenizer/tokenizer.hpp"

#include "octet/base/checksum.hpp"
#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/json/fields.hpp"
#include "octet/tokenizer/bpe_tokenizer.hpp"
#include "octet/tokenizer/byte_tokenizer.hpp"
#include "octet/tokenizer/special_tokens.hpp"

namespace octet::tokenizer {
namespace {

constexpr std::size_t most_config_bytes = std::size_t(16) << 20;

std::optional<json::Value> config_in(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  if (!exists(path)) return std::nullopt;
  return json::parse({.text = read_file(path_within(folder, name), most_config_bytes, Link::refuse),
                      .file = path,
                      .limits = {.bytes = most_config_bytes}});
}

/// The "eos_token" or "bos_token" of tokenizer_config.json, or "".
std::string configured_token(const std::string& folder, std::string_view key) {
  const auto config = config_in(folder, config_file_name);
  return config ? special_token(*config, key) : "";
}

/// The eos_token_id of one of a model's files; of a list, the first.
std::optional<std::int64_t> eos_id(const std::string& folder) {
  for (const char* const name : {"generation_config.json", "config.json"}) {
    const auto config = config_in(folder, name);
    const auto ids = config ? end_ids(*config, folder + "/" + name) : std::vector<std::int64_t>{};
    if (!ids.empty()) return ids.front();
  }
  return std::nullopt;
}

void set_separator(BpeTokenizer& tokenizer, const std::string& path, const std::string& wanted) {
  const std::string folder = folder_of(path);
  const std::string named = wanted.empty() ? configured_token(folder, "eos_token") : wanted;
  if (!named.empty()) {
    const auto id = tokenizer.id_of(named);
    if (!id && wanted.empty())
      throw DataError(format("{}/{}: eos_token \"{}\" is not a token of {}; name another one with --end-of-document", printable(folder),
                             config_file_name, printable(named), file_name));
    if (!id) throw ConfigError(format("--end-of-document '{}': {} has no such token", printable(named), printable(path)));
    return tokenizer.set_separator(*id);
  }
  const auto id = eos_id(folder);
  if (!id) return;
  if (*id < 0 || *id >= tokenizer.vocab_size())
    throw DataError(format("{}: eos_token_id {} of the model is not one of the {} ids; name a token with --end-of-document",
                           printable(path), *id, tokenizer.vocab_size()));
  tokenizer.set_separator(std::int32_t(*id));
}

// A begin token that is none is no error, since few uses need it.
void set_begin(BpeTokenizer& tokenizer, const std::string& path) {
  const std::string named = configured_token(folder_of(path), "bos_token");
  if (const auto id = tokenizer.id_of(named); id && !named.empty()) tokenizer.set_begin(*id);
}

std::string source_path(const std::string& name) {
  if (is_folder(name)) {
    if (exists(name + "/" + file_name)) return name + "/" + file_name;
    throw ConfigError(format("the folder '{}' has no {}; name another folder, a tokenizer.json, or `byte`", printable(name), file_name));
  }
  if (exists(name)) return name;
  const std::string near = nearest(name, {ByteTokenizer::tokenizer_name});
  throw ConfigError(format("there is no tokenizer '{}'{}; name a {}, a folder that has one, or `byte`", printable(name),
                           near.empty() ? "" : ", did you mean '" + near + "'?", file_name));
}

}  // namespace

std::string read_source(const std::string& path) { return read_file(path, most_source_bytes); }

std::string identity_of(std::string_view source) { return "bpe:" + to_text(data::checksum_of(source)); }

std::optional<std::string> identity_in(const std::string& folder) {
  const std::string path = folder + "/" + file_name;
  if (folder.empty() || !exists(path)) return std::nullopt;
  return identity_of(read_source(path_within(folder, file_name)));
}

std::unique_ptr<const Tokenizer> open_tokenizer(const std::string& name_or_path, const OpenOptions& options) {
  if (name_or_path == ByteTokenizer::tokenizer_name) {
    if (!options.end_of_document.empty())
      throw ConfigError("--end-of-document is for a tokenizer.json; the byte tokenizer ends each document with id 256");
    return std::make_unique<ByteTokenizer>();
  }
  const std::string path = source_path(name_or_path), source = is_folder(name_or_path) ? path_within(name_or_path, file_name) : path;
  auto tokenizer = with_remedy("fetch the file again, or choose a tokenizer of the parts that docs/tokenizers.md lists",
                               [&] { return std::make_unique<BpeTokenizer>(read_source(source), printable(path)); });
  set_separator(*tokenizer, path, options.end_of_document), set_begin(*tokenizer, path);
  return tokenizer;
}

}  // namespace octet::tokenizer

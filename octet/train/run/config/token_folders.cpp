#include "octet/train/run/config/token_folders.hpp"

#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/base/path.hpp"
#include "octet/data/glob.hpp"
#include "octet/data/manifest.hpp"
#include "octet/data/mixture.hpp"
#include "octet/data/text_files.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/io/new_folder.hpp"
#include "octet/machine/machine.hpp"
#include "octet/models/chat_template.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::train {
namespace {

using data::TextKind;

/// Text files and what makes tokens of them.
struct Text {
  std::vector<std::string> files;
  TextKind kind = TextKind::text;
  std::string tokenizer;                     // its identity
  std::optional<models::ChatTemplate> form;  // of conversations and pairs
  std::string begin;                         // the model's bos_token, which some forms write
};

const char* option_of(TextKind kind) { return kind == TextKind::text ? "" : kind == TextKind::pairs ? "--pairs " : "--chat "; }

// Nothing where a reader of token folders says what to do.
std::optional<Text> text_of(const TokenFolders& folders, const std::string& path, const std::string& key) {
  if (!data::names_text(path)) return std::nullopt;
  Text out;
  out.files = data::files_matching(path);
  out.kind = out.files.empty() ? TextKind::text : data::kind_of_text(out.files.front());
  if (folders.model.empty() && out.kind == TextKind::text) return std::nullopt;
  if (out.files.empty()) throw ConfigError(format("{}: there is no file '{}'; check the path", key, printable(path)));
  if (folders.model.empty())
    throw ConfigError(format(
        "{}: '{}' has {}, which become tokens by a model's tokenizer; name the model's folder with --init (model.init), or make a token "
        "folder: octet tokenize {}--input {} --model FOLDER --output data/tokens",
        key, printable(path), out.kind, option_of(out.kind), printable(path)));
  const auto identity = tokenizer::identity_in(folders.model);
  if (!identity)
    throw ConfigError(format("{}: '{}' becomes tokens by the model's tokenizer, and {} has no {}; copy it there", key, printable(path),
                             printable(folders.model), tokenizer::file_name));
  out.tokenizer = *identity;
  if (out.kind == TextKind::text) return out;
  out.begin = models::begin_of_text(folders.model);
  out.form = folders.chat_template.empty() ? models::ChatTemplate::of_folder(folders.model)
                                           : models::ChatTemplate::named(folders.chat_template, out.begin);
  return out;
}

// The end of a document is a token that files beside the tokenizer name.
data::Checksum identity_of(const Text& text, const std::string& model) {
  const auto end = tokenizer::open_tokenizer(model)->document_separator();
  const std::string form = text.form ? format("{} {}", text.form->name(), text.begin) : "";
  return data::checksum_of(
      format("{} {} {} {} {}", to_text(text.kind), text.tokenizer, end ? *end : -1, form, to_text(data::checksum_of_files(text.files))));
}

// "chat" of "data/chat.jsonl.zst"; other characters than letters, digits, dots and lines become lines.
std::string stem_of(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  for (const char* ending : {".gz", ".zst", ".jsonl", ".ndjson", ".txt"})
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  constexpr std::size_t most = 64;
  name.resize(std::min(name.size(), most));
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_')) c = '-';
  return name;
}

std::string folder_of_text(const TokenFolders& folders, const Text& text, const data::Checksum& identity) {
  constexpr std::size_t digits = 16;
  return format("{}/{}/{}-{}", folders.output, TokenFolders::folder_name, stem_of(text.files.front()), to_text(identity).substr(0, digits));
}

bool is_made(const std::string& folder) { return exists(folder + "/" + data::Manifest::file_name); }

data::TokenizeResult make(const Text& text, const std::string& model, const std::string& folder) {
  data::TokenizeOptions options{.tokenizer = model, .pairs = text.kind == TextKind::pairs};
  if (text.form) options.chat = [&](const auto& messages) { return text.form->render(messages); };
  return data::tokenize(text.files, folder, options);
}

// As octet tokenize makes it; complete or not there.
void make_folder(const Text& text, const std::string& model, const std::string& folder, const data::Checksum& identity) {
  const std::string first = printable(text.files.front());
  log::info("{}: {} become tokens in {}, which runs on the same text use again", first, to_text(text.kind), printable(folder));
  io::NewFolder made(folder);
  const data::TokenizeResult r = make(text, model, made.working());
  if (identity_of(text, model) != identity)
    throw DataError(format("{}: the text changed while it was read; start again when it is complete", first));
  made.commit();
  log::info("{}: {} in {}", first, counted((long long)r.tokens, "token"), counted((long long)r.documents, "document"));
  if (r.replaced > 0) log::warn("{}: {} invalid UTF-8 sequences were encoded as U+FFFD", first, grouped((long long)r.replaced));
}

// Each path of the data by replace(path, key).
template <class Replace>
data::DataConfig replaced(data::DataConfig c, const Replace& replace) {
  if (!c.path.empty()) c.path = replace(c.path, "data.path");
  if (!c.eval_path.empty()) c.eval_path = replace(c.eval_path, "data.eval_path");
  const std::vector<data::Share> shares = data::parse_shares(c.mix);
  for (std::size_t i = 0; i < shares.size(); ++i) c.mix[i] = replace(shares[i].path, "data.mix") + c.mix[i].substr(shares[i].path.size());
  return c;
}

}  // namespace

std::string TokenFolders::of(const std::string& path, const std::string& key) const {
  const std::optional<Text> text = text_of(*this, path, key);
  if (!text) return path;
  const data::Checksum identity = identity_of(*text, model);
  const std::string folder = folder_of_text(*this, *text, identity);
  if (is_made(folder)) log::info("{}: its tokens are in {}", printable(path), printable(folder));
  else make_folder(*text, model, folder, identity);
  return folder;
}

std::optional<std::string> TokenFolders::found(const std::string& path, const std::string& key) const {
  const std::optional<Text> text = text_of(*this, path, key);
  if (!text) return path;
  const std::string folder = folder_of_text(*this, *text, identity_of(*text, model));
  return is_made(folder) ? std::optional(folder) : std::nullopt;
}

TokenFolders token_folders_of(const RunConfig& c) {
  return {.model = c.model.folder(), .chat_template = c.data.chat_template, .output = c.output};
}

data::DataConfig with_token_folders(const RunConfig& c, comm::Communicator& ranks) {
  return replaced(c.data, [&](const std::string& path, const char* key) {
    if (!data::names_text(path)) return path;
    return parallel::text_of_first(machine::device_named(c.device), ranks, [&] { return token_folders_of(c).of(path, key); });
  });
}

std::optional<data::DataConfig> with_found_token_folders(const RunConfig& c) {
  bool all = true;
  const data::DataConfig out = replaced(c.data, [&](const std::string& path, const char* key) {
    const auto folder = token_folders_of(c).found(path, key);
    all = all && folder;
    return folder.value_or("");
  });
  return all ? std::optional(out) : std::nullopt;
}

bool names_conversations(const std::string& path) {
  if (!data::names_text(path)) return false;
  const std::vector<std::string> files = data::files_matching(path);
  return !files.empty() && data::kind_of_text(files.front()) != TextKind::text;
}

void keep_conversations_apart(RunConfig& c, const config::Origins& origins) {
  if (c.data.document_mask || origins.contains("data.document_mask")) return;
  replaced(c.data, [&](const std::string& path, const char*) {
    c.data.document_mask = c.data.document_mask || names_conversations(path);
    return path;
  });
}

}  // namespace octet::train

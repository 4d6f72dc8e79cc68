#include "octet/models/gguf/tokenizer_keys.hpp"

#include <algorithm>
#include <unordered_map>

#include "octet/json/fields.hpp"
#include "octet/tokenizer/bpe_tokenizer.hpp"
#include "octet/tokenizer/byte_alphabet.hpp"
#include "octet/tokenizer/byte_tokenizer.hpp"

namespace octet::models {
namespace {

using tokenizer::BpeTokenizer;

/// llama.cpp's types of tokens.
enum Kind : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

constexpr json::Limits limits{.bytes = tokenizer::most_source_bytes, .values = std::size_t(1) << 22};

struct Tokens {
  std::vector<std::string> texts;
  std::vector<std::int32_t> kinds;

  void pad(std::int64_t vocabulary) {
    if (std::int64_t(texts.size()) > vocabulary)
      throw ConfigError(
          format("{} has {} tokens and the model {}; give the model its own tokenizer", tokenizer::file_name, texts.size(), vocabulary));
    for (std::int64_t id = std::int64_t(texts.size()); id < vocabulary; ++id)
      texts.push_back(format("[PAD{}]", id)), kinds.push_back(unused);
  }
  void add_to(io::GgufKeys& keys) const { keys.add("tokenizer.ggml.tokens", texts), keys.add("tokenizer.ggml.token_type", kinds); }
};

[[noreturn]] void refuse(const std::string& part) {
  throw ConfigError(format("{}: {} has no counterpart in llama.cpp, so GGUF cannot hold this tokenizer; export with another --dtype",
                           tokenizer::file_name, part));
}

const std::string& text_at(const json::Value& object, std::string_view key) {
  static const std::string none;
  const json::Value* found = object.find(key);
  return found != nullptr && found->text() != nullptr ? *found->text() : none;
}

bool flag_at(const json::Value& object, std::string_view key, bool otherwise = false) {
  const json::Value* found = object.find(key);
  return found != nullptr && found->boolean() != nullptr ? *found->boolean() : otherwise;
}

/// The parts of a pre-tokenizer or normalizer, in their order.
std::vector<const json::Value*> parts_of(const json::Value* part, std::string_view list) {
  if (part == nullptr || part->is_null()) return {};
  const json::Value* all = part->find(list);
  if (text_at(*part, "type") != "Sequence" || all == nullptr || all->array() == nullptr) return {part};
  std::vector<const json::Value*> out;
  for (const json::Value& one : *all->array()) out.push_back(&one);
  return out;
}

/// llama.cpp's name of a pattern. The form with up to three digits has two names, which differ by ignore_merges.
std::string name_of_pattern(const std::string& pattern, bool ignore_merges) {
  const auto known = tokenizer::known_patterns();
  if (pattern == known[0]) return ignore_merges ? "llama-bpe" : "dbrx";
  if (pattern == known[1]) return "qwen2";
  if (pattern == known[2]) return "gpt-2";
  refuse("the pattern of its pre-tokenizer");
}

/// Of a byte-level tokenizer; empty for others.
std::string pre_tokenizer_name(const json::Value& root) {
  const bool ignores = flag_at(*root.find("model"), "ignore_merges");
  const auto parts = parts_of(root.find("pre_tokenizer"), "pretokenizers");
  if (parts.empty() || text_at(*parts.back(), "type") != "ByteLevel") return "";
  if (flag_at(*parts.back(), "add_prefix_space")) refuse("add_prefix_space = true");
  const bool own_pattern = flag_at(*parts.back(), "use_regex", true);
  if (parts.size() == 1 && own_pattern) return "gpt-2";
  const std::string first = text_at(*parts[0], "type");
  if (parts.size() == 2 && own_pattern && first == "Digits" && flag_at(*parts[0], "individual_digits")) return "smollm";
  if (parts.size() != 2 || own_pattern || first != "Split" || text_at(*parts[0], "behavior") != "Isolated" || flag_at(*parts[0], "invert"))
    refuse("its pre-tokenizer");
  const json::Value* pattern = parts[0]->find("pattern");
  return name_of_pattern(pattern != nullptr ? text_at(*pattern, "Regex") : "", ignores);
}

std::vector<std::string> merges_of(const json::Value& root) {
  std::vector<std::string> out;
  const json::Value* merges = root.find("model")->find("merges");
  if (merges == nullptr || merges->array() == nullptr) return out;
  for (const json::Value& merge : *merges->array()) {
    if (merge.text() != nullptr) out.push_back(*merge.text());
    else if (merge.array() != nullptr && merge.array()->size() == 2 && (*merge.array())[0].text() && (*merge.array())[1].text())
      out.push_back(*(*merge.array())[0].text() + " " + *(*merge.array())[1].text());
  }
  return out;
}

Tokens tokens_of(const BpeTokenizer& bpe, const std::string& unknown_token) {
  Tokens out;
  for (std::int32_t id = 0; id < bpe.vocab_size(); ++id) {
    const std::string text(bpe.token(id));
    out.texts.push_back(text.empty() ? format("[PAD{}]", id) : text);
    const bool is_byte = text.size() == 6 && text.starts_with("<0x") && text.ends_with(">");
    out.kinds.push_back(text.empty() ? unused : is_byte ? byte : text == unknown_token ? unknown : normal);
  }
  for (const tokenizer::AddedToken& token : bpe.added_tokens())
    if (std::int32_t& kind = out.kinds[std::size_t(token.id)]; kind != unknown) kind = token.special ? control : user_defined;
  return out;
}

/// A piece that a merge makes is worth more, the earlier the merge is.
std::vector<float> scores_of(const Tokens& tokens, const std::vector<std::string>& merges) {
  std::unordered_map<std::string, float> worth;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    std::string made = merges[i];
    made.erase(made.find(' '), 1);
    worth.emplace(std::move(made), -float(i));
  }
  std::vector<float> out;
  for (const std::string& text : tokens.texts) out.push_back(worth.contains(text) ? worth.at(text) : 0.0f);
  return out;
}

/// Whether a space comes before a text: Prepend among the normalizers, or Metaspace that prepends.
bool prepends_space(const json::Value& root) {
  for (const json::Value* part : parts_of(root.find("normalizer"), "normalizers"))
    if (text_at(*part, "type") == "Prepend") return true;
  for (const json::Value* part : parts_of(root.find("pre_tokenizer"), "pretokenizers"))
    if (text_at(*part, "type") == "Metaspace") return text_at(*part, "prepend_scheme") != "never";
  return false;
}

void add_ends(const Companions& companions, const BpeTokenizer& bpe, io::GgufKeys& keys) {
  const auto prefix = bpe.document_prefix(), suffix = bpe.document_suffix();
  if (prefix.size() > 1 || suffix.size() > 1) refuse("its template of several tokens");
  const SpecialTokens special = special_tokens(companions);
  const std::vector<std::int64_t> ends = end_tokens(companions);
  const auto begin = prefix.empty() ? special.begin : std::optional<std::int64_t>(prefix[0]);
  const auto end = !ends.empty() ? std::optional(ends[0]) : special.end;
  if (begin) keys.add("tokenizer.ggml.bos_token_id", std::uint32_t(*begin));
  if (end) keys.add("tokenizer.ggml.eos_token_id", std::uint32_t(*end));
  keys.add("tokenizer.ggml.add_bos_token", !prefix.empty()), keys.add("tokenizer.ggml.add_eos_token", !suffix.empty());
}

void add_chat_template(const Companions& companions, io::GgufKeys& keys) {
  if (const std::string* text = companions.find("chat_template.jinja")) return keys.add("tokenizer.chat_template", *text);
  const std::string* config = companions.find(tokenizer::config_file_name);
  if (config == nullptr) return;
  const json::Value root = json::parse({.text = *config, .file = tokenizer::config_file_name, .limits = limits});
  if (const std::string& text = text_at(root, "chat_template"); !text.empty()) keys.add("tokenizer.chat_template", text);
}

void add_bytes(std::int64_t vocabulary, io::GgufKeys& keys) {
  Tokens tokens;
  for (int b = 0; b < 256; ++b)
    tokens.texts.emplace_back(tokenizer::character_of(static_cast<unsigned char>(b))), tokens.kinds.push_back(normal);
  tokens.texts.emplace_back("<|endoftext|>"), tokens.kinds.push_back(control);
  tokens.pad(vocabulary);
  keys.add("tokenizer.ggml.model", "gpt2"), keys.add("tokenizer.ggml.pre", "gpt-2");
  tokens.add_to(keys);
  keys.add("tokenizer.ggml.merges", std::vector<std::string>{});
  keys.add("tokenizer.ggml.eos_token_id", std::uint32_t(256));
  keys.add("tokenizer.ggml.add_bos_token", false), keys.add("tokenizer.ggml.add_eos_token", false);
}

}  // namespace

void add_tokenizer_keys(const Companions& companions, std::int64_t vocabulary, io::GgufKeys& keys) {
  const std::string* source = companions.find(tokenizer::file_name);
  if (source == nullptr) {
    if (vocabulary == tokenizer::ByteTokenizer{}.vocab_size()) return add_bytes(vocabulary, keys);
    throw ConfigError(format("the model has no {}, which a GGUF file must hold; copy it into the model's folder", tokenizer::file_name));
  }
  const BpeTokenizer bpe(*source, tokenizer::file_name);
  const json::Value root = json::parse({.text = *source, .file = tokenizer::file_name, .limits = limits});
  Tokens tokens = tokens_of(bpe, text_at(*root.find("model"), "unk_token"));
  tokens.pad(vocabulary);
  const std::vector<std::string> merges = merges_of(root);
  if (const std::string name = pre_tokenizer_name(root); !name.empty()) {
    keys.add("tokenizer.ggml.model", "gpt2"), keys.add("tokenizer.ggml.pre", name);
    tokens.add_to(keys);
    keys.add("tokenizer.ggml.merges", merges);
  } else {
    if (!flag_at(*root.find("model"), "byte_fallback")) refuse("a vocabulary without bytes");
    keys.add("tokenizer.ggml.model", "llama"), keys.add("tokenizer.ggml.pre", "default");
    tokens.add_to(keys);
    keys.add("tokenizer.ggml.scores", scores_of(tokens, merges));
    keys.add("tokenizer.ggml.add_space_prefix", prepends_space(root));
  }
  add_ends(companions, bpe, keys);
  add_chat_template(companions, keys);
}

}  // namespace octet::models

#include "octet/tokenizer/decoder.hpp"

#include <charconv>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/base/utf8.hpp"
#include "octet/tokenizer/byte_alphabet.hpp"
#include "octet/tokenizer/normalizer.hpp"
#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

using Tokens = std::vector<std::string>;

/// The text of all tokens.
std::string fused(const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

class Fuse final : public Decoder {
 public:
  void apply(Tokens& tokens, std::size_t) const override { tokens = {fused(tokens)}; }
};

class ByteLevel final : public Decoder {
 public:
  void apply(Tokens& tokens, std::size_t) const override {
    std::string bytes, storage;
    for (const std::string& token : tokens) bytes += bytes_of_token(token).value_or(token);
    std::size_t replaced = 0;
    tokens = {std::string(well_formed(bytes, storage, replaced))};
  }
};

class ByteFallback final : public Decoder {
 public:
  void apply(Tokens& tokens, std::size_t) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (valid_utf8_bytes(bytes) == bytes.size()) out.push_back(bytes);
      else out.insert(out.end(), bytes.size(), "\uFFFD");
      bytes.clear();
    };
    for (std::string& token : tokens) {
      unsigned byte = 0;
      if (is_byte(token, byte)) {
        bytes += char(byte);
        continue;
      }
      if (!bytes.empty()) flush();
      out.push_back(std::move(token));
    }
    if (!bytes.empty()) flush();
    tokens = std::move(out);
  }

 private:
  static bool is_byte(std::string_view token, unsigned& byte) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return false;
    const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
    return error == std::errc() && end == token.data() + 5;
  }
};

class Replace final : public Decoder {
 public:
  Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(Tokens& tokens, std::size_t most) const override {
    Regex::Scratch scratch;
    std::size_t all = 0;
    for (std::string& token : tokens) {
      std::string out;
      std::size_t at = 0;
      Match match;
      while (all + out.size() <= most && pattern_.find(token, at, scratch, match)) {
        out.append(token, at, match.begin - at).append(content_);
        at = match.end;
      }
      token = std::move(out.append(token, at)), all += token.size();
    }
  }

 private:
  Regex pattern_;
  std::string content_;
};

class Strip final : public Decoder {
 public:
  Strip(std::string content, std::int64_t start, std::int64_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(Tokens& tokens, std::size_t) const override {
    for (std::string& token : tokens) {
      for (std::int64_t i = 0; i < start_ && token.starts_with(content_); ++i) token.erase(0, content_.size());
      for (std::int64_t i = 0; i < stop_ && token.ends_with(content_); ++i) token.resize(token.size() - content_.size());
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class Metaspace final : public Decoder {
 public:
  Metaspace(std::string mark, bool prepends) : mark_(std::move(mark)), prepends_(prepends) {}
  void apply(Tokens& tokens, std::size_t) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string out;
      std::size_t at = 0;
      for (std::size_t found = tokens[i].find(mark_); found != std::string::npos; found = tokens[i].find(mark_, at)) {
        out.append(tokens[i], at, found - at).append(i == 0 && prepends_ ? "" : " ");
        at = found + mark_.size();
      }
      tokens[i] = std::move(out.append(tokens[i], at));
    }
  }

 private:
  std::string mark_;
  bool prepends_;
};

std::string one_character(const json::Fields& fields, std::string_view key) {
  const std::string& text = fields.text(key);
  if (text.empty() || first_character(text).bytes != text.size()) fields.refuse(key, "one character");
  return text;
}

void add(const json::Fields& fields, const std::string& file, Decoders& out) {
  const std::string& type = fields.text("type");
  if (type == "Sequence") {
    require_keys(fields, {"type", "decoders"});
    for (const auto& each : fields.objects("decoders")) add(each, file, out);
  } else if (type == "ByteLevel") {
    require_keys(fields, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    out.push_back(std::make_unique<ByteLevel>());
  } else if (type == "ByteFallback") {
    require_keys(fields, {"type"});
    out.push_back(std::make_unique<ByteFallback>());
  } else if (type == "Fuse") {
    require_keys(fields, {"type"});
    out.push_back(std::make_unique<Fuse>());
  } else if (type == "Replace") {
    require_keys(fields, {"type", "pattern", "content"});
    out.push_back(std::make_unique<Replace>(read_pattern(fields, file), fields.text("content")));
  } else if (type == "Strip") {
    require_keys(fields, {"type", "content", "start", "stop"});
    constexpr std::int64_t most = 1024;
    out.push_back(
        std::make_unique<Strip>(one_character(fields, "content"), fields.integer("start", 0, most), fields.integer("stop", 0, most)));
  } else if (type == "Metaspace") {
    require_keys(fields, {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    out.push_back(std::make_unique<Metaspace>(one_character(fields, "replacement"), fields.text_or("prepend_scheme", "always") != "never"));
  } else {
    fields.refuse("type", "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace or Sequence (other decoders are not supported)");
  }
}

}  // namespace

Decoders read_decoders(const json::Fields& fields, const std::string& file) {
  Decoders out;
  add(fields, file, out);
  return out;
}

}  // namespace octet::tokenizer

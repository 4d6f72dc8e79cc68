#include "octet/tokenizer/normalizer.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tokenizer/unicode.hpp"
#include "octet/tokenizer/unicode_form.hpp"

namespace octet::tokenizer {
namespace {

class ToForm final : public Normalizer {
 public:
  explicit ToForm(Form form) : form_(form) {}
  void apply(std::string& text, bool, std::size_t, Regex::Scratch&) const override { form_.apply(text); }

 private:
  UnicodeForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(std::string& text, bool, std::size_t, Regex::Scratch&) const override {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      const Character c = first_character(rest);
      append_lower(out, c.code);
      rest.remove_prefix(c.bytes);
    }
    text = std::move(out);
  }
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(std::string& text, bool continued, std::size_t, Regex::Scratch&) const override {
    if (!text.empty() && !continued) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(Regex pattern, std::string content, bool marks_spaces)
      : pattern_(std::move(pattern)), content_(std::move(content)), marks_spaces_(marks_spaces) {}
  void apply(std::string& text, bool, std::size_t most, Regex::Scratch& scratch) const override {
    std::string out;
    std::size_t at = 0;
    Match match;
    while (out.size() <= most && pattern_.find(text, at, scratch, match)) {
      out.append(text, at, match.begin - at).append(content_);
      at = match.end;
    }
    if (at == 0) return;
    text = std::move(out.append(text, at));
  }
  bool separable() const override { return marks_spaces_; }
  bool marks_spaces() const override { return marks_spaces_; }

 private:
  Regex pattern_;
  std::string content_;
  bool marks_spaces_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text, bool, std::size_t, Regex::Scratch&) const override {
    std::string_view kept = text;
    while (left_ && !kept.empty() && is_white_space(first_character(kept).code)) kept.remove_prefix(first_character(kept).bytes);
    while (right_ && !kept.empty() && is_white_space(last_character(kept).code)) kept.remove_suffix(last_character(kept).bytes);
    text = std::string(kept);
  }
  bool separable() const override { return false; }

 private:
  bool left_, right_;
};

void add(const json::Fields& fields, const std::string& file, Normalizers& out) {
  const std::string& type = fields.text("type");
  if (type == "Sequence") {
    require_keys(fields, {"type", "normalizers"});
    for (const auto& each : fields.objects("normalizers")) add(each, file, out);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    require_keys(fields, {"type"});
    out.add(std::make_unique<ToForm>(type == "NFC" ? Form::nfc : type == "NFD" ? Form::nfd : type == "NFKC" ? Form::nfkc : Form::nfkd));
  } else if (type == "Lowercase") {
    require_keys(fields, {"type"});
    out.add(std::make_unique<Lowercase>());
  } else if (type == "Prepend") {
    require_keys(fields, {"type", "prepend"});
    out.add(std::make_unique<Prepend>(fields.text("prepend")));
  } else if (type == "Replace") {
    require_keys(fields, {"type", "pattern", "content"});
    const std::string& content = fields.text("content");
    Regex pattern = read_pattern(fields, file);
    const bool space = pattern.pattern() == " " && content == space_mark;
    out.add(std::make_unique<Replace>(std::move(pattern), content, space));
  } else if (type == "Strip") {
    require_keys(fields, {"type", "strip_left", "strip_right"});
    out.add(std::make_unique<Strip>(fields.boolean("strip_left"), fields.boolean("strip_right")));
  } else {
    fields.refuse("type", "NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip or Sequence (other normalizers are not supported)");
  }
}

}  // namespace

Normalizers read_normalizers(const json::Fields& fields, const std::string& file) {
  Normalizers out;
  out.file_ = file;
  add(fields, file, out);
  return out;
}

void Normalizers::apply(std::string& text, bool continued, Regex::Scratch& scratch) const {
  const std::size_t bytes = text.size(), most = most_grown(bytes);
  for (const auto& normalizer : all_) {
    normalizer->apply(text, continued, most, scratch);
    if (text.size() > most) refuse_growth(file_, "normalizer", bytes);
  }
}

void refuse_growth(const std::string& file, std::string_view part, std::size_t bytes) {
  throw DataError(format("{}: {} makes more than {} bytes of a text of {} bytes; choose a tokenizer that does not lengthen text so much",
                         file, part, grouped((long long)most_grown(bytes)), grouped((long long)bytes)));
}

void require_keys(const json::Fields& fields, std::initializer_list<std::string_view> known) {
  for (const json::Member& member : fields.members())
    if (!member.value.is_null() && std::find(known.begin(), known.end(), member.name) == known.end())
      fields.refuse(member.name, format("absent, since only {} are supported here", joined(known)));
}

Regex read_pattern(const json::Fields& fields, const std::string& file) {
  const json::Fields pattern = fields.object("pattern");
  require_keys(pattern, {"String", "Regex"});
  if (pattern.has("Regex")) return Regex(pattern.text("Regex"), file, "pattern.Regex");
  if (pattern.text("String").empty()) pattern.refuse("String", "a text that is not empty");
  return Regex::of_literal(pattern.text("String"), file, "pattern.String");
}

}  // namespace octet::tokenizer

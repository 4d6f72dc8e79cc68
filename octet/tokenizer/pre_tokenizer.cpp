#include "octet/tokenizer/pre_tokenizer.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tokenizer/normalizer.hpp"
#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {

const std::string_view byte_level_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view default_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

using Borders = PreTokenizer::Borders;

enum class Behavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Gives a text's parts to the next stage; only the first of them can be at the start.
class Cuts {
 public:
  Cuts(std::string_view text, bool at_start, PreTokenReceiver& parts) : text_(text), at_start_(at_start), parts_(parts) {}
  void add(std::size_t begin, std::size_t end) {
    if (begin < end) parts_.add(text_.substr(begin, end - begin), at_start_ && begin == 0);
  }

 private:
  std::string_view text_;
  bool at_start_;
  PreTokenReceiver& parts_;
};

struct Span {
  std::size_t begin, end;
  bool match;
};

/// Joins matches and the texts between them by `behavior`.
class Joiner {
 public:
  Joiner(Behavior behavior, Cuts& cuts) : behavior_(behavior), cuts_(cuts) {}

  void add(Span span) {
    switch (behavior_) {
      case Behavior::isolated: return cuts_.add(span.begin, span.end);
      case Behavior::removed:
        if (!span.match) cuts_.add(span.begin, span.end);
        return;
      case Behavior::contiguous: return join(span, any_ && span.match == open_.match);
      case Behavior::merged_with_previous: return join(span, any_ && span.match && !open_.match);
      case Behavior::merged_with_next: return join(span, any_ && !span.match && open_.match);
    }
  }
  void finish() {
    if (any_) cuts_.add(open_.begin, open_.end);
  }

 private:
  void join(Span span, bool joins) {
    if (joins) {
      open_.end = span.end, open_.match = span.match;
      return;
    }
    finish();
    open_ = span, any_ = true;
  }

  Behavior behavior_;
  Cuts& cuts_;
  Span open_{};
  bool any_ = false;
};

class Split final : public PreTokenizer {
 public:
  Split(Regex pattern, Behavior behavior, bool invert) : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {
    // These patterns match every character, so only the matches matter.
    const auto all = known_patterns();
    const bool known = std::ranges::find(all, pattern_.pattern()) != all.end();
    covers_ = known && (behavior == Behavior::isolated || (behavior == Behavior::removed && invert));
  }

  void split(std::string_view text, bool at_start, std::string&, Regex::Scratch& scratch, PreTokenReceiver& parts) const override {
    Cuts cuts(text, at_start, parts);
    Joiner joiner(behavior_, cuts);
    std::size_t at = 0;
    Match match;
    while (at < text.size() && pattern_.find(text, at, scratch, match)) {
      if (covers_ && match.begin == at) {
        cuts.add(match.begin, match.end);
      } else {
        if (match.begin > at) joiner.add({at, match.begin, invert_});
        joiner.add({match.begin, match.end, !invert_});
      }
      at = match.end;
    }
    if (at < text.size()) joiner.add({at, text.size(), invert_});
    joiner.finish();
  }
  Borders borders() const override { return covers_ ? Borders::at_lines : Borders::unknown; }

 private:
  Regex pattern_;
  Behavior behavior_;
  bool invert_, covers_ = false;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  void split(std::string_view text, bool at_start, std::string&, Regex::Scratch&, PreTokenReceiver& parts) const override {
    Cuts cuts(text, at_start, parts);
    Joiner joiner(individual_ ? Behavior::isolated : Behavior::contiguous, cuts);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size();) {
      const Character c = first_character(text.substr(i));
      if (is_numeric(c.code)) {
        if (begin < i) joiner.add({begin, i, false});
        joiner.add({i, i + c.bytes, true});
        begin = i + c.bytes;
      }
      i += c.bytes;
    }
    if (begin < text.size()) joiner.add({begin, text.size(), false});
    joiner.finish();
  }
  Borders borders() const override { return Borders::unchanged; }

 private:
  bool individual_;
};

/// ByteLevel's space before each part.
class LeadingSpace final : public PreTokenizer {
 public:
  void split(std::string_view text, bool at_start, std::string& storage, Regex::Scratch&, PreTokenReceiver& parts) const override {
    if (text.starts_with(' ')) return parts.add(text, at_start);
    storage.assign(" ").append(text);
    parts.add(storage, at_start);
  }
  Borders borders() const override { return Borders::unchanged; }
  bool prepends() const override { return true; }
};

enum class Prepend : std::uint8_t { always, first, never };

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string mark, Prepend prepend, bool split) : mark_(std::move(mark)), prepend_(prepend), split_(split) {}

  void split(std::string_view text, bool at_start, std::string& storage, Regex::Scratch&, PreTokenReceiver& parts) const override {
    storage.clear();
    const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && at_start);
    if (wanted && !text.starts_with(' ') && !text.starts_with(mark_)) storage += mark_;
    for (const char c : text) c == ' ' ? (void)(storage += mark_) : storage.push_back(c);
    Cuts cuts(storage, at_start, parts);
    std::size_t begin = 0;
    for (std::size_t i = storage.find(mark_, 1); split_ && i != storage.npos; i = storage.find(mark_, i + mark_.size())) {
      cuts.add(begin, i);
      begin = i;
    }
    cuts.add(begin, storage.size());
  }
  Borders borders() const override { return mark_ != space_mark ? Borders::unknown : split_ ? Borders::at_spaces : Borders::unchanged; }
  bool marks_spaces() const override { return mark_ == space_mark; }
  bool prepends() const override { return true; }

 private:
  std::string mark_;
  Prepend prepend_;
  bool split_;
};

Behavior read_behavior(const json::Fields& fields) {
  const std::string& name = fields.text("behavior");
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  fields.refuse("behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

std::unique_ptr<const PreTokenizer> read_metaspace(const json::Fields& fields) {
  require_keys(fields, {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  const std::string& mark = fields.text("replacement");
  if (mark.empty() || first_character(mark).bytes != mark.size()) fields.refuse("replacement", "one character");
  const std::string scheme = fields.text_or("prepend_scheme", "always");
  if (scheme != "always" && scheme != "first" && scheme != "never") fields.refuse("prepend_scheme", "always, first or never");
  if (!fields.boolean_or("add_prefix_space", true) && scheme != "never")
    fields.refuse("prepend_scheme", "never where add_prefix_space is false");
  const Prepend prepend = scheme == "always" ? Prepend::always : scheme == "first" ? Prepend::first : Prepend::never;
  return std::make_unique<Metaspace>(mark, prepend, fields.boolean_or("split", true));
}

void add(const json::Fields& fields, const std::string& file, PreTokenizers& out) {
  const std::string& type = fields.text("type");
  if (out.byte_level) fields.refuse("type", "absent: ByteLevel must be the last pre-tokenizer");
  if (type == "Sequence") {
    require_keys(fields, {"type", "pretokenizers"});
    for (const auto& each : fields.objects("pretokenizers")) add(each, file, out);
  } else if (type == "ByteLevel") {
    require_keys(fields, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (fields.boolean("add_prefix_space")) out.stages.push_back(std::make_unique<LeadingSpace>());
    if (fields.boolean_or("use_regex", true))
      out.stages.push_back(std::make_unique<Split>(Regex(byte_level_pattern, file, "pre_tokenizer"), Behavior::isolated, false));
    out.byte_level = true;
  } else if (type == "Split") {
    require_keys(fields, {"type", "pattern", "behavior", "invert"});
    out.stages.push_back(std::make_unique<Split>(read_pattern(fields, file), read_behavior(fields), fields.boolean_or("invert", false)));
  } else if (type == "Digits") {
    require_keys(fields, {"type", "individual_digits"});
    out.stages.push_back(std::make_unique<Digits>(fields.boolean_or("individual_digits", false)));
  } else if (type == "Metaspace") {
    out.stages.push_back(read_metaspace(fields));
  } else {
    fields.refuse("type", "ByteLevel, Split, Digits, Metaspace or Sequence (other pre-tokenizers are not supported)");
  }
}

}  // namespace

Borders PreTokenizers::borders() const {
  Borders all = Borders::unchanged;
  bool prepends = false;
  for (const auto& stage : stages) {
    if (stage->borders() == Borders::unknown) return Borders::unknown;
    all = std::max(all, stage->borders());
    prepends = prepends || stage->prepends();
  }
  return prepends ? std::min(all, Borders::at_spaces) : all;
}

std::span<const std::string_view> known_patterns() {
  // Sources: the tokenizer.json of Llama 3, Qwen2, GPT-2 and GPT-4, in this order.
  static constexpr std::string_view more[] = {
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
  static const std::string_view all[] = {default_pattern, more[0], byte_level_pattern, more[1]};
  return all;
}

std::string_view pattern_with_digits(std::string_view digits) {
  const auto found = std::ranges::find(pattern_digits, digits);
  check(found != pattern_digits.end(), "there is no pattern of {} digits", digits);
  return known_patterns()[std::size_t(found - pattern_digits.begin())];
}

PreTokenizers read_pre_tokenizers(const json::Fields& fields, const std::string& file) {
  PreTokenizers out;
  add(fields, file, out);
  return out;
}

}  // namespace octet::tokenizer

#include <algorithm>
#include <array>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tokenizer/regex.hpp"

namespace octet::tokenizer {
namespace {

// The properties White_Space and Word as the insides of a class. PCRE2's own \s and \w differ from them in some characters.
constexpr std::string_view white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view word = R"(\p{L}\p{M}\p{Nd}\p{Pc})";
constexpr std::array<std::string_view, 37> categories = {"C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",
                                                         "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
                                                         "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};

/// Translates a pattern character by character.
class Translation {
 public:
  Translation(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (in_class_) class_character();
      else character();
    }
    if (in_class_) refuse("a class without its end");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError(format("{}: the pattern \"{}\" has {}, which is not supported", where_, printable(in_), printable(what)));
  }
  bool next_is(std::string_view s) const { return in_.substr(at_).starts_with(s); }
  void copy(std::size_t n) {
    out_ += in_.substr(at_, n);
    at_ += n;
  }

  void character() {
    const char c = in_[at_];
    if (c == '\\') escape();
    else if (c == '[') open_class();
    else if (c == '(') group();
    else if (c == '^' || c == '$') refuse(format("the anchor {}", std::string_view(&c, 1)));
    else if (next_is("{,")) refuse("a quantifier without its lower limit");
    else if (next_is("}+")) refuse("the quantifier {...}+");
    else copy(1);
  }

  void open_class() {
    in_class_ = true;
    copy(next_is("[^") ? 2 : 1);
    if (next_is("]")) refuse("a class that begins with ]");
  }

  void class_character() {
    if (in_[at_] == '\\') return escape();
    if (in_[at_] == '[') refuse("a class within a class");
    if (next_is("&&")) refuse("the operator && in a class");
    if (in_[at_] == ']') in_class_ = false;
    copy(1);
  }

  void group() {
    if (next_is("(*")) refuse(format("the verb {}...", in_.substr(at_, 8)));
    if (!next_is("(?")) return copy(1);
    for (const std::string_view known : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"})
      if (next_is(known)) return copy(known.size());
    refuse(format("the group {}...", in_.substr(at_, 4)));
  }

  void set(std::string_view inside, bool negated) {
    at_ += 2;
    if (in_class_ && negated) refuse("a negated set within a class");
    out_ += in_class_ ? std::string(inside) : format("[{}{}]", negated ? "^" : "", inside);
  }

  void escape() {
    if (at_ + 1 == in_.size()) refuse("a backslash at its end");
    const char c = in_[at_ + 1];
    switch (c) {
      case 's':
      case 'S': return set(white_space, c == 'S');
      case 'w':
      case 'W': return set(word, c == 'W');
      case 'd':
      case 'D':
        out_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
        at_ += 2;
        return;
      case 'p':
      case 'P': return property();
      case 'x':
      case 'u': return number();
      case 'n':
      case 'r':
      case 't':
      case 'f': return copy(2);
      default: break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) refuse(format("the escape \\{}", std::string_view(&c, 1)));
    if (static_cast<unsigned char>(c) >= 0x80) ++at_;  // the character itself
    else copy(2);
  }

  /// \p{L}: a general category or a script.
  void property() {
    const std::size_t close = in_.find('}', at_);
    const bool braces = in_.substr(at_ + 2).starts_with("{") && close != in_.npos;
    const std::string_view name = braces ? in_.substr(at_ + 3, close - at_ - 3) : in_.substr(at_ + 2, 1);
    const bool letters = !name.empty() && std::ranges::all_of(name, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
    if (!letters) refuse(format("the property {}", in_.substr(at_, std::min<std::size_t>(close - at_, 20))));
    const bool category = std::ranges::find(categories, name) != categories.end();
    out_ += "\\" + std::string(1, in_[at_ + 1]) + "{" + (category ? "" : "sc:") + std::string(name) + "}";
    at_ = braces ? close + 1 : at_ + 3;
  }

  /// \x41, \x{41}, \u0041.
  void number() {
    const auto digits = [&](std::size_t from, std::size_t most) {
      std::size_t n = 0;
      while (n < most && from + n < in_.size() && std::isxdigit(static_cast<unsigned char>(in_[from + n]))) ++n;
      return n;
    };
    const bool unicode = in_[at_ + 1] == 'u', braces = !unicode && in_.substr(at_ + 2).starts_with("{");
    const std::size_t from = at_ + (braces ? 3 : 2), wanted = unicode ? 4 : 2, n = digits(from, braces ? 6 : wanted);
    const bool ends = braces ? n > 0 && in_.substr(from + n).starts_with("}") : n == wanted;
    const bool ascii = unicode || braces || (n > 0 && in_[from] < '8');  // \x80 is a byte, no character
    if (!ends || !ascii) refuse(format("the escape {}", in_.substr(at_, 6)));
    out_ += "\\x{" + std::string(in_.substr(from, n)) + "}";
    at_ = from + n + (braces ? 1 : 0);
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern, const std::string& where) { return Translation(pattern, where).run(); }

}  // namespace octet::tokenizer

#include "octet/tokenizer/unicode_form.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

constexpr char32_t first_unlisted = 0x20000;

struct Span {
  char32_t first, last;
};
// Between two of one span there is no other character that a form changes.
constexpr Span newer[] = {{0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
                          {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
                          {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
                          {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
                          {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938}, {0x1193D, 0x1193E},
                          {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99},
                          {0x11D42, 0x11D45}, {0x11D97, 0x11D97}, {0x16FF0, 0x16FF1}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
                          {0x1E2EC, 0x1E2EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

bool composes(Form form) { return form == Form::nfc || form == Form::nfkc; }

/// utf8proc's options for the decomposition.
int options_of(Form form) {
  const int compatible = form == Form::nfkc || form == Form::nfkd ? UTF8PROC_COMPAT : 0;
  return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | compatible;
}

void decompose(char32_t code, Form form, std::vector<utf8proc_int32_t>& out) {
  if (is_newer_than_forms(code)) return out.push_back(utf8proc_int32_t(code));
  utf8proc_int32_t buffer[64];  // the longest decomposition has 18 characters
  int boundary = 0;
  const auto n = utf8proc_decompose_char(utf8proc_int32_t(code), buffer, 64, utf8proc_option_t(options_of(form)), &boundary);
  out.insert(out.end(), buffer, buffer + std::clamp<utf8proc_ssize_t>(n, 0, 64));
}

int combining_class(utf8proc_int32_t code) {
  return is_newer_than_forms(char32_t(code)) ? 0 : utf8proc_get_property(code)->combining_class;
}

/// Sorts each run of marks by their class, as the canonical order requires.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (auto at = codes.begin(); at != codes.end();) {
    const auto begin = std::find_if(at, codes.end(), [](auto c) { return combining_class(c) != 0; });
    at = std::find_if(begin, codes.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, at, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
  }
}

void compose(std::vector<utf8proc_int32_t>& codes) {
  const auto options = utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  codes.resize(std::size_t(utf8proc_normalize_utf32(codes.data(), utf8proc_ssize_t(codes.size()), options)));
}

}  // namespace

bool is_newer_than_forms(char32_t code) {
  const auto* const span = std::ranges::upper_bound(newer, code, {}, &Span::first);
  return span != std::begin(newer) && code <= (span - 1)->last;
}

UnicodeForm::UnicodeForm(Form form) : form_(form), inert_(first_unlisted, true) {
  std::vector<utf8proc_int32_t> parts;
  for (char32_t c = 0; c < first_unlisted; ++c) {
    parts.clear();
    if (c >= 0xD800 && c < 0xE000) continue;
    decompose(c, form, parts);
    const bool joins = (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);  // Hangul vowels and finals
    if (combining_class(utf8proc_int32_t(c)) != 0 || joins) inert_[c] = false;
    if (parts.size() == 1 && parts[0] == utf8proc_int32_t(c)) continue;
    for (std::size_t i = 1; i < parts.size(); ++i)
      if (char32_t(parts[i]) < first_unlisted) inert_[char32_t(parts[i])] = false;
    if (composes(form)) compose(parts);
    if (parts.size() != 1 || parts[0] != utf8proc_int32_t(c)) inert_[c] = false;
  }
}

void UnicodeForm::convert(std::string_view part, std::string& out) const {
  std::vector<utf8proc_int32_t> codes;
  while (!part.empty()) {
    const Character c = first_character(part);
    decompose(c.code, form_, codes);
    part.remove_prefix(c.bytes);
  }
  order_marks(codes);
  if (composes(form_)) compose(codes);
  for (const auto c : codes) append_utf8(out, char32_t(c));
}

void UnicodeForm::apply(std::string& text) const {
  std::string out;
  std::size_t copied = 0, last = 0;  // bytes of the text in `out`, and the beginning of the last inert character
  for (std::size_t i = 0; i < text.size();) {
    const Character c = first_character(std::string_view(text).substr(i));
    if (inert(c.code)) {
      last = i, i += c.bytes;
      continue;
    }
    // The run of other characters, with the character before it, which they may join.
    std::size_t end = i;
    while (end < text.size()) {
      const Character next = first_character(std::string_view(text).substr(end));
      if (inert(next.code)) break;
      end += next.bytes;
    }
    const std::size_t begin = std::max(copied, last);
    out.append(text, copied, begin - copied);
    convert(std::string_view(text).substr(begin, end - begin), out);
    copied = last = i = end;
  }
  if (copied == 0) return;
  out.append(text, copied);
  text = std::move(out);
}

}  // namespace octet::tokenizer

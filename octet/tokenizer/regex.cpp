#define PCRE2_CODE_UNIT_WIDTH 8
#include "octet/tokenizer/regex.hpp"

#include <pcre2.h>

#include <new>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::tokenizer {
namespace {

// A pattern that backtracks without end stops after about a second; the patterns in use need a few steps per character.
constexpr std::uint32_t most_steps = 20'000'000;
constexpr std::size_t first_stack = std::size_t(64) << 10, most_stack = std::size_t(8) << 20;  // bytes
constexpr std::size_t longest_pattern = 16384;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code;
  ~Compiled() { pcre2_code_free(code); }
};

struct Regex::Scratch::State {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(first_stack, most_stack, nullptr);

  State() {
    if (match == nullptr || context == nullptr || stack == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(context, most_steps);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~State() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }
};

Regex::Scratch::Scratch() : state_(std::make_unique<State>()) {}
Regex::Scratch::~Scratch() = default;

Regex::Regex(std::string_view pattern, const std::string& file, const std::string& where) : pattern_(pattern), where_(file + ": " + where) {
  if (pattern.size() > longest_pattern)
    throw DataError(format("{}: a pattern may have at most {} bytes, this one has {}", where_, longest_pattern, pattern.size()));
  const std::string text = pcre2_pattern(pattern, where_);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, 50);
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE,
                                   &error, &at, context);
  pcre2_compile_context_free(context);
  if (code == nullptr) throw DataError(format("{}: the pattern \"{}\" is invalid: {}", where_, printable(pattern), message_of(error)));
  compiled_ = std::shared_ptr<const Compiled>(new Compiled{code});
  if (const int failed = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE))
    throw DataError(
        format("{}: the pattern \"{}\" cannot be compiled to machine code: {}", where_, printable(pattern), message_of(failed)));
  std::uint32_t may_be_empty = 0;
  pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty != 0)
    throw DataError(format("{}: the pattern \"{}\" matches the empty text, which is not supported", where_, printable(pattern)));
}

Regex Regex::of_literal(std::string_view literal, const std::string& file, const std::string& where) {
  std::string pattern;
  for (const char c : literal) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) || c == ' ';
    if (c == '\n' || c == '\r' || c == '\t') pattern += c;
    else pattern += plain ? std::string(1, c) : "\\" + std::string(1, c);
  }
  return Regex(pattern, file, where);
}

bool Regex::find(std::string_view text, std::size_t from, Scratch& scratch, Match& match) const {
  auto& s = *scratch.state_;
  const int found = pcre2_jit_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0, s.match, s.context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0)
    throw DataError(format("{}: the pattern \"{}\" needs too much work for a text of {} bytes: {}; simplify the pattern, or split the text",
                           where_, printable(pattern_), text.size(), message_of(found)));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(s.match);
  match = {ends[0], ends[1]};
  return true;
}

}  // namespace octet::tokenizer

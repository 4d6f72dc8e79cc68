#include "octet/tokenizer/bpe_tokenizer.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

namespace {

/// Encodes in one go and in the pieces that the tokenizer allows: both have the same ids, and each id is one of the vocabulary.
void check_text(const tokenizer::BpeTokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> whole, parts;
  tokenizer.encode(text, whole);
  for (const std::int32_t id : whole)
    if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
  tokenizer.decode(whole);
  const std::size_t cut = tokenizer.last_cut(text);
  tokenizer.encode(text.substr(0, cut), parts);
  tokenizer.encode(text.substr(cut), parts, cut == 0 ? tokenizer::Position::start : tokenizer::Position::continued);
  if (parts != whole) __builtin_trap();
}

}  // namespace

// A tokenizer.json, and behind a byte 0 the text that it encodes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input = fuzz::text_of(bytes, size);
  const std::size_t end = input.find('\0');
  fuzz::read_or_refuse([&] {
    const tokenizer::BpeTokenizer tokenizer(std::string(input.substr(0, end)), "tokenizer.json");
    check_text(tokenizer, end == input.npos ? "the text of a document, and <|end|> more" : input.substr(end + 1));
  });
  return 0;
}

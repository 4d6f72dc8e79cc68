#include "octet/data/foreign_tokens.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/data/token_format.hpp"

namespace octet::data {
namespace {

constexpr std::uint32_t narrow_vocabulary = 50257, narrow_separator = 50256, wide_vocabulary = 128256, wide_separator = 128000;

// A number at a byte, which need not be aligned.
template <class T>
T number_at(std::string_view bytes, std::uint64_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return out;
}

[[noreturn]] void refuse(const MappedFile& file, std::uint64_t byte, const std::string& why) {
  throw DataError(
      format("{}: byte {}: {}; copy the file again, or tokenize the text by `octet tokenize`", printable(file.path()), byte, why));
}

// Where each id is. Fills the largest one.
template <class T, class See>
void see_tokens(std::string_view bytes, ForeignTokens& t, const See& see) {
  for (std::uint64_t i = 0; i < t.count; ++i) {
    const auto id = std::uint32_t(number_at<T>(bytes, t.first_byte + i * sizeof(T)));
    t.largest = std::max(t.largest, id);
    see(i, id);
  }
}
template <class See>
void see_tokens(std::string_view bytes, ForeignTokens& t, const See& see) {
  if (t.bytes_per_token == 2) see_tokens<std::uint16_t>(bytes, t, see);
  else see_tokens<std::uint32_t>(bytes, t, see);
}

// Documents by their separator: they begin with it, or behind it.
void find_documents(std::string_view bytes, ForeignTokens& t, std::uint32_t separator, bool begins) {
  see_tokens(bytes, t, [&](std::uint64_t i, std::uint32_t id) {
    if (id != separator) return;
    if (begins) t.documents.push_back(i);
    else if (i + 1 < t.count) t.documents.push_back(i + 1);
  });
}

std::optional<ForeignTokens> llm_c(const MappedFile& file) {
  constexpr std::uint64_t header = 256 * 4;
  constexpr std::int32_t narrow_magic = 20240520, wide_magic = 20240801;
  const std::string_view bytes = file.bytes();
  if (bytes.size() < header) return {};
  const auto magic = number_at<std::int32_t>(bytes, 0), version = number_at<std::int32_t>(bytes, 4);
  if (magic != narrow_magic && magic != wide_magic) return {};
  const bool narrow = magic == narrow_magic;
  if (version != (narrow ? 1 : 7)) refuse(file, 4, format("a file of llm.c must have the version {}, got {}", narrow ? 1 : 7, version));
  ForeignTokens t{.program = "llm.c",
                  .first_byte = header,
                  .count = std::uint64_t(std::max(number_at<std::int32_t>(bytes, 8), 0)),
                  .bytes_per_token = narrow ? 2u : 4u,
                  .vocab_size = narrow ? narrow_vocabulary : wide_vocabulary};
  if (header + t.count * t.bytes_per_token != bytes.size())
    refuse(file, 8,
           format("its header says {} tokens, so the file must have {} bytes, got {}", t.count, header + t.count * t.bytes_per_token,
                  bytes.size()));
  find_documents(bytes, t, narrow ? narrow_separator : wide_separator, true);
  return t;
}

// A document ends with a separator that the header does not name, and so does the file. Ids of special tokens may be beyond the vocabulary
// that the header has.
std::optional<ForeignTokens> llm_q(const MappedFile& file) {
  constexpr std::uint64_t header = 1024;
  const std::string_view bytes = file.bytes();
  if (!bytes.starts_with("BIN.TOK\n")) return {};
  if (bytes.size() < header) refuse(file, bytes.size(), format("a file of LLM.Q has a header of {} bytes", header));
  const auto word = [&](std::uint64_t at) { return number_at<std::int32_t>(bytes, at); };
  if (word(8) != 1 && word(8) != 2) refuse(file, 8, format("a file of LLM.Q must have the version 1 or 2, got {}", word(8)));
  if (word(12) != 4) refuse(file, 12, format("tokens of LLM.Q must have 4 bytes, got {}", word(12)));
  if (word(8) == 2 && word(24) != 0) refuse(file, 24, "masks of LLM.Q are not read");
  ForeignTokens t{.program = "LLM.Q",
                  .first_byte = header,
                  .count = std::uint64_t(std::max(word(16), 0)),
                  .bytes_per_token = 4,
                  .vocab_size = word(8) == 2 ? std::uint32_t(std::max(word(20), 0)) : 0};
  if (header + t.count * t.bytes_per_token != bytes.size())
    refuse(file, 16,
           format("its header says {} tokens, so the file must have {} bytes, got {}", t.count, header + t.count * t.bytes_per_token,
                  bytes.size()));
  if (t.count == 0) return t;
  t.documents.push_back(0);
  find_documents(bytes, t, number_at<std::uint32_t>(bytes, bytes.size() - 4), false);
  if (t.largest < context_mark) t.vocab_size = std::max(t.vocab_size, t.largest + 1);
  return t;
}

// Fills the documents of Megatron's index.
void read_index(const MappedFile& index, ForeignTokens& t) {
  constexpr std::string_view magic{"MMIDIDX\0\0", 9};
  constexpr std::uint64_t front = 34;
  constexpr int of_u16 = 8, of_i32 = 4;
  const std::string_view bytes = index.bytes();
  if (bytes.size() < front || !bytes.starts_with(magic) || number_at<std::uint64_t>(bytes, 9) != 1)
    refuse(index, 0, "an index of Megatron must begin with MMIDIDX and have the version 1");
  const int type = std::uint8_t(bytes[17]);
  if (type != of_u16 && type != of_i32) refuse(index, 17, format("tokens must be u16 (8) or i32 (4), got the code {}", type));
  t.bytes_per_token = type == of_u16 ? 2 : 4;
  const auto sequences = number_at<std::uint64_t>(bytes, 18), documents = number_at<std::uint64_t>(bytes, 26);
  if (sequences > bytes.size() || documents > bytes.size() || bytes.size() != front + 12 * sequences + 8 * documents || documents == 0)
    refuse(index, 18, format("{} sequences and {} documents do not fit a file of {} bytes", sequences, documents, bytes.size()));
  std::uint64_t at = 0;
  std::vector<std::uint64_t> begins;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const std::uint64_t place = front + 4 * sequences + 8 * i;
    if (number_at<std::uint64_t>(bytes, place) != at * t.bytes_per_token)
      refuse(index, place, format("sequence {} must begin where the one before it ends", i));
    begins.push_back(at), at += std::uint64_t(std::max(number_at<std::int32_t>(bytes, front + 4 * i), 0));
  }
  t.count = at;
  for (std::uint64_t d = 0; d + 1 < documents; ++d) {
    const std::uint64_t place = front + 12 * sequences + 8 * d, sequence = number_at<std::uint64_t>(bytes, place);
    if (sequence > sequences) refuse(index, place, format("document {} must begin at one of {} sequences, got {}", d, sequences, sequence));
    const std::uint64_t begin = sequence < sequences ? begins[sequence] : at;
    const bool empty = begin >= at || (!t.documents.empty() && begin <= t.documents.back());
    if (!empty) t.documents.push_back(begin);
  }
}

std::optional<ForeignTokens> megatron(const MappedFile& file) {
  const std::string index = file.path().substr(0, file.path().size() - 3) + "idx";
  if (!exists(index)) return {};
  ForeignTokens t{.program = "Megatron"};
  read_index(MappedFile(index), t);
  if (t.count * t.bytes_per_token != file.bytes().size())
    refuse(
        file, 0,
        format("{} says {} tokens of {} bytes, the file has {} bytes", printable(index), t.count, t.bytes_per_token, file.bytes().size()));
  see_tokens(file.bytes(), t, [](std::uint64_t, std::uint32_t) {});
  t.vocab_size = t.largest + 1;
  return t;
}

ForeignTokens nano_gpt(const MappedFile& file) {
  const std::string_view bytes = file.bytes();
  for (const std::string_view other : {std::string_view("PK\x03\x04"), std::string_view("\x80\x02", 2), std::string_view("OCTETTOK")})
    if (bytes.starts_with(other))
      refuse(file, 0,
             "it has no tokens of llm.c, LLM.Q, Megatron or nanoGPT; data.path names the folder of a dataset, or files of these programs");
  if (bytes.size() % 2 != 0) refuse(file, bytes.size() - 1, "tokens of nanoGPT have 2 bytes, and the file has an odd number of bytes");
  ForeignTokens t{.program = "nanoGPT", .count = bytes.size() / 2};
  find_documents(bytes, t, narrow_separator, false);
  t.vocab_size = t.documents.empty() && t.largest < narrow_separator ? t.largest + 1 : std::max(narrow_vocabulary, t.largest + 1);
  if (t.documents.empty() || t.documents.front() != 0) t.documents.insert(t.documents.begin(), 0);
  return t;
}

}  // namespace

bool names_foreign_tokens(const std::string& path) { return path.ends_with(".bin"); }

ForeignTokens find_foreign_tokens(const MappedFile& file) {
  std::optional<ForeignTokens> t = llm_c(file);
  if (!t) t = llm_q(file);
  if (!t) t = megatron(file);
  if (!t) t = nano_gpt(file);
  if (t->count == 0) refuse(file, 0, "it has no tokens");
  if (t->largest >= t->vocab_size || t->largest >= context_mark)
    refuse(file, t->first_byte, format("ids must be below {}, the largest is {}", t->vocab_size, t->largest));
  return std::move(*t);
}

std::string folder_of_data(const std::string& path) {
  if (!names_foreign_tokens(path) || is_folder(path)) return path;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  while (folder.string().find_first_of("*?[") != std::string::npos) folder = folder.parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace octet::data

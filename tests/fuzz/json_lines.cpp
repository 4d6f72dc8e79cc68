#include "octet/data/json_lines.hpp"

#include "octet/data/byte_stream.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// JSON lines: the first byte says whether plain (0), compressed with gzip (1) or with Zstandard (2). With bad lines left out no line is
// refused, and without any the same documents are read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::size_t portion = 3000, most = 1 << 22;
  const std::string path = std::string("input.jsonl") + (bytes[0] % 3 == 0 ? "" : bytes[0] % 3 == 1 ? ".gz" : ".zst");
  fuzz::put_file(path, fuzz::text_of(bytes, size).substr(1));
  fuzz::read_or_refuse([&] {
    const auto stream = data::open_bytes({path, size - 1});
    std::string lines;
    for (std::size_t before = 0; lines.size() < most; before = lines.size()) {
      stream->read(portion, lines);
      if (lines.size() > before + portion) __builtin_trap();
      if (lines.size() < before + portion) break;
    }
    const auto documents = [&](bool skip_bad, std::string& all) {
      return data::each_document({.skip_bad = skip_bad}, lines, path, 1, [&](std::string_view text) { all.append(text) += '\n'; });
    };
    std::string left, strict;
    const data::LineCounts some = fuzz::must([&] { return documents(true, left); });
    const data::LineCounts all = documents(false, strict);
    if (some.bad != 0 || all.bad != 0 || some.documents != all.documents || some.empty != all.empty || left != strict) __builtin_trap();
  });
  return 0;
}

#include <gtest/gtest.h>

#include <cstdlib>

#include "octet/base/text.hpp"
#include "octet/data/dataset.hpp"
#include "octet/data/permutation.hpp"
#include "octet/data/split.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/optim/schedule.hpp"
#include "tests/testing/scratch.hpp"

// The Python code of pages in docs/, run as a reader would, against the program.

namespace octet {
namespace {

using testing::Scratch, testing::bytes_of;

bool has_python() { return std::system("python3 --version > /dev/null 2>&1") == 0; }

// The Python of a page in its order, without the examples that name no function.
std::string code_of(const char* name) {
  const std::string page = bytes_of(std::string(OCTET_SOURCE_DIR "/docs/") + name);
  std::string code;
  for (std::size_t at = 0; (at = page.find("```python\n", at)) != std::string::npos;) {
    at += 10;
    const std::string block = page.substr(at, page.find("```", at) - at);
    if (block.find("def ") != std::string::npos) code += block + "\n";
  }
  return code;
}

// Two functions of the package xxhash, from the library that Octet itself uses.
constexpr const char* xxhash_module = R"(import ctypes
class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]
library = ctypes.CDLL("libxxhash.so.0")
library.XXH3_128bits.restype = Hash
library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
def xxh3_128_intdigest(data):
    hashed = library.XXH3_128bits(data, len(data))
    return hashed.high << 64 | hashed.low
)";

// Runs the code of a page and then `rest` in a folder; what it printed.
std::string run_page(const Scratch& scratch, const char* page, const std::string& rest) {
  scratch.write("xxhash.py", xxhash_module);
  const std::string program = scratch.write("program.py", code_of(page) + rest), out = scratch.at("out.txt");
  const std::string command = "cd '" + scratch.folder() + "' && PYTHONDONTWRITEBYTECODE=1 python3 program.py > out.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << bytes_of(out);
  return bytes_of(out);
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> out;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double x = std::strtod(at, &end);
    if (end == at) return out;
    out.push_back(x);
  }
}

TEST(PageCode, ADatasetWrittenByThePythonOfItsPageIsRead) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  for (const bool wide : {false, true}) {
    const Scratch scratch;
    const std::int32_t vocabulary = wide ? 150'000 : 257, separator = wide ? 149'999 : 256;
    run_page(scratch, "token-format.md",
             format("write_dataset('data', [[1, 2, 3], [7], [d * {} % {} for d in range(5)]], {}, {})\n", wide ? 30'011 : 40, separator,
                    vocabulary, separator));
    const data::Dataset dataset(scratch.at("data"));
    std::vector<std::int32_t> ids(dataset.token_count()), wanted{1, 2, 3, separator, 7, separator};
    for (std::int32_t d = 0; d < 5; ++d) wanted.push_back(d * (wide ? 30'011 : 40) % separator);
    wanted.push_back(separator);
    dataset.read(0, ids);
    EXPECT_EQ(ids, wanted);
    ASSERT_EQ(dataset.document_count(), 3u);
    EXPECT_EQ(dataset.document_start(1), 4u);
    EXPECT_EQ(dataset.document_start(2), 6u);
    EXPECT_EQ(dataset.vocab_size(), vocabulary);
  }
}

TEST(PageCode, TheOrderOfSamplesIsThatOfItsPage) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Scratch scratch;
  const std::uint64_t seeds[] = {0, 1, 0xFEDCBA9876543210}, sizes[] = {1, 2, 3, 83, 1000, 1'000'003};
  std::string program;
  std::vector<double> wanted;
  for (const std::uint64_t seed : seeds)
    for (const std::uint64_t n : sizes) {
      program += format("print(*[window(g, {}, {}) for g in range(150)])\n", n, seed);
      for (std::uint64_t g = 0; g < 150; ++g) wanted.push_back(double(data::Permutation(n, seed, g / n)(g % n)));
    }
  EXPECT_EQ(numbers_in(run_page(scratch, "reproduce.md", program)), wanted);
}

TEST(PageCode, TheHeldOutDocumentsAreThoseOfItsPage) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  const Scratch scratch;
  for (int i = 0; i < 100; ++i) scratch.write(format("text/{}.txt", 1000 + i), "x");  // two tokens each, with the separator
  data::tokenize({scratch.at("text/*.txt")}, scratch.at("data"), {});
  const data::Dataset dataset(scratch.at("data"));
  for (const double fraction : {0.001, 0.01, 0.29, 0.5, 0.999}) {
    std::vector<double> wanted;
    for (const data::TokenRange& range : data::split_documents(dataset, fraction).held_out)
      for (std::uint64_t token = range.begin; token < range.end; token += 2) wanted.push_back(double(token / 2));
    EXPECT_EQ(numbers_in(run_page(scratch, "reproduce.md", format("print(*sorted(held_out(100, {})))\n", fraction))), wanted) << fraction;
  }
}

TEST(PageCode, TheLearningRateIsThatOfItsPage) {
  if (!has_python()) GTEST_SKIP() << "no python3";
  using Kind = optim::ScheduleConfig::Kind;
  const Scratch scratch;
  std::string program;
  std::vector<double> wanted;
  for (const auto& [name, kind] :
       {std::pair{"constant", Kind::constant}, {"linear", Kind::linear}, {"cosine", Kind::cosine}, {"wsd", Kind::wsd}})
    for (const double warmup : {0.0, 0.13, 1.0}) {
      program += format("for k in range(1, 41): print(repr(rate(k, 40, 3e-4, '{}', {}, 0.3, 0.05)))\n", name, warmup);
      const optim::ScheduleConfig c{.kind = kind, .warmup = warmup, .decay = 0.3, .final_ratio = 0.05};
      for (int k = 1; k <= 40; ++k) wanted.push_back(3e-4 * optim::rate_factor(c, k / 40.0));
    }
  program += "print(repr(rate(7, 40, 1)))\n";
  wanted.push_back(optim::rate_factor({}, 7 / 40.0));
  const std::vector<double> got = numbers_in(run_page(scratch, "reproduce.md", program));
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-15 * std::abs(wanted[i]) + 1e-19) << i;  // a few roundings
}

}  // namespace
}  // namespace octet

#include "octet/ops/gemm/gemm_algorithms.hpp"

#include "octet/base/error.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// A run's gemm-plans.txt, on the machine that its first line names. An accepted one is written and read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::text_of(bytes, size), machine = text.substr(0, text.find('\n'));
  fuzz::read_or_refuse([&] {
    ops::GemmAlgorithms plans, again;
    if (!plans.load(text, machine)) return;
    const std::string written = plans.text(machine);
    if (!fuzz::must([&] { return again.load(written, machine); }) || again.text(machine) != written) __builtin_trap();
  });
  return 0;
}

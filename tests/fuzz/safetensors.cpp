#include "octet/io/safetensors_file.hpp"
#include "octet/io/weight_index.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// A safetensors file whose tensors are all touched; an index of such files where the input begins with a brace.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::text_of(bytes, size);
  fuzz::read_or_refuse([&] {
    if (text.starts_with('{')) io::parse_weight_index(text, "index.json");
  });
  fuzz::read_or_refuse([&] {
    const fuzz::MemoryFile input(text);
    const auto file = io::SafetensorsFile::open(input.path());
    volatile unsigned sum = 0;
    for (const io::TensorView& tensor : file.tensors()) {
      for (const std::byte b : tensor.bytes) sum = sum + unsigned(b);
      if (!file.find(tensor.name)) __builtin_trap();
      fuzz::read_or_refuse([&] { io::to_f32(tensor); });
    }
  });
  return 0;
}

#include "octet/config/read.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// A configuration as a file, and each of its lines as an override. What was accepted is written and read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::text_of(bytes, size);
  fuzz::read_or_refuse([&] {
    config::Sample sample, again;
    config::read_toml(text, "input.toml", sample);
    const std::string written = config::to_toml(sample);
    fuzz::must([&] { return config::read_toml(written, "written.toml", again); });
    if (config::to_toml(again) != written) __builtin_trap();
  });
  fuzz::read_or_refuse([&] {
    config::Sample sample;
    config::Origins origins;
    config::apply_override(sample, text.substr(0, text.find('\n')), origins);
  });
  return 0;
}

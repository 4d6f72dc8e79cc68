#include "octet/config/read.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

namespace {

template <class Config>
void read_and_write(std::string_view text) {
  fuzz::read_or_refuse([&] {
    Config sample, again;
    config::read_toml(text, "input.toml", sample);
    const std::string written = config::to_toml(sample);
    fuzz::must([&] { return config::read_toml(written, "written.toml", again); });
    if (config::to_toml(again) != written) __builtin_trap();
  });
  fuzz::read_or_refuse([&] {
    Config sample;
    config::Origins origins;
    config::apply_override(sample, text.substr(0, text.find('\n')), origins);
  });
}

}  // namespace

// A configuration as a file, and its first line as an override. Accepted ones are written and read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::text_of(bytes, size);
  read_and_write<config::Sample>(text);
  read_and_write<config::SampleJob>(text);
  return 0;
}

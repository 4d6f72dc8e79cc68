#include "octet/base/file.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// A run.json. An accepted one is written and read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile input(fuzz::text_of(bytes, size));
  fuzz::read_or_refuse([&] {
    telemetry::write_run_facts("written.json", telemetry::read_run_facts(input.path()));
    const std::string written = read_file("written.json", fuzz::most_bytes);
    telemetry::write_run_facts("written.json", fuzz::must([] { return telemetry::read_run_facts("written.json"); }));
    if (read_file("written.json", fuzz::most_bytes) != written) __builtin_trap();
  });
  return 0;
}

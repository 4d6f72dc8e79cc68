#include "octet/telemetry/comparison.hpp"

#include "octet/base/file.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// A compare.json. An accepted one is shown as a table, written and read back; no run lies outside its folder.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile input(fuzz::text_of(bytes, size));
  fuzz::read_or_refuse([&] {
    const telemetry::Comparison comparison = telemetry::read_comparison(input.path());
    for (const std::string& run : comparison.runs)
      if (run.empty() || run == ".." || run.find('/') != run.npos) __builtin_trap();
    telemetry::table_text(comparison);
    telemetry::write_comparison("written.json", comparison);
    const std::string written = read_file("written.json", fuzz::most_bytes);
    telemetry::write_comparison("written.json", fuzz::must([] { return telemetry::read_comparison("written.json"); }));
    if (read_file("written.json", fuzz::most_bytes) != written) __builtin_trap();
  });
  return 0;
}

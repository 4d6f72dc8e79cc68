#include <filesystem>
#include <fstream>

#include "octet/telemetry/run_record.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// The metrics.jsonl of a run with two quantizers; the same bytes as the run.json of another one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const bool made = [] {
    std::filesystem::create_directories("metrics"), std::filesystem::create_directories("facts");
    RunFacts facts;
    facts.quantizers = {{"a", "x", "e4m3", "tensor"}, {"a", "w", "e4m3", "tensor"}};
    write_run_facts("metrics/run.json", facts);
    return true;
  }();
  (void)made;
  const std::string_view text = fuzz::text_of(bytes, size);
  for (const char* path : {"metrics/metrics.jsonl", "facts/run.json"}) std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  fuzz::read_or_refuse([] {
    const RunRecord run = read_run("metrics", {.steps = 16, .snapshots = 8, .incidents = 4});
    if (run.steps.size() > 17 || run.incidents.size() > 4) __builtin_trap();
  });
  fuzz::read_or_refuse([] { read_run("facts"); });
  return 0;
}

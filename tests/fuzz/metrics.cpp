#include <filesystem>

#include "octet/telemetry/run_record.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// The metrics.jsonl of a run with two quantizers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const bool made = [] {
    std::filesystem::create_directories("metrics");
    telemetry::RunFacts facts;
    facts.quantizers = {{"a", "x", "e4m3", "tensor"}, {"a", "w", "e4m3", "tensor"}};
    telemetry::write_run_facts("metrics/run.json", facts);
    return true;
  }();
  (void)made;
  fuzz::put_file("metrics/metrics.jsonl", fuzz::text_of(bytes, size));
  fuzz::read_or_refuse([] {
    const telemetry::RunRecord run = telemetry::read_run("metrics", {.steps = 16, .snapshots = 8, .incidents = 4});
    if (run.steps.size() > 17 || run.incidents.size() > 4) __builtin_trap();
  });
  return 0;
}

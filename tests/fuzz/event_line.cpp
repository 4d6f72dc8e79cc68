#include "octet/telemetry/event_line.hpp"

#include "tests/fuzz/input.hpp"

using namespace octet;

// One line of a metrics.jsonl. An accepted one is written and read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::read_or_refuse([&] {
    const std::string line = telemetry::event_line(telemetry::parse_event(fuzz::text_of(bytes, size), "metrics.jsonl:1"));
    if (line.find('\n') != line.npos) __builtin_trap();
    if (telemetry::event_line(fuzz::must([&] { return telemetry::parse_event(line, "again"); })) != line) __builtin_trap();
  });
  return 0;
}

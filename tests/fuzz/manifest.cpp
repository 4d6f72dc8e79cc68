#include "octet/train/checkpoint/manifest.hpp"

#include "tests/fuzz/input.hpp"

using namespace octet;

// A checkpoint's MANIFEST.json: unchanged, and with a matching checksum, as a hostile one has.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(fuzz::text_of(bytes, size));
  const auto read = [](const std::string& manifest) {
    fuzz::read_or_refuse([&] {
      const std::string written = train::manifest_text(train::parse_manifest(manifest, "MANIFEST.json"));
      if (train::manifest_text(fuzz::must([&] { return train::parse_manifest(written, "again"); })) != written) __builtin_trap();
    });
  };
  read(text);
  read(text + ",\n  \"xxh3\": \"" + data::to_text(data::checksum_of(text + "\n}")) + "\"\n}\n");
  return 0;
}

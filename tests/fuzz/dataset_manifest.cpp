#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/data/manifest.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

// The dataset.toml of a token folder. An accepted one is written and read back; no shard lies outside the folder, and the sums agree.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  for (static bool made = false; !made; made = true)
    std::filesystem::create_directories("dataset"), std::filesystem::create_directories("written");
  fuzz::put_file("dataset/dataset.toml", fuzz::text_of(bytes, size));
  fuzz::read_or_refuse([] {
    const data::Manifest manifest = data::read_manifest("dataset");
    std::uint64_t tokens = 0, documents = 0;
    for (const auto& shard : manifest.shards) {
      if (shard.file.empty() || shard.file == ".." || shard.file.find('/') != shard.file.npos) __builtin_trap();
      tokens += shard.tokens, documents += shard.documents;
    }
    if (tokens != manifest.tokens || documents != manifest.documents) __builtin_trap();

    data::write_manifest("written", manifest);
    const std::string written = read_file("written/dataset.toml", fuzz::most_bytes);
    const data::Manifest again = fuzz::must([] { return data::read_manifest("written"); });
    data::write_manifest("written", again);
    if (again.shards.size() != manifest.shards.size() || read_file("written/dataset.toml", fuzz::most_bytes) != written) __builtin_trap();
  });
  return 0;
}

#include <cstring>

#include "octet/data/shard.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

namespace {

/// The input with the checksums that its own header asks for, so that the data behind them is read too.
std::string mended(std::string bytes) {
  const auto put = [&](std::size_t at, std::string_view of) {
    const data::Checksum sum = data::checksum_of(of);
    std::memcpy(bytes.data() + at, &sum, sizeof sum);
  };
  data::ShardHeader h;
  std::memcpy(&h.bytes_per_token, bytes.data() + 12, 4);
  std::memcpy(&h.token_count, bytes.data() + 16, 8);
  const std::uint64_t tokens_end = h.token_count < bytes.size() ? std::min<std::uint64_t>(h.table_offset(), bytes.size()) : bytes.size();
  const std::size_t table = std::max<std::size_t>(tokens_end, data::ShardHeader::bytes);
  put(128, std::string_view(bytes).substr(data::ShardHeader::bytes, table - data::ShardHeader::bytes));
  put(144, std::string_view(bytes).substr(table));
  put(240, std::string_view(bytes).substr(0, 240));
  return bytes;
}

// Any bytes are tokens of some program, or are refused.
void open_foreign(std::string_view bytes) {
  fuzz::read_or_refuse([&] {
    const fuzz::MemoryFile input(bytes);
    const data::Shard shard = data::Shard::foreign(input.path());
    std::vector<std::int32_t> ids(std::min<std::uint64_t>(shard.header().token_count, 1 << 16));
    shard.read(0, ids);
    for (const std::int32_t id : ids)
      if (id < 0 || std::uint32_t(id) >= shard.header().vocab_size) __builtin_trap();
  });
}

void open_shard(std::string_view bytes) {
  fuzz::read_or_refuse([&] {
    const fuzz::MemoryFile input(bytes);
    const data::Shard shard(input.path(), data::Verify::everything);
    std::vector<std::int32_t> ids(std::min<std::uint64_t>(shard.header().token_count, 1 << 16));
    shard.read(0, ids);
    for (const std::int32_t id : ids)
      if (id < 0 || std::uint32_t(id) >= shard.header().vocab_size) __builtin_trap();
  });
}

}  // namespace

// A token shard: as it is, and under checksums that fit; and the same bytes as a file of another program.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::text_of(bytes, size);
  open_shard(text), open_foreign(text);
  if (text.starts_with("OCTETTOK") && size >= data::ShardHeader::bytes) open_shard(mended(std::string(text)));
  return 0;
}

#include "octet/train/checkpoint/snapshot.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "octet/train/checkpoint/state_files.hpp"

namespace octet::train {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const T* values, std::size_t count) {
  const auto* first = reinterpret_cast<const std::byte*>(values);
  return {first, first + count * sizeof(T)};
}

constexpr std::size_t large_bytes = std::size_t(64) << 10;  // of a variable that is copied beside the next step

// In large pages where the system has them, since new pages take longer than the copy.
std::unique_ptr<std::byte[]> memory_for(std::size_t bytes) {
  constexpr std::uintptr_t page = std::uintptr_t(2) << 20;
  auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.get());
  const std::uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

io::StoredDType stored_type(DType t) {
  switch (t) {
    case DType::f32: return io::StoredDType::f32;
    case DType::bf16: return io::StoredDType::bf16;
    case DType::f16: return io::StoredDType::f16;
    case DType::e4m3: return io::StoredDType::e4m3;
    case DType::e5m2: return io::StoredDType::e5m2;
    case DType::e8m0: return io::StoredDType::e8m0;
    case DType::u8: return io::StoredDType::u8;
    case DType::i32: return io::StoredDType::i32;
    case DType::i64: return io::StoredDType::i64;
    case DType::f64: return io::StoredDType::f64;
  }
  throw ContractError("checkpoint: a dtype without a type in files");
}

std::vector<std::int64_t> stored_shape(const Shape& s) { return {s.dims.begin(), s.dims.begin() + s.rank}; }

void Capture::add(const std::string& name, const Tensor& t, bool waits) {
  items_.push_back({{prefixes_.back() + name, stored_type(t.dtype), stored_shape(t.shape)}, t, waits, {}});
}
void Capture::state(std::string_view name, const Tensor& t) {
  if (what_ == What::all) add(std::string(name), t, false);
}
void Capture::until_update(std::string_view name, const Tensor& t) {
  if (what_ == What::all) add(std::string(name), t, true);
}
void Capture::add(const std::string& name, const Stored& s) {
  add(name, s.codes, true);
  if (s.scales) add(scales_name(name, s.storage), s.scales, true);
}
void Capture::state(std::string_view name, const StoredSlice& s, Tiny) {
  if (s.stored.count() == 0 || what_ == What::none) return;
  if (s.cut != nullptr && *s.cut) return add_pieces(name, s);
  if (!s.is_whole()) return add(slice_name(name, {s.stored.count(), s.first}), s.stored);
  Stored whole = s.stored;
  whole.codes = whole.codes.reshaped(s.whole);
  add(std::string(name), whole);
}
// A part of a larger variable, without copies of values that another owner saves.
void Capture::add_pieces(std::string_view name, const StoredSlice& s) {
  const std::int64_t n = std::clamp<std::int64_t>(s.cut->counted(s.whole.count()) - s.first, 0, s.stored.count());
  std::int64_t begin = 0;
  for (const CutPiece& piece : pieces_of(s.cut->pieces, s.first, n)) {
    add(slice_name(name, piece), s.stored.part(begin, piece.count));
    begin += piece.count;
  }
}
void Capture::state(std::string_view name, std::int64_t& x) {
  if (what_ == What::all) items_.push_back({{prefixes_.back() + std::string(name), io::StoredDType::i64, {}}, {}, false, bytes_of(&x, 1)});
}
void Capture::state(std::string_view name, double& x) {
  if (what_ == What::all) items_.push_back({{prefixes_.back() + std::string(name), io::StoredDType::f64, {}}, {}, false, bytes_of(&x, 1)});
}
void Capture::state(std::string_view name, std::vector<double>& x) {
  if (what_ != What::all) return;
  items_.push_back(
      {{prefixes_.back() + std::string(name), io::StoredDType::f64, {std::int64_t(x.size())}}, {}, false, bytes_of(x.data(), x.size())});
}
void Capture::enter(std::string_view name) { prefixes_.push_back(prefixes_.back() + std::string(name) + "."); }
void Capture::leave() { prefixes_.pop_back(); }

Snapshot Capture::take() {
  Snapshot whole = begin();
  whole.missing->run();
  whole.missing.reset();
  return whole;
}

Snapshot Capture::begin() {
  std::vector<io::TensorSpec> specs;
  std::map<std::string_view, const Item*> by_name;
  for (const Item& item : items_) specs.push_back(item.spec), by_name.emplace(item.spec.name, &item);
  const std::vector<io::TensorEntry> layout = io::laid_out(std::move(specs));
  const std::string header = io::header_bytes(layout, {});
  Snapshot out;
  out.bytes = header.size() + std::size_t(layout.empty() ? 0 : layout.back().end);
  out.file = memory_for(out.bytes);
  std::memcpy(out.file.get(), header.data(), header.size());
  std::vector<HostCopies::Copy> large;
  for (const io::TensorEntry& entry : layout) {
    const Item& item = *by_name.at(entry.spec.name);
    std::byte* to = out.file.get() + header.size() + entry.begin;
    if (item.waits && item.device.bytes() >= large_bytes) large.push_back({item.device, to});
    else if (item.device) download(stream_, item.device, to);
    else if (!item.host.empty()) std::memcpy(to, item.host.data(), item.host.size());
  }
  out.missing = std::make_unique<HostCopies>(stream_, std::move(large));
  return out;
}

}  // namespace octet::train

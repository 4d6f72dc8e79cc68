#include "octet/train/checkpoint/restore.hpp"

#include <algorithm>
#include <cstring>

#include "octet/nn/host_values.hpp"
#include "octet/nn/partition.hpp"
#include "octet/train/checkpoint/snapshot.hpp"

namespace octet::train {
namespace {

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string out = "[";
  for (const std::int64_t d : shape) out += (out.size() > 1 ? ", " : "") + (d < 0 ? std::string("n") : to_text(d));
  return out + "]";
}

bool fits(std::span<const std::int64_t> is, std::span<const std::int64_t> wanted) {
  if (is.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < is.size(); ++i)
    if (wanted[i] >= 0 && is[i] != wanted[i]) return false;
  return true;
}

}  // namespace

std::span<const std::byte> Restore::find(std::string_view name, io::StoredDType type, const std::vector<std::int64_t>& shape) {
  const std::string full = prefixes_.back() + std::string(name);
  const auto refuse = [&](const std::string& came) {
    throw DataError(format(
        "{}: {} must be {} {}, {}; the checkpoint is of another model or of another version of octet, start a new run without --resume",
        printable(files_.path()), full, to_text(type), shape_text(shape), came));
  };
  const auto tensor = files_.find(full);
  if (!tensor) refuse("it is missing");
  if (tensor->dtype != type || !fits(tensor->shape, shape))
    refuse(format("it is {} {}", to_text(tensor->dtype), shape_text(tensor->shape)));
  ++found_;
  return tensor->bytes;
}

void Restore::state(std::string_view name, const Tensor& t) {
  const auto bytes = find(name, stored_type(t.dtype), stored_shape(t.shape));
  if (restoring()) upload(stream_, bytes.data(), t);
}
void Restore::optional(std::string_view name, const Tensor& t) {
  if (files_.find(prefixes_.back() + std::string(name))) state(name, t);
}
void Restore::changed(std::string_view name, const Tensor& t, const EarlierForm& earlier) {
  const auto found = files_.find(prefixes_.back() + std::string(name));
  const std::vector<std::int64_t> shape = stored_shape(earlier.shape);
  if (earlier.shape == t.shape || !found || !std::ranges::equal(found->shape, shape)) return state(name, t);
  const auto bytes = find(name, stored_type(t.dtype), shape);
  if (!restoring()) return;
  const std::size_t size = size_of(t.dtype);
  std::vector<std::byte> here(t.bytes());
  for (std::int64_t i = 0; i < t.count(); ++i)
    std::memcpy(here.data() + std::size_t(i) * size, bytes.data() + std::size_t(earlier.place(i)) * size, size);
  upload(stream_, here.data(), t);
}
bool Restore::has(std::string_view name) const { return files_.count(prefixes_.back() + std::string(name) + ".") > 0; }
void Restore::unused(std::string_view name) { found_ += files_.count(prefixes_.back() + std::string(name) + "."); }

void Restore::elsewhere(std::string_view name) {
  const std::string full = prefixes_.back() + std::string(name);
  found_ += files_.count(full + ".") + files_.count(full + "#") + (files_.find(full) ? 1 : 0);
}

void Restore::state(std::string_view name, const StoredSlice& slice, Tiny tiny) {
  const auto found = files_.variable(prefixes_.back() + std::string(name));
  const auto alike = [](Storage a, Storage b) { return a == b || (!has_scales(a) && code_type(a) == code_type(b)); };
  const Shape& whole = slice.cut != nullptr && *slice.cut ? slice.cut->whole : slice.whole;
  if (!found || found->whole) {
    find(name, found ? found->slices[0].part.codes.dtype : stored_type(slice.stored.codes.dtype), stored_shape(whole));
    --found_;
  } else if (found->count != whole.count()) {
    throw DataError(format("{}: the slices of {}{} have {} values, it has {}; the checkpoint is of another model or was damaged",
                           printable(files_.path()), prefixes_.back(), name, found->count, whole.count()));
  }
  found_ += found->tensors;
  const std::vector<CutPiece> places = places_of(slice);
  if (!alike(found->storage, slice.stored.storage) || !keeps_codes(*found, places)) return convert(*found, slice, tiny);
  if (restoring()) assemble(*found, slice, places);
}

namespace {

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

}  // namespace

// Where the values here are in the whole variable.
std::vector<CutPiece> Restore::places_of(const StoredSlice& s) {
  const std::int64_t n = s.stored.count();
  if (s.cut != nullptr && *s.cut) return pieces_of(s.cut->pieces, s.first, n);
  return {{n, s.first, std::max<std::int64_t>(n, 1), std::max<std::int64_t>(n, 1)}};
}

// Whether the codes of all slices with values at these places have the same meaning here: one scale per tensor must be that of all of
// them, and no block of values that share a scale may be cut.
bool Restore::keeps_codes(const StateFiles::Variable& from, const std::vector<CutPiece>& places) {
  if (!has_scales(from.storage)) return true;
  const StoredVariable* first = nullptr;
  bool keeps = true;
  from.each_overlap(places, [&](const StateFiles::Run& run, std::int64_t begin, std::int64_t to, std::int64_t n) {
    const StoredVariable& part = from.slices[run.slice].part;
    if (first == nullptr) first = &part;
    const bool last = begin + n == part.codes.count();
    if (scales_tensor(from.storage)) keeps = keeps && same_bytes(part.scales->bytes, first->scales->bytes);
    else keeps = keeps && begin % storage_block == 0 && to % storage_block == 0 && (n % storage_block == 0 || last);
  });
  return keeps;
}

// The bytes of all slices that overlap the one wanted.
void Restore::assemble(const StateFiles::Variable& from, const StoredSlice& to, const std::vector<CutPiece>& places) {
  const std::int64_t count = to.stored.count();
  const auto size = std::int64_t(size_of(to.stored.codes.dtype));
  const bool blocks = scales_blocks(to.stored.storage);
  const std::int64_t scale_size = blocks && count > 0 ? std::int64_t(to.stored.scales.bytes()) / ceil_div(count, storage_block) : 0;
  std::vector<std::byte> codes(to.stored.codes.bytes()), scales(blocks ? to.stored.scales.bytes() : 0);
  const StoredVariable* any = nullptr;
  from.each_overlap(places, [&](const StateFiles::Run& run, std::int64_t begin, std::int64_t at, std::int64_t n) {
    const StoredVariable& part = from.slices[run.slice].part;
    std::memcpy(codes.data() + at * size, part.codes.bytes.data() + begin * size, std::size_t(n * size));
    if (blocks)
      std::memcpy(scales.data() + at / storage_block * scale_size, part.scales->bytes.data() + begin / storage_block * scale_size,
                  std::size_t(ceil_div(n, storage_block) * scale_size));
    any = &part;
  });
  if (count > 0) upload(stream_, codes.data(), to.stored.codes);
  if (blocks && count > 0) upload(stream_, scales.data(), to.stored.scales);
  if (!scales_tensor(to.stored.storage)) return;
  // Where no value is here, other owners of the same tensor have larger ones: they are shared before they are used.
  const float none[2] = {};
  upload(stream_, any != nullptr ? static_cast<const void*>(any->scales->bytes.data()) : none, to.stored.scales);
}

void Restore::convert(const StateFiles::Variable& from, const StoredSlice& to, Tiny tiny) {
  const auto same =
      std::ranges::find_if(conversions_, [&](const Conversion& c) { return c.from == from.storage && c.to == to.stored.storage; });
  Conversion& c = same != conversions_.end() ? *same : conversions_.emplace_back(Conversion{from.storage, to.stored.storage});
  ++c.variables, c.values += from.count;
  if (!restoring()) return;
  const std::vector<float> whole = values_of(from);
  nn::set_values(stream_, to, nn::part_of(to.cut != nullptr ? *to.cut : Cut{}, whole).data(), tiny);
}

void Restore::state(std::string_view name, std::int64_t& x) {
  const auto bytes = find(name, io::StoredDType::i64, {});
  if (restoring()) std::memcpy(&x, bytes.data(), sizeof x);
}
std::int64_t Restore::count(std::string_view name, std::int64_t& x, const Bounds& b) {
  std::int64_t stored = 0;
  const auto bytes = find(name, io::StoredDType::i64, {});
  std::memcpy(&stored, bytes.data(), sizeof stored);
  if (stored < b.least || stored > b.most)
    throw DataError(
        format("{}: {}{} = {}: must be from {} to {}; the file was altered, restore it from a copy, or start a new run without --resume",
               printable(files_.path()), prefixes_.back(), name, stored, b.least, b.most));
  if (restoring()) x = stored;
  return stored;
}
void Restore::state(std::string_view name, double& x) {
  const auto bytes = find(name, io::StoredDType::f64, {});
  if (restoring()) std::memcpy(&x, bytes.data(), sizeof x);
}
void Restore::state(std::string_view name, std::vector<double>& x) {
  const auto bytes = find(name, io::StoredDType::f64, {-1});
  if (!restoring()) return;
  x.resize(bytes.size() / sizeof(double));
  if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
}

void Restore::enter(std::string_view name) { prefixes_.push_back(prefixes_.back() + std::string(name) + "."); }
void Restore::leave() { prefixes_.pop_back(); }

void Restore::finish() const {
  const std::size_t has = files_.count();
  if (found_ != has)
    throw DataError(
        format("{}: the file has {} tensors, this run has a place for {} of them; the checkpoint is of another model or of another version "
               "of octet, start a new run without --resume",
               printable(files_.path()), has, found_));
}

}  // namespace octet::train

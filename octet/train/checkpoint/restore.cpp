#include "octet/train/checkpoint/restore.hpp"

#include <algorithm>
#include <cstring>

#include "octet/nn/host_values.hpp"
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
bool Restore::has(std::string_view name) const { return files_.count(prefixes_.back() + std::string(name) + ".") > 0; }
void Restore::unused(std::string_view name) { found_ += files_.count(prefixes_.back() + std::string(name) + "."); }

void Restore::state(std::string_view name, const StoredSlice& slice, Tiny tiny) {
  const auto found = files_.variable(prefixes_.back() + std::string(name));
  const auto alike = [](Storage a, Storage b) { return a == b || (!has_scales(a) && code_type(a) == code_type(b)); };
  if (!found || found->whole) {
    find(name, found ? found->slices[0].part.codes.dtype : stored_type(slice.stored.codes.dtype), stored_shape(slice.whole));
    --found_;
  } else if (found->count != slice.whole.count()) {
    throw DataError(format("{}: the slices of {}{} have {} values, it has {}; the checkpoint is of another model or was damaged",
                           printable(files_.path()), prefixes_.back(), name, found->count, slice.whole.count()));
  }
  found_ += found->tensors;
  if (!alike(found->storage, slice.stored.storage)) return convert(*found, slice, tiny);
  if (restoring()) assemble(*found, slice);
}

// The bytes of all slices that overlap the one wanted. Both begin at whole blocks of scales.
void Restore::assemble(const StateFiles::Variable& from, const StoredSlice& to) {
  const Tensor codes = to.stored.codes.reshaped({to.stored.count()});
  const auto size = std::int64_t(size_of(codes.dtype));
  for (const StateFiles::Slice& s : from.slices) {
    const std::int64_t begin = std::max(s.first, to.first), end = std::min(s.first + s.count, to.first + codes.count());
    if (begin >= end) continue;
    upload(stream_, s.part.codes.bytes.data() + (begin - s.first) * size, codes.rows(begin - to.first, end - begin));
    if (!scales_blocks(to.stored.storage)) continue;
    const std::int64_t block = (begin - s.first) / storage_block, blocks = ceil_div(end - begin, storage_block);
    const Tensor scales = to.stored.scales.rows((begin - to.first) / storage_block, blocks);
    upload(stream_, s.part.scales->bytes.data() + block * std::int64_t(scales.bytes()) / blocks, scales);
  }
  if (scales_tensor(to.stored.storage) && !from.slices.empty()) upload(stream_, from.slices[0].part.scales->bytes.data(), to.stored.scales);
}

void Restore::convert(const StateFiles::Variable& from, const StoredSlice& to, Tiny tiny) {
  const auto same =
      std::ranges::find_if(conversions_, [&](const Conversion& c) { return c.from == from.storage && c.to == to.stored.storage; });
  Conversion& c = same != conversions_.end() ? *same : conversions_.emplace_back(Conversion{from.storage, to.stored.storage});
  ++c.variables, c.values += to.whole.count();
  if (restoring()) nn::set_values(stream_, to, values_of(from).data(), tiny);
}

void Restore::state(std::string_view name, std::int64_t& x) {
  const auto bytes = find(name, io::StoredDType::i64, {});
  if (restoring()) std::memcpy(&x, bytes.data(), sizeof x);
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

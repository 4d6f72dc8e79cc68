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
        printable(file_.path()), full, to_text(type), shape_text(shape), came));
  };
  const auto tensor = file_.find(full);
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
  if (file_.find(prefixes_.back() + std::string(name))) state(name, t);
}
void Restore::unused(std::string_view name) {
  const std::string prefix = prefixes_.back() + std::string(name) + ".";
  found_ += std::size_t(std::ranges::count_if(file_.tensors(), [&](const io::TensorView& t) { return t.name.starts_with(prefix); }));
}
void Restore::state(std::string_view name, const Stored& s, Tiny tiny) {
  const auto found = find_variable(file_, prefixes_.back() + std::string(name));
  const auto alike = [](Storage a, Storage b) { return a == b || (!has_scales(a) && code_type(a) == code_type(b)); };
  if (!found || alike(found->storage, s.storage)) {
    state(name, s.codes);
    if (s.scales) state(scales_name(name, s.storage), s.scales);
    return;
  }
  find(name, found->codes.dtype, stored_shape(s.shape()));
  if (found->scales) ++found_;
  convert(*found, s, tiny);
}

void Restore::convert(const StoredVariable& from, const Stored& to, Tiny tiny) {
  const auto same = std::ranges::find_if(conversions_, [&](const Conversion& c) { return c.from == from.storage && c.to == to.storage; });
  Conversion& c = same != conversions_.end() ? *same : conversions_.emplace_back(Conversion{from.storage, to.storage});
  ++c.variables, c.values += to.count();
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
  const std::size_t has = file_.tensors().size();
  if (found_ != has)
    throw DataError(
        format("{}: the file has {} tensors, this run has a place for {} of them; the checkpoint is of another model or of another version "
               "of octet, start a new run without --resume",
               printable(file_.path()), has, found_));
}

}  // namespace octet::train

#include "octet/train/checkpoint/stored_variable.hpp"

#include <algorithm>
#include <cstring>

#include "octet/base/error.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/tensor/state.hpp"
#include "octet/train/checkpoint/snapshot.hpp"

namespace octet::train {
namespace {

[[noreturn]] void refuse(const io::SafetensorsFile& file, std::string_view tensor, const std::string& fault) {
  throw DataError(
      format("{}: {} {}; the checkpoint was damaged or is of another version of octet", printable(file.path()), printable(tensor), fault));
}

// Bytes of a file as a tensor in aligned memory.
Tensor copied(Stream& host, const io::TensorView& t, Shape shape, DType type) {
  const Tensor out = host.empty(shape, type);
  if (!t.bytes.empty()) std::memcpy(out.data, t.bytes.data(), t.bytes.size());
  return out;
}

}  // namespace

std::optional<StoredVariable> find_scaled_variable(const io::SafetensorsFile& file, const io::TensorView& codes) {
  for (const StorageFacts& f : storages) {
    const Storage s = f.storage;
    if (!has_scales(s)) continue;
    const auto scales = file.find(scales_name(codes.name, s));
    if (!scales) continue;
    const Shape wanted = scales_shape(s, codes.count());
    if (codes.dtype != stored_type(code_type(s))) refuse(file, codes.name, format("must be {} beside scales of {}", code_type(s), s));
    if (scales->dtype != stored_type(scales_type(s)) || !std::ranges::equal(scales->shape, stored_shape(wanted)))
      refuse(file, scales->name, format("must be {} {}", scales_type(s), wanted));
    return StoredVariable{.codes = codes, .scales = scales, .storage = s};
  }
  return {};
}

std::optional<StoredVariable> find_variable(const io::SafetensorsFile& file, const std::string& name) {
  const auto codes = file.find(name);
  if (!codes) return {};
  if (auto found = find_scaled_variable(file, *codes)) return found;
  if (codes->dtype != io::StoredDType::f32 && codes->dtype != io::StoredDType::bf16)
    refuse(file, name, format("is {}, but has no scales", to_text(codes->dtype)));
  return StoredVariable{.codes = *codes, .scales = {}, .storage = codes->dtype == io::StoredDType::bf16 ? Storage::bf16 : Storage::f32};
}

std::vector<float> values_of(const StoredVariable& variable) {
  if (!variable.scales) return io::to_f32(variable.codes);
  const std::int64_t count = variable.codes.count();
  std::vector<float> values(std::size_t(count), 0.0f);
  Stream host(Device::cpu);
  const Stored stored{.codes = copied(host, variable.codes, {count}, code_type(variable.storage)),
                      .scales = copied(host, *variable.scales, scales_shape(variable.storage, count), scales_type(variable.storage)),
                      .storage = variable.storage};
  ops::decode_stored(host, stored, {values.data(), {count}, DType::f32});
  return values;
}

}  // namespace octet::train

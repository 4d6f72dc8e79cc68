#include "octet/io/safetensors_file.hpp"

#include <algorithm>
#include <numeric>

#include "octet/base/log.hpp"

namespace octet::io {

SafetensorsFile SafetensorsFile::open(const std::string& path, Link link, const SafetensorsLimits& limits) {
  InputFile file(path, link);
  SafetensorsHeader header = read_header(file, limits);
  if (!header.unknown_fields.empty()) {
    std::string fields;
    for (const auto& field : header.unknown_fields) fields.append(fields.empty() ? "" : ", ").append(field);
    log::warn("{}: ignored fields that the safetensors format does not know: {}", printable(path), fields);
  }
  return SafetensorsFile(std::move(file), std::move(header));
}

SafetensorsFile::SafetensorsFile(InputFile file, SafetensorsHeader header) : file_(std::move(file)), header_(std::move(header)) {
  const std::span<const std::byte> data = file_.map().subspan(header_.data_offset);
  for (const TensorEntry& t : header_.tensors) {
    views_.push_back({t.spec.name, t.spec.dtype, t.spec.shape, data.subspan(t.begin, t.end - t.begin)});
  }
  by_name_.resize(views_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(), [this](std::uint32_t a, std::uint32_t b) { return views_[a].name < views_[b].name; });
}

std::optional<TensorView> SafetensorsFile::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name, [this](std::uint32_t i, std::string_view n) { return views_[i].name < n; });
  if (at == by_name_.end() || views_[*at].name != name) return {};
  file_.check_unchanged();
  return views_[*at];
}

std::span<const TensorView> SafetensorsFile::tensors() const {
  file_.check_unchanged();
  return views_;
}

}  // namespace octet::io

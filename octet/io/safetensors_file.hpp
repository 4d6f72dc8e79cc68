#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/io/safetensors_header.hpp"
#include "octet/io/tensor_view.hpp"

namespace octet::io {

/// A safetensors file, checked as a whole when it is opened and then mapped: tensors are read from disk where their bytes are touched.
/// Values are not looked at (NaN is legal). Source: the safetensors README.
class SafetensorsFile {
 public:
  /// IoError or DataError, which name the file. Unknown fields and blanks before the header are tolerated; the fields are warned of.
  static SafetensorsFile open(const std::string& path, Link link = Link::follow, const SafetensorsLimits& limits = {});

  /// The tensor of that name, or none. Like tensors(), DataError when the file has changed since it was opened.
  std::optional<TensorView> find(std::string_view name) const;
  /// Every tensor, by offset. Views live as long as this object, also after it moves.
  std::span<const TensorView> tensors() const;
  const Metadata& metadata() const { return header_.metadata; }
  const SafetensorsHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }

 private:
  SafetensorsFile(InputFile file, SafetensorsHeader header);

  InputFile file_;
  SafetensorsHeader header_;
  std::vector<TensorView> views_;
  std::vector<std::uint32_t> by_name_;  // indices into views_
};

}  // namespace octet::io

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/checksum.hpp"
#include "octet/io/safetensors_file.hpp"

namespace octet::io {

/// The weights of a Hugging Face folder: model.safetensors, or the files that model.safetensors.index.json names. Everything is checked
/// when the folder is opened: every listed tensor is in its file, none is in two, and no file lies outside the folder. Symbolic links
/// are refused, except in the layout of the Hugging Face cache, where snapshots/<revision>/x points into blobs/ beside snapshots/.
class TensorFolder {
 public:
  /// IoError or DataError naming folder or file.
  static TensorFolder open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::optional<TensorView> find(std::string_view name) const;
  /// The tensor of that name; DataError names the folder and the nearest name there is.
  TensorView tensor(std::string_view name) const;
  /// Every tensor's name, sorted, including those not listed in an index.
  std::vector<std::string_view> names() const;
  /// The files, in order of name. Views live as long as this object, also after it moves.
  const std::vector<SafetensorsFile>& files() const { return files_; }

 private:
  void list_names();

  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::pair<std::string_view, std::uint32_t>> names_;  // sorted; index into files_
};

/// XXH3-128 of names, types, shapes and bytes of all tensors, in the order of names. The division into files does not enter. Reads every
/// byte, tensors in parallel. Throws DataError when a file has changed since it was opened.
data::Checksum checksum_of(const TensorFolder&);

}  // namespace octet::io

#pragma once

#include <string>
#include <vector>

#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/config.hpp"
#include "octet/models/weight_form.hpp"

namespace octet::models {

/// Tensors of a model's folder that Octet does not compute with and that exports hand on: ModelShape::kept_layers, such as DeepSeek-V3's
/// module that predicts a second token. Numbers keep type and bytes. E4M3 codes in blocks stay codes where the export has such codes, too;
/// else they are values of the export's type.
class KeptTensors {
 public:
  /// Of Companions::weights; of a family or a folder without such tensors there are none. Throws IoError and DataError of the folder.
  KeptTensors(const ModelShape&, const Companions&);

  bool empty() const { return names_.empty(); }
  std::vector<io::TensorSpec> specs(const WeightForm&) const;
  /// Appends what specs() has.
  void write(io::TensorFolderWriter&, const WeightForm&) const;
  /// Names of layers whose weights are numbers in an export with codes.
  std::vector<std::string> modules_of_values(const WeightForm&) const;

 private:
  /// A tensor, and its scales where it has codes.
  struct Entry {
    io::TensorView tensor;
    std::optional<io::TensorView> scales;
  };
  Entry entry(const std::string& name) const;
  bool keeps_codes(const Entry&, const WeightForm&) const;

  std::optional<io::TensorFolder> files_;
  std::optional<ScaleBlock> blocks_;  // of codes
  std::vector<std::string> names_;    // without those of scales
};

/// Writes the kept tensors into a folder of companions, as they are; nothing without any.
void store_kept_tensors(const std::string& folder, const ModelShape&, const Companions&);

}  // namespace octet::models

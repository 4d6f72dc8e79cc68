#pragma once

#include <optional>

#include "octet/io/safetensors_file.hpp"
#include "octet/tensor/storage.hpp"

namespace octet::train {

/// A variable of training in a file: codes under a name, and beside them the scales, whose name tells the storage (see scales_name()).
/// Points into the file.
struct StoredVariable {
  io::TensorView codes;
  std::optional<io::TensorView> scales;
  Storage storage = Storage::f32;  // bf16_nearest is bf16 in a file
};

/// The variable of that name, or none. Throws DataError naming file and tensor when its codes or scales do not fit each other.
std::optional<StoredVariable> find_variable(const io::SafetensorsFile&, const std::string& name);
/// The same of codes that have scales, or none.
std::optional<StoredVariable> find_scaled_variable(const io::SafetensorsFile&, const io::TensorView& codes);

/// Its values, exactly.
std::vector<float> values_of(const StoredVariable&);

}  // namespace octet::train

#pragma once

#include <string>
#include <vector>

#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/hugging_face_format.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::models {

/// A slice of a weight map and its parameter. Copies values between parameter and file in portions, so that no second copy of a model is in
/// memory.
class WeightPlace {
 public:
  WeightPlace(WeightSlice slice, Parameter& parameter);

  const std::string& name() const { return slice_.name; }
  bool alias() const { return slice_.alias; }
  Parameter& parameter() const { return *parameter_; }
  /// Whether the parameter has no memory, since another rank has it: nothing is read.
  bool elsewhere() const { return begin_ == nullptr; }
  /// The shape in a file: [rows], [rows, columns] or, transposed, [columns, rows].
  std::vector<std::int64_t> stored_shape() const;

  /// Appends the values as F32 or BF16, rounded to nearest even.
  void write(io::TensorFolderWriter&, io::StoredDType) const;
  /// Fills the rows from a tensor of stored_shape(), unless they are elsewhere().
  void read(const io::TensorView&) const;
  /// Whether a tensor of stored_shape() equals the rows; true if they are elsewhere().
  bool holds(const io::TensorView&) const;

 private:
  std::int64_t portion() const;  // stored rows at a time
  void gather(std::int64_t first, std::vector<float>& values) const;
  void scatter(std::int64_t first, const std::vector<float>& values) const;

  WeightSlice slice_;
  Parameter* parameter_;
  std::int64_t stored_rows_, stored_columns_;
  float* begin_;
  std::int64_t row_step_, column_step_;  // between stored rows and columns, in elements of the parameter
};

/// Every slice with its parameter. ContractError unless the slices cover the parameters, all of them, in order and without gaps.
std::vector<WeightPlace> placed(const std::vector<WeightSlice>&, const std::vector<Parameter*>&);
/// Zeros in the rows that no slice covers, of parameters with memory.
void clear_padding(const std::vector<WeightSlice>&, const std::vector<Parameter*>&);

}  // namespace octet::models

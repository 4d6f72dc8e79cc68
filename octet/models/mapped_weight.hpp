#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/hugging_face_format.hpp"
#include "octet/models/weight_form.hpp"
#include "octet/models/weight_view.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::models {

/// The name of the static scale of a weight's activations: "...down_proj.weight" -> "...down_proj.input_scale".
inline std::string input_scale_of(std::string_view weight) { return std::string(weight.substr(0, weight.rfind("weight"))) + "input_scale"; }

/// A slice of a weight map and its parameter. Copies values between parameter and file in portions, so that no second copy of a model is in
/// memory.
class MappedWeight {
 public:
  MappedWeight(WeightSlice slice, Parameter& parameter);

  const std::string& name() const { return slice_.name; }
  bool alias() const { return slice_.alias; }
  /// Whether a folder has a tensor for it.
  bool written() const { return !slice_.alias || slice_.written; }
  Parameter& parameter() const { return *parameter_; }
  /// The matrix of the parameter to which the rows belong: 0 unless it is a stack.
  std::int64_t matrix() const { return slice_.first / (parameter_->shape[0] / slice_.stack); }
  /// Whether the parameter has no memory, since another rank has it: nothing is read.
  bool elsewhere() const { return begin_ == nullptr; }
  /// The shape in a file: [rows], [rows, columns] or, transposed, [columns, rows].
  std::vector<std::int64_t> stored_shape() const;

  /// Whether such a form has codes of these values: a matrix of a block.
  bool has_codes(const WeightForm&) const;
  /// Whether scales of the form's blocks are those of the whole parameter: no block has rows of this slice and of another.
  bool has_own_blocks(const WeightForm&) const;
  /// The tensors of a file for these values.
  std::vector<io::TensorSpec> specs(const WeightForm&) const;
  /// Appends them: values rounded to nearest even, or codes and scales. Throws DataError for codes of values that are not finite.
  void write(io::TensorFolderWriter&, const WeightForm&) const;
  /// Calls visit(values) for the stored rows, in portions of a multiple of so many.
  void visit_rows(std::int64_t multiple_of, const std::function<void(std::span<const float>)>& visit) const;
  /// Fills the rows from a weight of stored_shape(), unless they are elsewhere().
  void read(const WeightView&) const;
  /// Whether a weight of stored_shape() equals the rows; true if they are elsewhere().
  bool holds(const WeightView&) const;

 private:
  std::int64_t portion(std::int64_t multiple_of) const;  // stored rows at a time
  /// Calls visit(first, values) for portions of stored rows, whose values may be read or written.
  template <class Visit>
  void for_each_portion(std::int64_t multiple_of, Visit visit) const;
  std::string scale_name(const WeightForm& form) const { return slice_.name + std::string(form.scale_suffix()); }
  std::string input_scale_name() const { return input_scale_of(slice_.name); }
  void write_codes(io::TensorFolderWriter&, const WeightForm&) const;
  template <class Value, class Copy>
  void each_value(std::int64_t first, std::span<Value> values, const Copy& copy) const;
  void gather(std::int64_t first, std::vector<float>& values) const;
  void scatter(std::int64_t first, const std::vector<float>& values) const;

  WeightSlice slice_;
  Parameter* parameter_;
  std::int64_t stored_rows_, stored_columns_;
  float* begin_;
  std::int64_t row_step_, column_step_;  // between stored rows and columns, in elements of the parameter
};

/// Every slice with its parameter. ContractError unless the slices cover the parameters, all of them, in order and without gaps.
std::vector<MappedWeight> mapped_weights(const std::vector<WeightSlice>&, const std::vector<Parameter*>&);
/// Zeros in the rows that no slice covers, of parameters with memory.
void clear_padding(const std::vector<WeightSlice>&, const std::vector<Parameter*>&);

}  // namespace octet::models

#include "octet/models/weight_place.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace octet::models {
namespace {

constexpr std::int64_t portion_elements = 1 << 20;

std::int64_t columns_of(const Parameter& p) { return p.shape.rank == 2 ? p.shape[1] : 1; }

/// Rows [first, first + rows) of a stored tensor.
io::TensorView rows_of(const io::TensorView& tensor, std::span<const std::int64_t> shape, std::int64_t first, std::int64_t row_elements) {
  const std::size_t row_bytes = std::size_t(row_elements) * std::size_t(io::element_bits(tensor.dtype)) / 8;
  return {tensor.name, tensor.dtype, shape, tensor.bytes.subspan(std::size_t(first) * row_bytes, std::size_t(shape[0]) * row_bytes)};
}

/// Rows that slices cover, by path: later rows are padding.
std::map<std::string_view, std::int64_t> covered_rows(const std::vector<WeightSlice>& slices) {
  std::map<std::string_view, std::int64_t> covered;
  for (const WeightSlice& s : slices) {
    if (s.alias) continue;
    std::int64_t& rows = covered[s.parameter];
    check(s.first == rows, "weight map: {} begins at row {} of {}, after {} rows", s.name, s.first, s.parameter, rows);
    rows += s.rows;
  }
  return covered;
}

}  // namespace

WeightPlace::WeightPlace(WeightSlice slice, Parameter& parameter) : slice_(std::move(slice)), parameter_(&parameter) {
  const std::int64_t columns = columns_of(parameter);
  check(parameter.shape.rank <= 2 && slice_.first >= 0 && slice_.rows > 0 && slice_.first + slice_.rows <= parameter.shape[0],
        "weight map: {} takes rows {} to {} of {} {}", slice_.name, slice_.first, slice_.first + slice_.rows, parameter.path,
        parameter.shape);
  stored_rows_ = slice_.rows, stored_columns_ = columns, row_step_ = columns, column_step_ = 1;
  if (slice_.transposed) std::swap(stored_rows_, stored_columns_), std::swap(row_step_, column_step_);
  begin_ = parameter.value ? parameter.value.values().f32() + slice_.first * columns : nullptr;
}

std::vector<std::int64_t> WeightPlace::stored_shape() const {
  if (parameter_->shape.rank == 1) return {stored_rows_};
  return {stored_rows_, stored_columns_};
}

std::int64_t WeightPlace::portion() const { return std::max<std::int64_t>(1, portion_elements / stored_columns_); }

void WeightPlace::gather(std::int64_t first, std::vector<float>& values) const {
  const float* const from = begin_ + first * row_step_;
  const std::int64_t rows = std::int64_t(values.size()) / stored_columns_;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < stored_columns_; ++c)
      values[std::size_t(r * stored_columns_ + c)] = from[r * row_step_ + c * column_step_];
}

void WeightPlace::scatter(std::int64_t first, const std::vector<float>& values) const {
  float* const to = begin_ + first * row_step_;
  const std::int64_t rows = std::int64_t(values.size()) / stored_columns_;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < stored_columns_; ++c) to[r * row_step_ + c * column_step_] = values[std::size_t(r * stored_columns_ + c)];
}

void WeightPlace::write(io::TensorFolderWriter& writer, io::StoredDType dtype) const {
  check(!elsewhere(), "weight map: {} has no memory here", parameter_->path);
  std::vector<float> values;
  for (std::int64_t r = 0; r < stored_rows_; r += portion()) {
    values.resize(std::size_t(std::min(portion(), stored_rows_ - r) * stored_columns_));
    gather(r, values);
    writer.append(slice_.name, io::from_f32(values, dtype));
  }
}

void WeightPlace::read(const io::TensorView& tensor) const {
  if (elsewhere()) return;
  std::vector<float> values;
  for (std::int64_t r = 0; r < stored_rows_; r += portion()) {
    const std::int64_t shape[] = {std::min(portion(), stored_rows_ - r), stored_columns_};
    values.resize(std::size_t(shape[0] * shape[1]));
    io::to_f32(rows_of(tensor, shape, r, stored_columns_), values);
    scatter(r, values);
  }
}

bool WeightPlace::holds(const io::TensorView& tensor) const {
  if (elsewhere()) return true;
  std::vector<float> theirs, ours;
  for (std::int64_t r = 0; r < stored_rows_; r += portion()) {
    const std::int64_t shape[] = {std::min(portion(), stored_rows_ - r), stored_columns_};
    theirs.resize(std::size_t(shape[0] * shape[1])), ours.resize(theirs.size());
    io::to_f32(rows_of(tensor, shape, r, stored_columns_), theirs);
    gather(r, ours);
    if (std::memcmp(theirs.data(), ours.data(), theirs.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

std::vector<WeightPlace> placed(const std::vector<WeightSlice>& slices, const std::vector<Parameter*>& parameters) {
  std::map<std::string_view, Parameter*> by_path;
  for (Parameter* p : parameters) by_path.emplace(p->path, p);
  const auto covered = covered_rows(slices);
  for (const auto& [path, p] : by_path) check(covered.contains(path), "weight map: nothing is stored of parameter {} {}", path, p->shape);
  std::vector<WeightPlace> out;
  for (const WeightSlice& s : slices) {
    const auto found = by_path.find(s.parameter);
    check(found != by_path.end(), "weight map: {} belongs to parameter {}, which the model does not have", s.name, s.parameter);
    out.emplace_back(s, *found->second);
  }
  return out;
}

void clear_padding(const std::vector<WeightSlice>& slices, const std::vector<Parameter*>& parameters) {
  const auto covered = covered_rows(slices);
  for (Parameter* p : parameters) {
    if (!p->value) continue;
    const std::int64_t columns = columns_of(*p);
    std::fill(p->value.values().f32() + covered.at(p->path) * columns, p->value.values().f32() + p->shape.count(), 0.0f);
  }
}

}  // namespace octet::models

#include "octet/models/mapped_weight.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "octet/models/weight_codes.hpp"

namespace octet::models {
namespace {

constexpr std::int64_t portion_elements = 1 << 20;

std::int64_t columns_of(const Parameter& p) { return p.shape.rank == 2 ? p.shape[1] : 1; }

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

MappedWeight::MappedWeight(WeightSlice slice, Parameter& parameter) : slice_(std::move(slice)), parameter_(&parameter) {
  const std::int64_t columns = columns_of(parameter);
  check(parameter.shape.rank <= 2 && slice_.first >= 0 && slice_.rows > 0 && slice_.first + slice_.rows <= parameter.shape[0],
        "weight map: {} takes rows {} to {} of {} {}", slice_.name, slice_.first, slice_.first + slice_.rows, parameter.path,
        parameter.shape);
  stored_rows_ = slice_.rows, stored_columns_ = columns, row_step_ = columns, column_step_ = 1;
  if (slice_.transposed) std::swap(stored_rows_, stored_columns_), std::swap(row_step_, column_step_);
  begin_ = parameter.value ? parameter.value.values().f32() + slice_.first * columns : nullptr;
}

std::vector<std::int64_t> MappedWeight::stored_shape() const {
  if (parameter_->shape.rank == 1) return {stored_rows_};
  return {stored_rows_, stored_columns_};
}

bool MappedWeight::has_codes(const WeightForm& form) const {
  return form.has_codes() && parameter_->shape.rank == 2 && parameter_->role != ParameterRole::router &&
         parameter_->path.starts_with("layers.") && !form.keeps(parameter_->path);
}

bool MappedWeight::has_own_blocks(const WeightForm& form) const {
  const std::int64_t high = std::max(1, form.block().rows), end = slice_.first + slice_.rows;
  return slice_.first % high == 0 && (end % high == 0 || end == parameter_->shape[0]);
}

std::vector<io::TensorSpec> MappedWeight::specs(const WeightForm& form) const {
  const bool f32 = form.dtype == DType::f32 || slice_.wide;
  if (!has_codes(form)) return {{slice_.name, f32 ? io::StoredDType::f32 : io::StoredDType::bf16, stored_shape()}};
  const ScaleBlock block = form.block();
  std::vector<std::int64_t> scales{blocks_of(stored_rows_, block.rows)};
  if (!block.whole_tensor()) scales.push_back(blocks_of(stored_columns_, block.cols));
  std::vector<io::TensorSpec> out{{slice_.name, io::StoredDType::e4m3, stored_shape()}, {scale_name(form), io::StoredDType::f32, scales}};
  if (form.input_scales.contains(parameter_->path)) out.push_back({input_scale_name(), io::StoredDType::f32, {1}});
  return out;
}

std::int64_t MappedWeight::portion(std::int64_t multiple_of) const {
  return round_up(std::max<std::int64_t>(1, portion_elements / stored_columns_), multiple_of);
}

template <class Visit>
void MappedWeight::for_each_portion(std::int64_t multiple_of, Visit visit) const {
  std::vector<float> values;
  for (std::int64_t r = 0; r < stored_rows_; r += portion(multiple_of)) {
    values.resize(std::size_t(std::min(portion(multiple_of), stored_rows_ - r) * stored_columns_));
    if (!visit(r, values)) return;
  }
}

// copy(value here, value of the file) for rows from `first` on, each by one thread.
template <class Value, class Copy>
void MappedWeight::each_value(std::int64_t first, std::span<Value> values, const Copy& copy) const {
  const std::int64_t rows = std::int64_t(values.size()) / stored_columns_;
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const here = begin_ + (first + r) * row_step_;
    Value* const of_file = values.data() + r * stored_columns_;
    for (std::int64_t c = 0; c < stored_columns_; ++c) copy(here[c * column_step_], of_file[c]);
  }
}

void MappedWeight::gather(std::int64_t first, std::vector<float>& values) const {
  each_value(first, std::span(values), [](const float& here, float& of_file) { of_file = here; });
}

void MappedWeight::scatter(std::int64_t first, const std::vector<float>& values) const {
  each_value(first, std::span(values), [](float& here, const float& of_file) { here = of_file; });
}

void MappedWeight::visit_rows(std::int64_t multiple_of, const std::function<void(std::span<const float>)>& visit) const {
  check(!elsewhere(), "weight map: {} has no memory here", parameter_->path);
  for_each_portion(multiple_of, [&](std::int64_t r, std::vector<float>& values) {
    gather(r, values), visit(values);
    return true;
  });
}

void MappedWeight::write(io::TensorFolderWriter& writer, const WeightForm& form) const {
  check(!elsewhere(), "weight map: {} has no memory here", parameter_->path);
  if (has_codes(form)) return write_codes(writer, form);
  for_each_portion(1, [&](std::int64_t r, std::vector<float>& values) {
    gather(r, values);
    writer.append(slice_.name, io::from_f32(values, specs(form)[0].dtype));
    return true;
  });
}

// One scale per tensor is that of the whole parameter, or of the expert's matrix in a stack, as the quantizer of training has it.
void MappedWeight::write_codes(io::TensorFolderWriter& writer, const WeightForm& form) const {
  const ScaleBlock block = form.block();
  const std::int64_t values_of_matrix = parameter_->shape.count() / slice_.stack;
  const float* const all = parameter_->value.values().f32() + matrix() * values_of_matrix;
  const float amax = block.whole_tensor() ? largest({all, std::size_t(values_of_matrix)}) : 0;
  std::vector<float> scales;
  for_each_portion(std::max(1, block.rows), [&](std::int64_t r, std::vector<float>& values) {
    gather(r, values);
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); }))
      throw DataError(
          format("tensor \"{}\" has values that are not finite, which {} does not hold; export another step", slice_.name, form.name()));
    const WeightCodes made = encode_weights(values, stored_columns_, block, form.rule, amax);
    writer.append(slice_.name, made.codes);
    if (r == 0 || !block.whole_tensor()) scales.insert(scales.end(), made.descales.begin(), made.descales.end());
    return true;
  });
  writer.append(scale_name(form), io::from_f32(scales, io::StoredDType::f32));
  if (const auto input = form.input_scales.find(parameter_->path); input != form.input_scales.end())
    writer.append(input_scale_name(), io::from_f32(std::span(&input->second, 1), io::StoredDType::f32));
}

void MappedWeight::read(const WeightView& weight) const {
  if (elsewhere()) return;
  for_each_portion(weight.row_block(), [&](std::int64_t r, std::vector<float>& values) {
    weight.read(r, stored_columns_, values);
    scatter(r, values);
    return true;
  });
}

bool MappedWeight::holds(const WeightView& weight) const {
  bool same = true;
  std::vector<float> ours;
  if (elsewhere()) return true;
  for_each_portion(weight.row_block(), [&](std::int64_t r, std::vector<float>& theirs) {
    ours.resize(theirs.size());
    weight.read(r, stored_columns_, theirs), gather(r, ours);
    return same = std::memcmp(theirs.data(), ours.data(), theirs.size() * sizeof(float)) == 0;
  });
  return same;
}

std::vector<MappedWeight> mapped_weights(const std::vector<WeightSlice>& slices, const std::vector<Parameter*>& parameters) {
  std::map<std::string_view, Parameter*> by_path;
  for (Parameter* p : parameters) by_path.emplace(p->path, p);
  const auto covered = covered_rows(slices);
  for (const auto& [path, p] : by_path) check(covered.contains(path), "weight map: nothing is stored of parameter {} {}", path, p->shape);
  std::vector<MappedWeight> out;
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

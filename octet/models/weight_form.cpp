#include "octet/models/weight_form.hpp"

#include "octet/base/check.hpp"

namespace octet::models {
namespace {

using Codes = WeightForm::Codes;

struct Row {
  std::string_view name;
  DType dtype;
  Codes codes;
  ScaleBlock block;
};
constexpr Row rows[] = {{"f32", DType::f32, Codes::none, {}},
                        {"bf16", DType::bf16, Codes::none, {}},
                        {"fp8-block128", DType::bf16, Codes::blocks, {128, 128}},
                        {"fp8-channel", DType::bf16, Codes::channels, {1, 0}},
                        {"fp8-tensor", DType::bf16, Codes::tensor, {}}};

const Row& row_of(const WeightForm& form) {
  for (const Row& row : rows)
    if (row.codes == form.codes && (form.has_codes() || row.dtype == form.dtype)) return row;
  throw ContractError(format("weights are f32 or bf16, not {}", form.dtype));
}

}  // namespace

WeightForm WeightForm::named(std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return {row.dtype, row.codes};
  throw ContractError(format("no form of weights is called {}", name));
}

std::vector<std::string> WeightForm::names() {
  std::vector<std::string> out;
  for (const Row& row : rows) out.emplace_back(row.name);
  return out;
}

std::string_view WeightForm::name() const { return row_of(*this).name; }
ScaleBlock WeightForm::block() const { return row_of(*this).block; }

}  // namespace octet::models

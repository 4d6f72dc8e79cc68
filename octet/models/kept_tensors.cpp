#include "octet/models/kept_tensors.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/quantization_config.hpp"
#include "octet/models/registry.hpp"
#include "octet/models/weight_view.hpp"

namespace octet::models {
namespace {

constexpr std::string_view scale_end = "_scale_inv", weight_end = ".weight";

io::TensorSpec spec_of(const io::TensorView& t) { return {std::string(t.name), t.dtype, {t.shape.begin(), t.shape.end()}}; }

io::StoredDType values_of(const WeightForm& form) { return form.dtype == DType::f32 ? io::StoredDType::f32 : io::StoredDType::bf16; }

}  // namespace

KeptTensors::KeptTensors(const ModelShape& shape, const Companions& companions) {
  const auto keeps = model_family(shape.family).hugging_face.keeps;
  if (keeps == nullptr || shape.kept_layers == 0 || companions.weights.empty()) return;
  files_ = io::TensorFolder::open(companions.weights);
  const json::Value config = json::parse({.text = companions.config, .file = "config.json", .limits = config_limits});
  blocks_ = quantized_blocks(json::Fields(config, "config.json"));
  for (const std::string_view name : files_->names())
    if (keeps(shape, name) && !(blocks_ && name.ends_with(scale_end))) names_.emplace_back(name);
}

KeptTensors::Entry KeptTensors::entry(const std::string& name) const {
  Entry out{files_->tensor(name), {}};
  if (blocks_ && out.tensor.dtype == io::StoredDType::e4m3) out.scales = files_->tensor(name + std::string(scale_end));
  return out;
}

bool KeptTensors::keeps_codes(const Entry& e, const WeightForm& form) const {
  return e.scales && form.codes == WeightForm::Codes::blocks && *blocks_ == form.block();
}

std::vector<io::TensorSpec> KeptTensors::specs(const WeightForm& form) const {
  std::vector<io::TensorSpec> out;
  for (const std::string& name : names_) {
    const Entry e = entry(name);
    out.push_back(spec_of(e.tensor));
    if (keeps_codes(e, form)) out.push_back(spec_of(*e.scales));
    else if (e.scales) out.back().dtype = values_of(form);
  }
  return out;
}

void KeptTensors::write(io::TensorFolderWriter& writer, const WeightForm& form) const {
  for (const std::string& name : names_) {
    const Entry e = entry(name);
    if (!e.scales || keeps_codes(e, form)) {
      writer.append(name, e.tensor.bytes);
      if (e.scales) writer.append(e.scales->name, e.scales->bytes);
      continue;
    }
    std::vector<float> values(std::size_t(e.tensor.count()));
    WeightView{e.tensor, e.scales, *blocks_}.read(0, e.tensor.shape[1], values);
    writer.append(name, io::from_f32(values, values_of(form)));
  }
}

std::vector<std::string> KeptTensors::modules_of_values(const WeightForm& form) const {
  std::vector<std::string> out;
  for (const std::string& name : names_)
    if (name.ends_with(weight_end) && !keeps_codes(entry(name), form)) out.push_back(name.substr(0, name.size() - weight_end.size()));
  return out;
}

void store_kept_tensors(const std::string& folder, const ModelShape& shape, const Companions& companions) {
  const KeptTensors kept(shape, companions);
  if (kept.empty()) return;
  const WeightForm as_it_came(DType::bf16, WeightForm::Codes::blocks);
  io::TensorFolderWriter writer(folder, kept.specs(as_it_came));
  kept.write(writer, as_it_came);
  writer.commit();
}

}  // namespace octet::models

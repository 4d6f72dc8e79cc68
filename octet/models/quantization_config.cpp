#include "octet/models/quantization_config.hpp"

namespace octet::models {
namespace {

constexpr std::int64_t largest_block = 1 << 16;

ScaleBlock block_of(const json::Fields& from, const char* key) {
  const std::vector<std::int64_t> sizes = from.integers(key, 1, largest_block);
  if (sizes.size() != 2) from.refuse(key, "two numbers, the rows and columns of a block");
  return {int(sizes[0]), int(sizes[1])};
}

json::Value compressed_scheme(const char* strategy, bool dynamic) {
  json::Value out = json::Object();
  out.set("num_bits", 8).set("type", "float").set("symmetric", true).set("strategy", strategy).set("dynamic", dynamic);
  out.set("group_size", json::Value()).set("block_structure", json::Value()).set("actorder", json::Value());
  return out.set("observer", dynamic ? json::Value() : json::Value("minmax")).set("observer_kwargs", json::Object());
}

ScaleBlock compressed_blocks(const json::Fields& q) {
  if (q.text("format") != "float-quantized") q.refuse("format", "\"float-quantized\"");
  const json::Fields groups = q.object("config_groups");
  if (groups.members().size() != 1) q.refuse("config_groups", "an object of one group");
  const json::Fields weights = groups.object(groups.members()[0].name).object("weights");
  if (weights.text("type") != "float") weights.refuse("type", "\"float\"");
  weights.integer("num_bits", 8, 8);
  const std::string strategy = weights.text("strategy");
  if (strategy == "block") return block_of(weights, "block_structure");
  if (strategy == "channel") return {1, 0};
  if (strategy != "tensor") weights.refuse("strategy", "\"tensor\", \"channel\" or \"block\"");
  return {};
}

}  // namespace

json::Value quantization_config(const WeightForm& form, const std::vector<std::string>& ignored) {
  json::Value out = json::Object();
  if (form.codes == WeightForm::Codes::blocks) {
    out.set("quant_method", "fp8").set("fmt", "e4m3").set("activation_scheme", "dynamic");
    if (form.rule == ScaleRule::power_of_two) out.set("scale_fmt", "ue8m0");
    return out.set("weight_block_size", json::Array{128, 128}).set("modules_to_not_convert", json::array_of(ignored));
  }
  const bool channel = form.codes == WeightForm::Codes::channels;
  json::Value group = json::Object(), groups = json::Object();
  group.set("targets", json::Array{"Linear"}).set("weights", compressed_scheme(channel ? "channel" : "tensor", false));
  group.set("input_activations", compressed_scheme(channel ? "token" : "tensor", form.input_scales.empty()))
      .set("output_activations", json::Value());
  groups.set("group_0", std::move(group));
  out.set("quant_method", "compressed-tensors").set("format", "float-quantized").set("quantization_status", "compressed");
  out.set("config_groups", std::move(groups)).set("ignore", json::array_of(ignored));
  return out.set("kv_cache_scheme", json::Value());
}

std::optional<ScaleBlock> quantized_blocks(const json::Fields& config) {
  if (!config.has(quantization_key)) return {};
  const json::Fields q = config.object(quantization_key);
  const std::string method = q.text("quant_method");
  if (method == "compressed-tensors") return compressed_blocks(q);
  if (method != "fp8") q.refuse("quant_method", "\"fp8\" or \"compressed-tensors\"");
  if (q.text_or("fmt", "e4m3") != "e4m3") q.refuse("fmt", "\"e4m3\"");
  return q.has("weight_block_size") ? block_of(q, "weight_block_size") : ScaleBlock{};
}

}  // namespace octet::models

#include "octet/models/peft_folder.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/io/new_folder.hpp"
#include "octet/io/safetensors_file.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/json/fields.hpp"
#include "octet/models/companions.hpp"

namespace octet::models {
namespace {

constexpr const char *config_name = "adapter_config.json", *tensors_name = "adapter_model.safetensors";
constexpr std::string_view prefix = "base_model.model.", a_end = ".lora_A.weight", b_end = ".lora_B.weight";

std::string tensor_name(const AdaptedModule& m, std::string_view end) { return format("{}{}{}", prefix, m.name, end); }

constexpr std::string_view inner_end = ".base_layer", gate_up_end = ".gate_up_proj", down_end = ".down_proj";

std::string without(const std::string& name, std::string_view end) { return name.substr(0, name.size() - end.size()); }

// PEFT wraps the parameters of one module in turn: of two, that of gate and up is the inner one.
std::string wrapper_name(const AdaptedWeight& w, const std::set<std::string>& stacks) {
  if (w.stack.ends_with(down_end)) return without(w.stack, down_end);
  const std::string experts = without(w.stack, gate_up_end);
  return stacks.contains(experts + std::string(down_end)) ? experts + std::string(inner_end) : experts;
}

// One tensor of adapter_model.safetensors.
struct PeftTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t experts = 1;  // B of a stack: [out, rank * experts] in the file, the expert as the fastest index

  // The index in the adapter's parameter of value i.
  std::int64_t place(std::int64_t i) const {
    if (experts == 1) return i;
    const std::int64_t out = shape[0], rank = shape[1] / experts, o = i / shape[1], k = i % shape[1] / experts, e = i % experts;
    return (e * out + o) * rank + k;
  }
};

std::set<std::string> stacks_of(const std::vector<AdaptedWeight>& weights) {
  std::set<std::string> out;
  for (const AdaptedWeight& w : weights)
    if (!w.stack.empty()) out.insert(w.stack);
  return out;
}

std::vector<AdaptedWeight> weights_of(const TrainedAdapters& adapters) {
  std::vector<AdaptedWeight> out;
  for (const AdapterValues& v : adapters.values) out.push_back(v.weight);
  return out;
}

// Calls f(tensor, the values in the adapter's parameter).
template <class Adapters, class F>
void each_tensor(Adapters& adapters, const F& f) {
  const std::int64_t rank = adapters.config.rank;
  const std::set<std::string> stacks = stacks_of(weights_of(adapters));
  for (auto& v : adapters.values) {
    const AdaptedWeight& w = v.weight;
    if (!w.stack.empty()) {
      const auto experts = std::int64_t(w.modules.size());
      const AdaptedModule all{wrapper_name(w, stacks), {}};
      f(PeftTensor{tensor_name(all, a_end), {experts * rank, w.in}}, std::span(v.a));
      f(PeftTensor{tensor_name(all, b_end), {w.out, rank * experts}, experts}, std::span(v.b));
      continue;
    }
    std::int64_t row = 0, number = 0;
    for (const AdaptedModule& m : w.modules) {
      const std::int64_t of_a = rank * w.in, of_b = m.rows.rows * rank;
      f(PeftTensor{tensor_name(m, a_end), {rank, w.in}}, std::span(v.a).subspan(std::size_t(number++ * of_a), std::size_t(of_a)));
      f(PeftTensor{tensor_name(m, b_end), {m.rows.rows, rank}}, std::span(v.b).subspan(std::size_t(row * rank), std::size_t(of_b)));
      row += m.rows.rows;
    }
  }
}

std::vector<std::string> modules_of(const std::vector<AdaptedWeight>& weights) {
  std::vector<std::string> out;
  for (const AdaptedWeight& w : weights)
    if (w.stack.empty())
      for (const AdaptedModule& m : w.modules) out.push_back(m.name);
  return out;
}

// PEFT matches the ends of names: those of `names` from their part `last` points on, if they name these and no others of the model, or else
// the complete names. named(weights) are the names that targets gave.
template <class Named>
std::vector<std::string> shortened(const std::vector<std::string>& names, int last, const AdapterConfig& config, const ModelShape& shape,
                                   const Named& named) {
  std::set<std::string> ends;
  for (const std::string& name : names) {
    std::size_t at = name.size();
    for (int i = 0; i < last; ++i) at = name.rfind('.', at - 1);
    ends.insert(name.substr(at + 1));
  }
  if (names.empty()) return {};
  AdapterConfig by_ends = config;
  by_ends.targets.assign(ends.begin(), ends.end());
  try {
    if (named(adapted_weights(shape, by_ends)) == names) return by_ends.targets;
  } catch (const ConfigError&) {  // an end names experts, too
  }
  return names;
}

std::vector<std::string> stack_names(const std::vector<AdaptedWeight>& weights) {
  std::vector<std::string> out;
  for (const AdaptedWeight& w : weights)
    if (!w.stack.empty()) out.push_back(w.stack);
  return out;
}

std::vector<std::string> target_modules(const TrainedAdapters& adapters, const ModelShape& shape) {
  return shortened(modules_of(weights_of(adapters)), 1, adapters.config, shape, modules_of);
}

// "mlp.experts.down_proj".
std::vector<std::string> target_parameters(const TrainedAdapters& adapters, const ModelShape& shape) {
  return shortened(stack_names(weights_of(adapters)), 3, adapters.config, shape, stack_names);
}

json::Value config_json(const TrainedAdapters& adapters, const ModelShape& shape, const std::string& base) {
  json::Value out = json::Object();
  out.set("peft_type", "LORA").set("task_type", "CAUSAL_LM").set("base_model_name_or_path", base).set("inference_mode", true);
  out.set("r", adapters.config.rank).set("lora_alpha", adapters.config.alpha).set("lora_dropout", adapters.config.dropout);
  out.set("target_modules", json::array_of(target_modules(adapters, shape))).set("bias", "none");
  if (const std::vector<std::string> parameters = target_parameters(adapters, shape); !parameters.empty())
    out.set("target_parameters", json::array_of(parameters));
  out.set("fan_in_fan_out", std::ranges::any_of(adapters.values, [](const AdapterValues& v) { return v.weight.transposed; }));
  out.set("init_lora_weights", true).set("use_rslora", false).set("use_dora", false).set("modules_to_save", {});
  out.set("layers_to_transform", {}).set("layers_pattern", {});
  out.set("rank_pattern", json::Object()).set("alpha_pattern", json::Object());
  return out;
}

void refuse_other_files(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if ((name != config_name && name != tensors_name) || !entry.is_regular_file(ignored))
      throw ConfigError(
          format("{}: contains '{}', which would be removed; name another folder or empty this one", printable(folder), printable(name)));
  }
}

// Keys of other kinds of adapters, which are off or empty here.
void require_plain(const json::Fields& c) {
  if (c.text("peft_type") != "LORA") c.refuse("peft_type", "LORA");
  if (c.text_or("bias", "none") != "none") c.refuse("bias", "none");
  for (const char* key : {"use_dora", "lora_bias"})
    if (c.boolean_or(key, false)) c.refuse(key, "false");
  for (const char* key : {"rank_pattern", "alpha_pattern"})
    if (c.has(key) && !c.object(key).members().empty()) c.refuse(key, "empty");
  const char* const saved = "modules_to_save";
  if (c.has(saved) && !(c.value(saved).array() != nullptr && c.value(saved).array()->empty())) c.refuse(saved, "null");
}

// The ends of parameters of experts that have adapters: ".gate_up_proj".
std::set<std::string_view> target_parameters_in(const json::Fields& c) {
  constexpr const char* key = "target_parameters";
  std::set<std::string_view> out;
  if (!c.has(key)) return out;
  for (const std::string& name : c.texts(key)) {
    const std::string_view end = name.ends_with(gate_up_end) ? gate_up_end : name.ends_with(down_end) ? down_end : std::string_view();
    if (end.empty() || name.find("experts.") == std::string::npos)
      c.refuse(key, "of experts: mlp.experts.gate_up_proj and mlp.experts.down_proj");
    out.insert(end);
  }
  return out;
}

// The target of a tensor's module; of experts' parameter: of two, wrapper_name() says which, and one is named by the configuration.
std::string target_of(const std::string& module, const io::SafetensorsFile& file, const std::set<std::string_view>& parameters) {
  constexpr std::string_view experts = ".experts";
  const auto name = [](const std::string& of, std::string_view end) { return of + std::string(end); };
  if (module.ends_with(name(std::string(experts), inner_end))) return name(without(module, inner_end), gate_up_end);
  if (!module.ends_with(experts)) return module;
  const bool outer = bool(file.find(format("{}{}{}{}", prefix, module, inner_end, a_end)));
  return name(module, outer || !parameters.contains(gate_up_end) ? down_end : gate_up_end);
}

// Of the tensors' names, since target_modules may be a pattern.
std::vector<std::string> targets_in(const io::SafetensorsFile& file, const std::set<std::string_view>& parameters) {
  std::vector<std::string> out;
  for (const io::TensorView& t : file.tensors()) {
    if (t.name.starts_with(prefix) && t.name.ends_with(b_end)) continue;
    if (!t.name.starts_with(prefix) || !t.name.ends_with(a_end))
      throw DataError(format("{}: tensor \"{}\" is unexpected: adapters of linear modules have {}<module>{} and {}", printable(file.path()),
                             printable(t.name), prefix, a_end, b_end));
    const std::string module(t.name.substr(prefix.size(), t.name.size() - prefix.size() - a_end.size()));
    out.push_back(target_of(module, file, parameters));
  }
  return out;
}

void read_tensor(const io::SafetensorsFile& file, const PeftTensor& tensor, std::span<float> to) {
  const auto& [name, shape, experts] = tensor;
  const auto found = file.find(name);
  if (!found) throw DataError(format("{}: tensor \"{}\" is missing; save the adapters again", printable(file.path()), name));
  if (!std::ranges::equal(found->shape, shape))
    throw DataError(format("{}: tensor \"{}\" must be [{}, {}], as {} and the model say; the folder is of another model, or damaged",
                           printable(file.path()), name, shape[0], shape[1], config_name));
  std::vector<float> values(to.size());
  io::to_f32(*found, values);
  for (std::size_t i = 0; i < values.size(); ++i) to[std::size_t(tensor.place(std::int64_t(i)))] = values[i];
  if (!std::ranges::all_of(to, [](float x) { return std::isfinite(x); }))
    throw DataError(format("{}: tensor \"{}\" has values that are not finite; save the adapters again", printable(file.path()), name));
}

}  // namespace

bool is_peft_folder(const std::string& folder) { return exists(folder + "/" + config_name); }

void save_peft_folder(const std::string& folder, const TrainedAdapters& adapters, const ModelShape& shape, const std::string& base) {
  refuse_other_files(folder);
  io::NewFolder made(folder);
  write_file(made.working() + "/" + config_name, config_json(adapters, shape, base).dump(json::Layout::indented) + "\n");
  std::vector<io::TensorSpec> specs;
  each_tensor(adapters, [&](const PeftTensor& t, std::span<const float>) { specs.push_back({t.name, io::StoredDType::f32, t.shape}); });
  io::SafetensorsWriter writer(made.working() + "/" + tensors_name, specs, {{"format", "pt"}});
  each_tensor(adapters, [&](const PeftTensor& t, std::span<const float> values) {
    std::vector<float> in_file(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) in_file[i] = values[std::size_t(t.place(std::int64_t(i)))];
    writer.append(t.name, io::from_f32(in_file, io::StoredDType::f32));
  });
  writer.commit();
  made.commit();
}

std::string base_of_peft_folder(const std::string& folder) {
  const std::string path = folder + "/" + config_name;
  const json::Value file = json::load(path, config_limits);
  return json::Fields(file, printable(path)).text("base_model_name_or_path");
}

TrainedAdapters read_peft_folder(const std::string& folder, const ModelShape& shape) {
  const std::string path = folder + "/" + config_name;
  const json::Value text = json::load(path, config_limits);
  const json::Fields c(text, printable(path));
  require_plain(c);
  const io::SafetensorsFile file = io::SafetensorsFile::open(folder + "/" + tensors_name);
  TrainedAdapters out;
  out.config.rank = c.integer("r", 1, 65536), out.config.alpha = c.number("lora_alpha", 1e-9, 1e6);
  if (c.boolean_or("use_rslora", false)) out.config.alpha *= std::sqrt(double(out.config.rank));
  out.config.targets = targets_in(file, target_parameters_in(c));
  try {
    for (AdaptedWeight& w : adapted_weights(shape, out.config)) {
      const std::size_t a = std::size_t(std::int64_t(w.modules.size()) * out.config.rank * w.in),
                        b = std::size_t(w.rows() * out.config.rank);
      out.values.push_back({std::move(w), std::vector<float>(a), std::vector<float>(b)});
    }
  } catch (const ConfigError& e) {
    throw DataError(format("{}: {}; it is of another model, or needs PEFT", printable(file.path()), e.what()));
  }
  each_tensor(out, [&](const PeftTensor& t, std::span<float> values) { read_tensor(file, t, values); });
  out.config.targets = target_modules(out, shape);
  for (std::string& name : target_parameters(out, shape)) out.config.targets.push_back(std::move(name));
  return out;
}

AdapterConfig completed(const AdapterConfig& config, const ModelShape& shape) {
  if (config || config.init.empty()) return config;
  AdapterConfig out = read_peft_folder(config.init, shape).config;
  out.init = config.init, out.dropout = config.dropout;
  return out;
}

}  // namespace octet::models

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

// Calls f(tensor's name, its shape, the values in the adapter's parameter).
template <class Values, class F>
void each_tensor(std::int64_t rank, Values& all, const F& f) {
  for (auto& v : all) {
    std::int64_t row = 0, number = 0;
    for (const AdaptedModule& m : v.weight.modules) {
      const std::int64_t of_a = rank * v.weight.in, of_b = m.rows.rows * rank;
      f(tensor_name(m, a_end), std::vector{rank, v.weight.in}, std::span(v.a).subspan(std::size_t(number++ * of_a), std::size_t(of_a)));
      f(tensor_name(m, b_end), std::vector{m.rows.rows, rank}, std::span(v.b).subspan(std::size_t(row * rank), std::size_t(of_b)));
      row += m.rows.rows;
    }
  }
}

std::vector<std::string> modules_of(const std::vector<AdaptedWeight>& weights) {
  std::vector<std::string> out;
  for (const AdaptedWeight& w : weights)
    for (const AdaptedModule& m : w.modules) out.push_back(m.name);
  return out;
}

// PEFT matches the ends of names: those that name these modules and no others of the model, or the complete names.
std::vector<std::string> target_modules(const TrainedAdapters& adapters, const ModelShape& shape) {
  std::vector<AdaptedWeight> weights;
  for (const AdapterValues& v : adapters.values) weights.push_back(v.weight);
  const std::vector<std::string> modules = modules_of(weights);
  std::set<std::string> ends;
  for (const std::string& m : modules) ends.insert(m.substr(m.rfind('.') + 1));
  AdapterConfig by_ends = adapters.config;
  by_ends.targets.assign(ends.begin(), ends.end());
  try {
    if (modules_of(adapted_weights(shape, by_ends)) == modules) return by_ends.targets;
  } catch (const ConfigError&) {  // an end names experts, too
  }
  return modules;
}

json::Value config_json(const TrainedAdapters& adapters, const ModelShape& shape, const std::string& base) {
  json::Value out = json::Object();
  out.set("peft_type", "LORA").set("task_type", "CAUSAL_LM").set("base_model_name_or_path", base).set("inference_mode", true);
  out.set("r", adapters.config.rank).set("lora_alpha", adapters.config.alpha).set("lora_dropout", adapters.config.dropout);
  out.set("target_modules", json::array_of(target_modules(adapters, shape))).set("bias", "none");
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
  for (const char* key : {"modules_to_save", "target_parameters"})
    if (c.has(key) && !(c.value(key).array() != nullptr && c.value(key).array()->empty())) c.refuse(key, "null");
}

// Of the tensors' names, since target_modules may be a pattern.
std::vector<std::string> modules_in(const io::SafetensorsFile& file) {
  std::vector<std::string> out;
  for (const io::TensorView& t : file.tensors()) {
    if (t.name.starts_with(prefix) && t.name.ends_with(b_end)) continue;
    if (!t.name.starts_with(prefix) || !t.name.ends_with(a_end))
      throw DataError(format("{}: tensor \"{}\" is unexpected: adapters of linear modules have {}<module>{} and {}", printable(file.path()),
                             printable(t.name), prefix, a_end, b_end));
    out.emplace_back(t.name.substr(prefix.size(), t.name.size() - prefix.size() - a_end.size()));
  }
  return out;
}

void read_tensor(const io::SafetensorsFile& file, const std::string& name, const std::vector<std::int64_t>& shape, std::span<float> to) {
  const auto found = file.find(name);
  if (!found) throw DataError(format("{}: tensor \"{}\" is missing; save the adapters again", printable(file.path()), name));
  if (!std::ranges::equal(found->shape, shape))
    throw DataError(format("{}: tensor \"{}\" must be [{}, {}], as {} and the model say; the folder is of another model, or damaged",
                           printable(file.path()), name, shape[0], shape[1], config_name));
  io::to_f32(*found, to);
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
  const std::int64_t rank = adapters.config.rank;
  each_tensor(rank, adapters.values, [&](const std::string& name, const std::vector<std::int64_t>& dimensions, std::span<const float>) {
    specs.push_back({name, io::StoredDType::f32, dimensions});
  });
  io::SafetensorsWriter writer(made.working() + "/" + tensors_name, specs, {{"format", "pt"}});
  each_tensor(rank, adapters.values, [&](const std::string& name, const std::vector<std::int64_t>&, std::span<const float> values) {
    writer.append(name, io::from_f32(values, io::StoredDType::f32));
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
  out.config.targets = modules_in(file);
  try {
    for (AdaptedWeight& w : adapted_weights(shape, out.config)) {
      const std::size_t a = std::size_t(std::int64_t(w.modules.size()) * out.config.rank * w.in),
                        b = std::size_t(w.rows() * out.config.rank);
      out.values.push_back({std::move(w), std::vector<float>(a), std::vector<float>(b)});
    }
  } catch (const ConfigError& e) {
    throw DataError(format("{}: {}; it is of another model, or needs PEFT", printable(file.path()), e.what()));
  }
  each_tensor(out.config.rank, out.values,
              [&](const std::string& name, const std::vector<std::int64_t>& dimensions, std::span<float> values) {
                read_tensor(file, name, dimensions, values);
              });
  out.config.targets = target_modules(out, shape);
  return out;
}

AdapterConfig completed(const AdapterConfig& config, const ModelShape& shape) {
  if (config || config.init.empty()) return config;
  AdapterConfig out = read_peft_folder(config.init, shape).config;
  out.init = config.init, out.dropout = config.dropout;
  return out;
}

}  // namespace octet::models

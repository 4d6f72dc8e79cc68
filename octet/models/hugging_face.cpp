#include "octet/models/hugging_face.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "octet/io/new_folder.hpp"
#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/json/fields.hpp"
#include "octet/models/exported_config.hpp"
#include "octet/models/kept_tensors.hpp"
#include "octet/models/quantization_config.hpp"
#include "octet/models/registry.hpp"
#include "octet/models/rope_keys.hpp"
#include "octet/models/weight_codes.hpp"
#include "octet/models/mapped_weight.hpp"

namespace octet::models {
namespace {

constexpr const char* config_name = "config.json";

/// The folder is not damaged, but the family of its model is not supported.
struct Unsupported : DataError {
  using DataError::DataError;
};

std::string bracketed(std::span<const std::int64_t> shape) {
  std::string out;
  for (const std::int64_t d : shape) out += (out.empty() ? "" : ", ") + std::to_string(d);
  return "[" + out + "]";
}

const HuggingFaceFormat& format_of(const ModelShape& shape) {
  const HuggingFaceFormat& found = model_family(shape.family).hugging_face;
  if (!found)
    throw ConfigError(octet::format(
        "models of family {} have no Hugging Face format, since the family was registered without one; set train.save_weights = false",
        shape.family));
  return found;
}

/// Whether an export writes a file of that name.
bool exported(std::string_view name) {
  return name == config_name || name == "model.safetensors.index.json" || (name.starts_with("model") && name.ends_with(".safetensors")) ||
         is_companion(name);
}

void refuse_other_files(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!exported(name) || !entry.is_regular_file(ignored))
      throw ConfigError(octet::format("{}: contains '{}', which an export would remove; name another folder or empty this one",
                                      printable(folder), printable(name)));
  }
}

/// The family of a config.json. Throws DataError with the list of families.
const ModelFamily& family_of(const json::Fields& config, const std::string& path) {
  const std::string type = config.text("model_type");
  std::string names;
  for (const ModelFamily& family : model_families()) {
    if (!family.hugging_face) continue;
    if (family.name == type) return family;
    names += (names.empty() ? "" : ", ") + std::string(family.name);
  }
  throw Unsupported(octet::format("{}: model_type \"{}\" is a family that octet does not support; it supports {} (docs/models.md)",
                                  printable(path), printable(type), names));
}

ModelShape shape_of_config(const json::Value& file, const std::string& path) {
  const json::Fields config(file, printable(path));
  quantized_blocks(config);  // refuses those that are not read
  return family_of(config, path).hugging_face.read(config);
}

/// One line per key in which the folder's model differs from the requested one.
std::string differences(const ModelShape& there, const ModelShape& wanted) {
  std::string out;
  const auto compare = [&](std::string_view key, const auto& a, const auto& b) {
    if (a != b) out += octet::format("{}{} = {} and not {}", out.empty() ? "" : ", ", key, a, b);
  };
  compare("family", there.family, wanted.family);
  compare("width", there.width, wanted.width), compare("layers", there.layers, wanted.layers), compare("heads", there.heads, wanted.heads);
  compare("kv_heads", there.kv_heads, wanted.kv_heads), compare("head_dim", there.head_dim, wanted.head_dim);
  compare("hidden", there.hidden, wanted.hidden), compare("vocabulary", there.vocabulary, wanted.vocabulary);
  compare("norm_eps", there.norm_eps, wanted.norm_eps), compare("rope_theta", there.rope_theta, wanted.rope_theta);
  compare("rope_scaling", rope_text(there), rope_text(wanted)), compare("tied", there.tied, wanted.tied);
  compare("latent_rank", there.latent.rank, wanted.latent.rank), compare("query_rank", there.latent.query_rank, wanted.latent.query_rank);
  compare("rotary_width", there.latent.turned, wanted.latent.turned);
  compare("value_width", there.latent.value_width, wanted.latent.value_width);
  compare("rotation of neighbours", there.latent.pairs == ops::RopePairs::neighbours, wanted.latent.pairs == ops::RopePairs::neighbours);
  compare("window", there.window.tokens, wanted.window.tokens);
  compare("layers with a window", there.window.global_step, wanted.window.global_step);
  compare("rope_theta of windows", there.window.rope_theta, wanted.window.rope_theta);
  compare("attention_bias", there.biases.attention, wanted.biases.attention), compare("mlp_bias", there.biases.mlp, wanted.biases.mlp);
  compare("clip_qkv", there.clip_qkv, wanted.clip_qkv);
  compare("layers without rotations", there.unturned_step, wanted.unturned_step);
  const Multipliers &m = there.multipliers, &n = wanted.multipliers;
  compare("factor of embeddings", m.embedding, n.embedding), compare("factor of branches", m.branch, n.branch);
  compare("divisor of logits", m.logits_divisor, n.logits_divisor), compare("factor of scores", m.scores, n.scores);
  const ExpertsShape &a = there.experts, &b = wanted.experts;
  compare("experts", a.number, b.number), compare("experts_per_token", a.chosen, b.chosen), compare("expert_hidden", a.width, b.width);
  compare("shared_experts", a.shared, b.shared), compare("router_normalize", a.normalize, b.normalize);
  compare("router_scaling", a.scaling, b.scaling), compare("router_groups", a.groups, b.groups);
  compare("layers with experts", there.layers_with_experts().size(), wanted.layers_with_experts().size());
  return out;
}

void require_shape(const std::string& folder, const ModelShape& wanted) {
  // Through config.json and back, so that properties that a family lacks (such as the base of RoPE) are not compared.
  const HuggingFaceFormat& format = format_of(wanted);
  const json::Value written = exported_config(wanted, DType::f32, {});
  const std::string different = differences(read_hugging_face_shape(folder), format.read(json::Fields(written, config_name)));
  if (different.empty()) return;
  throw ConfigError(
      octet::format("{}: contains another model than the configured one: {}; use the folder's own shape", printable(folder), different));
}

/// A folder's tensors under the names of a weight map; records which were read.
class Source {
 public:
  Source(const io::TensorFolder& files, const HuggingFaceFormat& format)
      : files_(files), format_(format), blocks_(blocks_of_folder(files.folder())) {}

  /// The weight for a place, its type and shape checked; none for a missing alias.
  std::optional<WeightView> weight(const MappedWeight& place) {
    std::string_view name = place.name();
    if (!files_.find(name) && name.starts_with(format_.prefix) && files_.find(name.substr(format_.prefix.size())))
      name.remove_prefix(format_.prefix.size());
    if (place.alias() && !files_.find(name)) return {};
    const io::TensorView found = files_.tensor(name);
    const auto wanted = place.stored_shape();
    if (!std::equal(found.shape.begin(), found.shape.end(), wanted.begin(), wanted.end()))
      throw DataError(octet::format("{}: tensor \"{}\" must be {} according to {}, it is {}; fetch both again", printable(files_.folder()),
                                    printable(found.name), bracketed(wanted), config_name, bracketed(found.shape)));
    used_.insert(found.name);
    if (found.dtype == io::StoredDType::e4m3 && blocks_) return coded(found);
    if (!is_number(found.dtype))
      throw DataError(octet::format("{}: tensor \"{}\" must be F32, BF16 or F16, it is {}; convert the weights first",
                                    printable(files_.folder()), printable(found.name), found.dtype));
    return WeightView{found, {}};
  }

  /// DataError for a tensor that no place has read.
  void require_all_used(const ModelShape& shape) const {
    for (const std::string_view name : files_.names()) {
      const auto ends = [&](std::string_view end) { return name.ends_with(end); };
      const bool kept = format_.keeps != nullptr && format_.keeps(shape, name);
      if (kept || used_.contains(name) || std::any_of(format_.constants.begin(), format_.constants.end(), ends)) continue;
      throw DataError(
          octet::format("{}: tensor \"{}\" is unexpected: the {} model that {} describes has none of that name; fetch both again",
                        printable(files_.folder()), printable(name), shape.family, config_name));
    }
  }

 private:
  static std::optional<ScaleBlock> blocks_of_folder(const std::string& folder) {
    const std::string path = folder + "/" + config_name;
    const json::Value file = json::load(path, config_limits);
    return quantized_blocks(json::Fields(file, printable(path)));
  }

  /// Codes and their scales. Scales of activations are for servers.
  WeightView coded(const io::TensorView& codes) {
    const std::string name(codes.name);
    const auto inverse = files_.find(name + "_scale_inv");
    const io::TensorView scales = inverse ? *inverse : files_.tensor(name + "_scale");
    used_.insert(scales.name);
    using io::StoredDType;
    if (!is_number(scales.dtype) && scales.dtype != StoredDType::e8m0)
      throw DataError(octet::format("{}: tensor \"{}\" must be F32, BF16, F16 or F8_E8M0, it is {}; fetch the weights again",
                                    printable(files_.folder()), printable(scales.name), scales.dtype));
    const std::int64_t wanted[] = {blocks_of(codes.shape[0], blocks_->rows), blocks_of(codes.shape[1], blocks_->cols)};
    const bool vector = wanted[1] == 1 && scales.shape.size() == 1 && scales.shape[0] == wanted[0];
    const bool scalar = blocks_->whole_tensor() && scales.shape.empty();
    if (!vector && !scalar && !std::equal(scales.shape.begin(), scales.shape.end(), std::begin(wanted), std::end(wanted)))
      throw DataError(octet::format("{}: tensor \"{}\" must be {}, the scales of {} in blocks of {}, it is {}; fetch both again",
                                    printable(files_.folder()), printable(scales.name), bracketed(wanted), bracketed(codes.shape), *blocks_,
                                    bracketed(scales.shape)));
    return {codes, scales, *blocks_, input_scale(name)};
  }

  std::optional<io::TensorView> input_scale(const std::string& weight) {
    const auto found = files_.find(input_scale_of(weight));
    if (!found) return {};
    used_.insert(found->name);
    if (!is_number(found->dtype) || found->count() != 1)
      throw DataError(octet::format("{}: tensor \"{}\" must be one number, F32, BF16 or F16, it is {} {}; fetch the weights again",
                                    printable(files_.folder()), printable(found->name), found->dtype, bracketed(found->shape)));
    return found;
  }

  static bool is_number(io::StoredDType t) { return t == io::StoredDType::f32 || t == io::StoredDType::bf16 || t == io::StoredDType::f16; }

  const io::TensorFolder& files_;
  const HuggingFaceFormat& format_;
  std::optional<ScaleBlock> blocks_;  // of codes
  std::set<std::string_view> used_;
};

/// The weight of each place, none for a missing alias. Every tensor of the folder belongs to one of them.
std::vector<std::optional<WeightView>> weights_of(const io::TensorFolder& files, const ModelShape& shape,
                                                  const std::vector<MappedWeight>& places) {
  Source source(files, format_of(shape));
  std::vector<std::optional<WeightView>> weights;
  for (const MappedWeight& p : places) weights.push_back(source.weight(p));
  source.require_all_used(shape);
  return weights;
}

void read_place(const io::TensorFolder& files, const MappedWeight& place, const WeightView& weight) {
  try {
    place.read(weight);
  } catch (const DataError& e) {
    throw DataError(octet::format("{}: {}", printable(files.folder()), e.what()));
  }
}

void fill_parameters(const io::TensorFolder& files, const ModelShape& shape, const std::vector<Parameter*>& parameters) {
  const auto slices = format_of(shape).weights(shape);
  const auto places = mapped_weights(slices, parameters);
  check(std::ranges::any_of(places, [](const MappedWeight& p) { return !p.elsewhere(); }),
        "load_hugging_face: no parameter has memory; bind the model's parameters first");
  const auto weights = weights_of(files, shape, places);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!places[i].alias()) read_place(files, places[i], *weights[i]);
  clear_padding(slices, parameters);
  for (Parameter* p : parameters) ++p->version;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].alias() && weights[i] && !places[i].holds(*weights[i]))
      throw DataError(octet::format(
          "{}: tensor \"{}\" differs from the {}, which it repeats according to {}; {}", printable(files.folder()),
          printable(weights[i]->tensor.name), places[i].parameter().path == "embedding.weight" ? "embedding" : "head", config_name,
          places[i].written() ? "fetch the weights again" : "set tie_word_embeddings to false or remove the tensor"));
}

/// Of an export with codes; always the head, which has no tensor of its own where it is tied. compressed-tensors lists linear layers only.
std::vector<std::string> modules_of_values(const std::vector<MappedWeight>& places, const WeightForm& form) {
  constexpr std::string_view head = "lm_head", end = ".weight";
  const bool lists_all = form.codes == WeightForm::Codes::blocks;
  std::vector<std::string> out{std::string(head)};
  for (const MappedWeight& p : places)
    if (!p.has_codes(form) && p.name().ends_with(end) && !p.name().starts_with(head) && (lists_all || form.keeps(p.parameter().path)))
      out.push_back(p.name().substr(0, p.name().size() - end.size()));
  return out;
}

}  // namespace

void require_exportable(const ModelShape& shape, const Companions& companions) {
  format_of(shape);
  exported_config(shape, DType::f32, companions);
}

void require_form(const ModelShape& shape, const WeightForm& form) {
  const auto slices = format_of(shape).weights(shape);
  if (form.has_codes() && std::ranges::any_of(slices, [](const WeightSlice& s) { return s.transposed; }))
    throw ConfigError(octet::format("--dtype {}: models of family {} store matrices as [in, out], for which there is no FP8 form; use bf16",
                                    form.name(), shape.family));
}

std::vector<std::string> tensors_with_other_blocks(const ModelShape& shape, const std::vector<Parameter*>& parameters,
                                                   const WeightForm& form) {
  std::vector<std::string> out;
  for (const MappedWeight& p : mapped_weights(format_of(shape).weights(shape), parameters))
    if (p.has_codes(form) && !p.has_own_blocks(form)) out.push_back(p.name());
  return out;
}

void save_hugging_face(const std::string& folder, const ModelShape& shape, const std::vector<Parameter*>& parameters,
                       const WeightForm& form, const Companions& companions) {
  require_form(shape, form);
  auto places = mapped_weights(format_of(shape).weights(shape), parameters);
  std::erase_if(places, [](const MappedWeight& p) { return !p.written(); });
  std::vector<io::TensorSpec> tensors;
  for (const MappedWeight& p : places)
    for (io::TensorSpec& spec : p.specs(form)) tensors.push_back(std::move(spec));
  const KeptTensors kept(shape, companions);
  for (io::TensorSpec& spec : kept.specs(form)) tensors.push_back(std::move(spec));
  std::vector<std::string> of_values = modules_of_values(places, form);
  for (std::string& name : kept.modules_of_values(form)) of_values.push_back(std::move(name));

  refuse_other_files(folder);
  const json::Value config = exported_config(shape, form, companions, of_values);
  io::NewFolder made(folder);
  write_companions(made.working(), {.config = config.dump(json::Layout::indented) + "\n", .files = companions.files});
  io::TensorFolderWriter writer(made.working(), std::move(tensors));
  for (const MappedWeight& p : places) p.write(writer, form);
  kept.write(writer, form);
  writer.commit();
  made.commit();
}

void require_export_folder(const std::string& folder, Existing existing) {
  namespace fs = std::filesystem;
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code ignored;
  if (fs::is_symlink(path, ignored))
    throw ConfigError(
        octet::format("{}: is a symbolic link, and an export replaces no folder through one; name the folder itself", printable(folder)));
  refuse_other_files(folder);
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    const std::string name = printable(entry.path().filename().string());
    if (entry.is_symlink(ignored))
      throw ConfigError(
          octet::format("{}: contains the symbolic link '{}', as caches of models do; name another folder", printable(folder), name));
    if (existing == Existing::refuse)
      throw ConfigError(octet::format("{}: already holds a model ('{}'); give --force to replace it, or another --output folder",
                                      printable(folder), name));
  }
}

void require_folder(const std::string& folder) {
  if (exists(folder)) return;
  throw ConfigError(
      octet::format("{}: there is no such folder. Models are read from folders of this machine, and none is fetched: `hf download "
                    "NAME --local-dir FOLDER`, then name FOLDER",
                    printable(folder)));
}

ModelShape read_hugging_face_shape(const std::string& folder) {
  require_folder(folder);
  const std::string path = folder + "/" + config_name;
  if (!exists(path)) throw ConfigError(octet::format("{}: it has no {}; name a Hugging Face folder", printable(folder), config_name));
  try {
    return shape_of_config(json::load(path, config_limits), path);
  } catch (const Unsupported& e) {
    throw DataError(e.what());
  } catch (const DataError& e) {
    throw DataError(octet::format("{}; fetch it again if it is damaged, or choose a model that octet supports (docs/models.md)", e.what()));
  }
}

void require_weights(const io::TensorFolder& files, const ModelShape& shape, const std::vector<Parameter*>& parameters) {
  weights_of(files, shape, mapped_weights(format_of(shape).weights(shape), parameters));
}

std::vector<LayerScales> layer_scales(const io::TensorFolder& files, const ModelShape& shape, const std::vector<Parameter*>& parameters) {
  const auto places = mapped_weights(format_of(shape).weights(shape), parameters);
  const auto weights = weights_of(files, shape, places);
  const auto refuse = [&](const std::string& name, const std::string& reason) {
    throw ConfigError(octet::format("{}: {} {}; make a folder with static scales by octet export --dtype fp8-tensor --calibration 16",
                                    printable(files.folder()), name, reason));
  };
  std::vector<LayerScales> out;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const MappedWeight& place = places[i];
    if (place.alias() || !weights[i]->scales) continue;
    if (!weights[i]->block.whole_tensor()) refuse(place.name(), "has a scale per block, and --frozen reads one per tensor");
    if (!weights[i]->input_scale) refuse(place.name(), "has no input_scale, the stored scale of its activations");
    const std::string& parameter = place.parameter().path;
    const float input = weights[i]->activation_scale(), weight = weights[i]->scale();
    auto of_same = std::ranges::find(out, parameter, &LayerScales::parameter);
    if (of_same == out.end()) of_same = out.insert(out.end(), {parameter, input, {}});
    const auto matrix = std::size_t(place.matrix());
    if (matrix == of_same->weights.size()) of_same->weights.push_back(weight);
    if (of_same->input != input || matrix + 1 != of_same->weights.size() || of_same->weights[matrix] != weight)
      refuse(place.name(), octet::format("has other scales than its neighbours in {}, which is one matrix here", parameter));
  }
  if (out.empty()) refuse("it", "has no FP8 codes");
  return out;
}

void load_hugging_face(const std::string& folder, const ModelShape& shape, const std::vector<Parameter*>& parameters) {
  require_shape(folder, shape);
  fill_parameters(io::TensorFolder::open(folder), shape, parameters);
}

void load_hugging_face(const io::TensorFolder& files, const ModelShape& shape, const std::vector<Parameter*>& parameters) {
  require_shape(files.folder(), shape);
  fill_parameters(files, shape, parameters);
}

}  // namespace octet::models

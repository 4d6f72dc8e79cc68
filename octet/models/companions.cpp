#include "octet/models/companions.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/json/fields.hpp"
#include "octet/models/registry.hpp"

namespace octet::models {
namespace {

constexpr const char* config_name = "config.json";
constexpr std::array<std::string_view, 9> names{"added_tokens.json",
                                                "generation_config.json",
                                                "merges.txt",
                                                "special_tokens_map.json",
                                                "tokenizer.json",
                                                "tokenizer.model",
                                                "tokenizer_config.json",
                                                "vocab.json",
                                                "vocab.txt"};
constexpr std::size_t config_bytes = std::size_t(16) << 20, file_bytes = std::size_t(64) << 20;
// A vocabulary of 2^18 tokens and as many merges, with room.
constexpr json::Limits tokenizer_limits{.bytes = file_bytes, .values = std::size_t(1) << 22};

std::string text_of(const std::string& folder, const std::string& name, std::size_t most) {
  return with_remedy("fetch it again", [&] { return read_file(io::path_within(folder, name), most); });
}

/// The text of a special token in tokenizer_config.json, which may be a string or an object with its content.
std::string special_token(const json::Value& config, std::string_view key) {
  const json::Value* token = config.find(key);
  if (token != nullptr && token->object() != nullptr) token = token->find("content");
  return token != nullptr && token->text() != nullptr ? *token->text() : "";
}

/// The id of an added token of tokenizer.json, or null.
json::Value id_of(const json::Value& tokenizer, const std::string& token) {
  const json::Value* added = tokenizer.find("added_tokens");
  if (added == nullptr || added->array() == nullptr || token.empty()) return {};
  for (const json::Value& entry : *added->array()) {
    const json::Value *content = entry.find("content"), *id = entry.find("id");
    if (content != nullptr && content->text() != nullptr && *content->text() == token && id != nullptr && id->integer() != nullptr)
      return *id;
  }
  return {};
}

/// Begin and end tokens of the tokenizer; null where there are none. Without them transformers' defaults would name tokens of other
/// vocabularies.
void set_special_tokens(const Companions& c, json::Value& config) {
  config.set("bos_token_id", {}).set("eos_token_id", {});
  const std::string *tokenizer = c.find("tokenizer.json"), *settings = c.find("tokenizer_config.json");
  if (tokenizer == nullptr || settings == nullptr) return;
  const auto parse = [](const std::string& text, const char* file) {
    return with_remedy("restore the tokenizer's files in the token folder",
                       [&] { return json::parse({.text = text, .file = file, .limits = tokenizer_limits}); });
  };
  const json::Value all = parse(*tokenizer, "tokenizer.json"), named = parse(*settings, "tokenizer_config.json");
  config.set("bos_token_id", id_of(all, special_token(named, "bos_token")));
  config.set("eos_token_id", id_of(all, special_token(named, "eos_token")));
}

const char* name_of(DType dtype) { return dtype == DType::f32 ? "float32" : "bfloat16"; }

json::Value parsed(const std::string& config) {
  return json::parse({.text = config, .file = config_name, .limits = {.bytes = config_bytes, .values = std::size_t(1) << 17}});
}

json::Value new_config(const ModelShape& shape, const HuggingFaceFormat& format, const Companions& companions) {
  json::Value config = json::Object();
  config.set("architectures", json::Array{format.architecture}).set("model_type", shape.family);
  format.write(shape, config);
  set_special_tokens(companions, config);
  return config;
}

}  // namespace

const std::string* Companions::find(std::string_view name) const {
  for (const File& file : files)
    if (file.name == name) return &file.text;
  return nullptr;
}

bool is_companion(std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end() || name == "chat_template.jinja" || name == "chat_template.json";
}

Companions read_companions(const std::string& folder) {
  Companions out;
  if (exists(folder + "/" + config_name)) out.config = text_of(folder, config_name, config_bytes);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_companion(name)) out.files.push_back({name, text_of(folder, name, file_bytes)});
  }
  std::sort(out.files.begin(), out.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

void write_companions(const std::string& folder, const Companions& companions) {
  if (!companions.config.empty()) write_file(folder + "/" + config_name, companions.config);
  for (const auto& file : companions.files) write_file(folder + "/" + file.name, file.text);
}

DType weights_dtype(const Companions& companions) {
  if (companions.config.empty()) return DType::f32;
  const json::Value config = parsed(companions.config);
  for (const char* key : {"dtype", "torch_dtype"})
    if (const json::Value* type = config.find(key); type != nullptr && type->text() != nullptr)
      return *type->text() == "bfloat16" ? DType::bf16 : DType::f32;
  return DType::f32;
}

std::string dropout_of(const Companions& companions) {
  if (companions.config.empty()) return "";
  const json::Value value = parsed(companions.config);
  const json::Fields config(value, config_name);
  std::string out;
  for (const char* key : {"attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"})
    if (const double p = config.number_or(key, 0, 0, 1); p > 0) out += octet::format("{}{} = {}", out.empty() ? "" : ", ", key, p);
  return out;
}

json::Value exported_config(const ModelShape& shape, DType dtype, const Companions& companions) {
  const HuggingFaceFormat& format = model_family(shape.family).hugging_face;
  json::Value config = companions.config.empty() ? new_config(shape, format, companions) : parsed(companions.config);
  if (!companions.config.empty() && format.read(json::Fields(config, config_name)) != shape)
    throw ConfigError(
        octet::format("{}: describes another model than the {} that is exported; export without it", config_name, shape.family));
  const json::Value* architectures = config.find("architectures");
  if (architectures == nullptr || architectures->is_null()) config.set("architectures", json::Array{format.architecture});
  // transformers renamed the key: a file that has the new one only keeps it alone.
  if (config.find("dtype") != nullptr) config.set("dtype", name_of(dtype));
  if (config.find("dtype") == nullptr || config.find("torch_dtype") != nullptr) config.set("torch_dtype", name_of(dtype));
  return config;
}

}  // namespace octet::models

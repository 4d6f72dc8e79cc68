#include "octet/inspect/inspect.hpp"

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/data/foreign_tokens.hpp"
#include "octet/inspect/tensors.hpp"
#include "octet/inspect/tokens.hpp"
#include "octet/io/input_file.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/models/hugging_face.hpp"

namespace octet::inspect {
namespace {
std::string weights_text(const std::string& folder) {
  const models::ModelShape s = models::read_hugging_face_shape(folder);
  std::string out = format(
      "model      {}: {}, {} layers, width {}, {} heads of {} ({} for keys and values), hidden {}, vocabulary {}, at most {} tokens\n",
      printable(folder), s.family, s.layers, grouped(s.width), s.heads, s.head_dim, s.kv_heads, grouped(s.hidden), grouped(s.vocabulary),
      grouped(s.max_sequence));
  const io::TensorFolder tensors = io::TensorFolder::open(folder);
  std::vector<const io::SafetensorsFile*> files;
  for (const auto& file : tensors.files()) {
    files.push_back(&file);
    out += format("file       {}\n", printable(file.path()));
  }
  return out + "\n" + tensors_text(files);
}

std::string tensor_file_text(const std::string& path) {
  const auto file = with_remedy("fetch it again, or name a safetensors file", [&] { return io::SafetensorsFile::open(path); });
  std::string out = format("file       {}{}\n", printable(path), file.header().leading_blank ? ", blanks before its header" : "");
  for (const auto& [key, value] : file.metadata())
    out += format("metadata   {} = {}\n", printable(key), printable(value.size() > 200 ? format("{}...", value.substr(0, 200)) : value));
  return out + "\n" + tensors_text({&file});
}

std::string file_text(const std::string& path) {
  const io::InputFile file(path);
  char first[9] = {};  // of a safetensors file: the length of its header, and that begins
  if (file.size() >= sizeof first) file.read(0, std::as_writable_bytes(std::span(first)));
  if (path.ends_with(".tok") || std::string_view(first, 8) == "OCTETTOK") return shard_text(path);
  return data::names_foreign_tokens(path) && first[8] != '{' ? foreign_tokens_text(path) : tensor_file_text(path);
}

}  // namespace

Finding path_text(const std::string& path) {
  const auto holds = [&](const char* name) { return exists(path + "/" + name); };
  if (!is_folder(path)) return {file_text(path), ""};
  if (holds("MANIFEST.json") || holds("state.safetensors")) return {checkpoint_text(path), ""};
  if (holds("run.json")) return run_text(path);
  if (holds("dataset.toml")) return {dataset_text(path), ""};
  if (holds("config.json")) return {weights_text(path), ""};
  throw ConfigError(
      format("{}: contains no run.json, MANIFEST.json, dataset.toml or config.json; name a run, a checkpoint, a dataset, a token shard, a "
             "Hugging Face folder or a safetensors file",
             printable(path)));
}

}  // namespace octet::inspect

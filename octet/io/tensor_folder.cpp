#include "octet/io/tensor_folder.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/io/weight_index.hpp"

namespace octet::io {
namespace {
namespace fs = std::filesystem;
constexpr const char *single_name = "model.safetensors", *index_name = "model.safetensors.index.json";
constexpr std::uint64_t max_index_bytes = std::uint64_t(128) << 20;

bool stands_in(const std::string& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(fs::path(folder) / name, ignored));
}

WeightIndex read_index(const std::string& folder) {
  const InputFile file(path_within(folder, index_name), Link::refuse);
  if (file.size() > max_index_bytes) {
    throw DataError(
        format("{}: the index may have {} bytes, it has {}; fetch it again", printable(file.path()), max_index_bytes, file.size()));
  }
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return with_remedy("fetch it again", [&] { return parse_weight_index(text, printable(file.path())); });
}

[[noreturn]] void refuse_empty(const std::string& folder) {
  const bool pickle = stands_in(folder, "pytorch_model.bin") || stands_in(folder, "pytorch_model.bin.index.json");
  throw DataError(
      format("{}: must hold {} or {}, it holds neither; {}", printable(folder), single_name, index_name,
             pickle ? "pytorch_model.bin is not read because it can run code: convert it to safetensors" : "fetch one of them"));
}

}  // namespace

TensorFolder TensorFolder::open(const std::string& folder) {
  const bool single = stands_in(folder, single_name), sharded = stands_in(folder, index_name);
  if (single && sharded) {
    throw DataError(format("{}: holds both {} and {}; remove the one that is not meant", printable(folder), single_name, index_name));
  }
  if (!single && !sharded) refuse_empty(folder);
  TensorFolder out;
  out.folder_ = folder;
  WeightIndex index{{single_name}, {}};
  if (sharded) index = read_index(folder);
  for (const std::string& file : index.files)
    out.files_.push_back(with_remedy("fetch it again", [&] { return SafetensorsFile::open(path_within(folder, file), Link::refuse); }));
  out.list_names();
  for (const auto& [tensor, file] : index.tensors) {
    if (!out.files_[file].find(tensor)) {
      throw DataError(format("{}: {} lists tensor \"{}\" in '{}', which lacks it; fetch both again", printable(folder), index_name,
                             printable(tensor), printable(index.files[file])));
    }
  }
  return out;
}

void TensorFolder::list_names() {
  for (std::size_t i = 0; i < files_.size(); ++i)
    for (const TensorView& tensor : files_[i].tensors()) names_.emplace_back(tensor.name, std::uint32_t(i));
  std::sort(names_.begin(), names_.end());
  const auto twice = std::adjacent_find(names_.begin(), names_.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == names_.end()) return;
  throw DataError(format("{}: tensor \"{}\" is in two files, '{}' and '{}'; remove one", printable(folder_), printable(twice->first),
                         printable(files_[twice->second].path()), printable(files_[(twice + 1)->second].path())));
}

std::optional<TensorView> TensorFolder::find(std::string_view name) const {
  const auto at =
      std::lower_bound(names_.begin(), names_.end(), name, [](const auto& entry, std::string_view n) { return entry.first < n; });
  if (at == names_.end() || at->first != name) return {};
  return files_[at->second].find(name);
}

TensorView TensorFolder::tensor(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  const std::string near = nearest_of(name, names());
  throw DataError(format("{}: tensor \"{}\" is missing from the weights{}; fetch them again", printable(folder_), printable(name),
                         near.empty() ? "" : format(", the nearest name is \"{}\"", printable(near))));
}

std::vector<std::string_view> TensorFolder::names() const {
  std::vector<std::string_view> out;
  for (const auto& entry : names_) out.push_back(entry.first);
  return out;
}

data::Checksum checksum_of(const TensorFolder& folder) {
  std::vector<TensorView> tensors;
  for (const std::string_view name : folder.names()) tensors.push_back(folder.tensor(name));
  std::vector<data::Checksum> sums(tensors.size());
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1)
#endif
  for (std::size_t i = 0; i < tensors.size(); ++i)
    sums[i] = data::checksum_of({reinterpret_cast<const char*>(tensors[i].bytes.data()), tensors[i].bytes.size()});
  std::string listed;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& t = tensors[i];
    listed += format("{}\n{}", t.name, name(t.dtype));
    for (const std::int64_t d : t.shape) listed += format(" {}", d);
    listed += format("\n{}\n", to_text(sums[i]));
  }
  return data::checksum_of(listed);
}

}  // namespace octet::io

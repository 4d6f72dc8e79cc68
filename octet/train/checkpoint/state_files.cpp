#include "octet/train/checkpoint/state_files.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "octet/base/error.hpp"
#include "octet/tensor/state.hpp"

namespace octet::train {
namespace {

constexpr std::string_view first_file = "state", extension = ".safetensors";

// Of "name#123", not of its scales.
std::optional<std::pair<std::string, std::int64_t>> slice_of(std::string_view tensor) {
  const auto hash = tensor.rfind('#');
  if (hash == tensor.npos) return {};
  std::int64_t first = 0;
  const char* const end = tensor.data() + tensor.size();
  const auto [at, error] = std::from_chars(tensor.data() + hash + 1, end, first);
  if (error != std::errc() || at != end || first < 0) return {};
  return std::pair(std::string(tensor.substr(0, hash)), first);
}

std::vector<std::string> names_of(const Manifest& manifest) {
  std::vector<std::string> out;
  for (const Manifest::File& file : manifest.files) out.push_back(file.name);
  return out;
}

}  // namespace

std::string slice_name(std::string_view variable, std::int64_t first) { return format("{}#{}", variable, first); }

std::string state_file_name(int rank) {
  return rank == 0 ? std::string(first_file) + std::string(extension) : format("{}-{}{}", first_file, rank, extension);
}

StateFiles::StateFiles(const std::string& folder, const Manifest& manifest) : StateFiles(folder, names_of(manifest)) {}

StateFiles::StateFiles(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) files_.push_back(io::SafetensorsFile::open(folder + "/" + name, io::Link::refuse));
  for (std::size_t f = 0; f < files_.size(); ++f)
    for (const io::TensorView& t : files_[f].tensors())
      if (const auto slice = slice_of(t.name)) slices_[slice->first].emplace(slice->second, f);
}

std::optional<io::TensorView> StateFiles::find(std::string_view name) const {
  for (const io::SafetensorsFile& file : files_)
    if (auto found = file.find(name)) return found;
  return {};
}

std::size_t StateFiles::count() const {
  return std::accumulate(files_.begin(), files_.end(), std::size_t(0), [](std::size_t n, const auto& f) { return n + f.tensors().size(); });
}

std::size_t StateFiles::count(std::string_view prefix) const {
  std::size_t n = 0;
  for (const io::SafetensorsFile& file : files_)
    n += std::size_t(std::ranges::count_if(file.tensors(), [&](const io::TensorView& t) { return t.name.starts_with(prefix); }));
  return n;
}

std::optional<StateFiles::Variable> StateFiles::variable(const std::string& name) const {
  const auto add = [](Variable& v, std::int64_t first, const StoredVariable& part) {
    v.slices.push_back({first, part.codes.count(), part});
    v.tensors += part.scales ? 2 : 1, v.storage = part.storage, v.count += part.codes.count();
  };
  Variable out;
  for (const io::SafetensorsFile& file : files_)
    if (const auto whole = find_variable(file, name)) return add(out, 0, *whole), out;
  const auto slices = slices_.find(name);
  if (slices == slices_.end()) return {};
  out.whole = false;
  for (const auto& [first, file] : slices->second) {
    const auto part = find_variable(files_[file], slice_name(name, first));
    if (!part || first != out.count || (out.count > 0 && part->storage != out.storage))
      throw DataError(format("{}: the slices of {} do not follow each other; the checkpoint was damaged", printable(files_[file].path()),
                             printable(name)));
    add(out, first, *part);
  }
  return out;
}

std::vector<float> values_of(const StateFiles::Variable& variable) {
  std::vector<float> out;
  for (const StateFiles::Slice& s : variable.slices) {
    const std::vector<float> part = values_of(s.part);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace octet::train

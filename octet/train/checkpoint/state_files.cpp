#include "octet/train/checkpoint/state_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "octet/base/error.hpp"
#include "octet/tensor/state.hpp"

namespace octet::train {
namespace {

constexpr std::string_view first_file = "state", extension = ".safetensors";

constexpr std::int64_t most_values = std::int64_t(1) << 53;  // of a variable

// Of "name#123" and "name#123:8:32", not of their scales: the name, and the numbers.
std::optional<std::pair<std::string, CutPiece>> slice_of(std::string_view tensor) {
  const auto hash = tensor.rfind('#');
  if (hash == tensor.npos) return {};
  std::array<std::int64_t, 3> numbers{};
  std::size_t count = 0;
  const char *at = tensor.data() + hash, *const end = tensor.data() + tensor.size();
  while (at != end && count < numbers.size() && (*at == '#' || *at == ':')) {
    const auto [next, error] = std::from_chars(at + 1, end, numbers[count]);
    if (error != std::errc() || numbers[count] < 0 || numbers[count] > most_values) return {};
    at = next, ++count;
  }
  if (at != end || (count != 1 && count != 3) || (count == 3 && (numbers[1] == 0 || numbers[2] < numbers[1]))) return {};
  return std::pair(std::string(tensor.substr(0, hash)), CutPiece{0, numbers[0], numbers[1], numbers[2]});
}

// Whether the places of so many values are those of a variable; a damaged name may have numbers whose products are too large.
bool is_within(const CutPiece& p, std::int64_t count) {
  return p.run == 0 || double(count) / double(p.run) * double(p.stride) < double(most_values);
}

std::vector<std::string> names_of(const Manifest& manifest) {
  std::vector<std::string> out;
  for (const Manifest::File& file : manifest.files) out.push_back(file.name);
  return out;
}

}  // namespace

std::string slice_name(std::string_view variable, const CutPiece& p) {
  const bool neighbours = p.run == 0 || p.run >= p.count;
  return format("{}#{}", variable, p.first) + (neighbours ? "" : format(":{}:{}", p.run, p.stride));
}

std::string state_file_name(int rank) { return format("{}{}{}", first_file, rank == 0 ? "" : format("-{}", rank), extension); }

StateFiles::StateFiles(const std::string& folder, const Manifest& manifest) : StateFiles(folder, names_of(manifest)) {}

StateFiles::StateFiles(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) files_.push_back(io::SafetensorsFile::open(folder + "/" + name, io::Link::refuse));
  for (std::size_t f = 0; f < files_.size(); ++f)
    for (const io::TensorView& t : files_[f].tensors())
      if (const auto slice = slice_of(t.name)) slices_[slice->first].push_back({f, std::string(t.name), slice->second});
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
  const auto add = [](Variable& v, CutPiece place, const StoredVariable& part) {
    place.count = part.codes.count();
    if (place.run == 0) place.run = place.stride = std::max<std::int64_t>(place.count, 1);
    each_run(std::vector{place}, [&](std::int64_t begin, std::int64_t first, std::int64_t n) {
      v.runs.push_back({first, n, begin, v.slices.size()});
    });
    v.slices.push_back({place, part});
    v.tensors += part.scales ? 2 : 1, v.storage = part.storage, v.count += place.count;
  };
  Variable out;
  for (const io::SafetensorsFile& file : files_)
    if (const auto whole = find_variable(file, name)) return add(out, {}, *whole), out;
  const auto slices = slices_.find(name);
  if (slices == slices_.end()) return {};
  out.whole = false;
  const auto refuse = [&](const SliceLocation& at) {
    throw DataError(
        format("{}: the slices of {} do not cover it; the checkpoint was damaged", printable(files_[at.file].path()), printable(name)));
  };
  for (const SliceLocation& at : slices->second) {
    const auto part = find_variable(files_[at.file], at.name);
    if (!part || (out.count > 0 && part->storage != out.storage) || !is_within(at.place, part->codes.count())) refuse(at);
    add(out, at.place, *part);
  }
  std::ranges::sort(out.runs, {}, &Run::first);
  std::int64_t next = 0;
  for (const Run& r : out.runs) {
    if (r.first != next) refuse(slices->second.front());
    next += r.count;
  }
  return out;
}

std::vector<float> values_of(const StateFiles::Variable& variable) {
  std::vector<float> out(std::size_t(variable.count));
  for (const StateFiles::Slice& s : variable.slices) {
    const std::vector<float> part = values_of(s.part);
    each_run(std::vector{s.place},
             [&](std::int64_t begin, std::int64_t first, std::int64_t n) { std::copy_n(part.begin() + begin, n, out.begin() + first); });
  }
  return out;
}

}  // namespace octet::train

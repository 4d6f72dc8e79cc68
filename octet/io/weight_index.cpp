#include "octet/io/weight_index.hpp"

#include <algorithm>
#include <map>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/json/text.hpp"

namespace octet::io {
namespace {
constexpr std::size_t max_files = 4096, max_tensors = std::size_t(1) << 20;
// The caller limits the bytes; only names are stored.
constexpr json::Limits json_limits{.bytes = json::Limits::none, .values = json::Limits::none, .depth = 8};

std::string shortened(std::string_view s) { return printable(s.size() > 200 ? std::string(s.substr(0, 200)) + "..." : std::string(s)); }

/// A name that cannot lead out of the folder, nor to a hidden or temporary file.
bool is_plain(std::string_view name) {
  const auto bad = [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return name.ends_with(".safetensors") && name.size() <= 255 && name[0] != '.' && std::none_of(name.begin(), name.end(), bad);
}

/// Walks { "weight_map": { tensor: file }, anything else }.
class IndexReader : public json::Events {
 public:
  explicit IndexReader(const std::string& file) : file_(file) {}
  WeightIndex result();

  void on_null() override { scalar("null"); }
  void on_bool(bool x) override { scalar(to_text(x)); }
  void on_negative(std::int64_t x) override { scalar(to_text(x)); }
  void on_integer(std::uint64_t x) override { scalar(to_text(x)); }
  void on_real(double x) override { scalar(json::real_text(x)); }
  void on_string(std::string& x) override;
  void on_key(std::string& key) override;
  void on_begin(char bracket) override;
  void on_end(char bracket) override;

 private:
  void scalar(std::string_view came) const;
  bool in_map() const { return mapping_ && depth_ == 2; }

  const std::string& file_;
  unsigned depth_ = 0;
  bool mapping_ = false, seen_ = false;
  std::string key_;
  std::map<std::string, std::uint32_t> files_;
  std::vector<std::pair<std::string, std::uint32_t>> tensors_;
};

void IndexReader::scalar(std::string_view came) const {
  if (in_map()) throw DataError(format("{}: weight_map \"{}\" must name a file, got {}", file_, shortened(key_), came));
  if (mapping_ && depth_ == 1) throw DataError(format("{}: weight_map must be an object of file names, got {}", file_, came));
}

void IndexReader::on_string(std::string& x) {
  if (!in_map()) return scalar(format("the string \"{}\"", shortened(x)));
  if (!is_plain(x)) {
    throw DataError(
        format("{}: weight_map \"{}\" must name a .safetensors file of this folder (no path, no control characters), got \"{}\"", file_,
               shortened(key_), shortened(x)));
  }
  const auto [at, is_new] = files_.try_emplace(std::move(x), std::uint32_t(files_.size()));
  if (files_.size() > max_files) throw DataError(format("{}: weight_map may name {} files, it names more", file_, max_files));
  if (tensors_.size() == max_tensors) throw DataError(format("{}: weight_map may name {} tensors, it names more", file_, max_tensors));
  tensors_.emplace_back(std::move(key_), at->second);
}

void IndexReader::on_key(std::string& key) {
  key_ = std::move(key);
  if (depth_ != 1) return;
  mapping_ = key_ == "weight_map";
  if (mapping_ && seen_) throw DataError(format("{}: weight_map occurs twice", file_));
  seen_ = seen_ || mapping_;
}

void IndexReader::on_begin(char bracket) {
  if (mapping_ && (depth_ == 2 || (depth_ == 1 && bracket == '['))) scalar(bracket == '{' ? "an object" : "an array");
  ++depth_;
}

void IndexReader::on_end(char) { --depth_; }

WeightIndex IndexReader::result() {
  if (!seen_) throw DataError(format("{}: weight_map is missing; this is not an index of safetensors files", file_));
  WeightIndex index;
  std::vector<std::uint32_t> place(files_.size());
  for (const auto& [name, number] : files_) {
    place[number] = std::uint32_t(index.files.size());
    index.files.push_back(name);
  }
  index.tensors = std::move(tensors_);
  for (auto& [tensor, number] : index.tensors) number = place[number];
  std::sort(index.tensors.begin(), index.tensors.end());
  const auto twice =
      std::adjacent_find(index.tensors.begin(), index.tensors.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != index.tensors.end()) throw DataError(format("{}: weight_map names tensor \"{}\" twice", file_, shortened(twice->first)));
  return index;
}

}  // namespace

WeightIndex parse_weight_index(std::string_view text, const std::string& file) {
  IndexReader reader(file);
  json::read({.text = text, .file = file, .limits = json_limits}, reader);
  return reader.result();
}

std::string weight_index_json(const WeightIndex& index, std::uint64_t total_bytes) {
  std::string out = format("{\n  \"metadata\": {\n    \"total_size\": {}\n  },\n  \"weight_map\": {", total_bytes);
  for (const auto& [tensor, file] : index.tensors) {
    out += out.back() == '{' ? "\n    " : ",\n    ";
    out.append(json::quoted(tensor)).append(": ").append(json::quoted(index.files[file]));
  }
  return out += "\n  }\n}\n";
}

}  // namespace octet::io

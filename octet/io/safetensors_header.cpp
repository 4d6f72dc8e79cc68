#include "octet/io/safetensors_header.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/json/text.hpp"
#include "octet/io/safetensors_entries.hpp"

namespace octet::io {
namespace {
constexpr std::string_view metadata_key = "__metadata__";

/// Rules 1 to 3: N, which is believed only after this.
std::uint64_t header_length(const InputFile& file, const SafetensorsLimits& limits) {
  const std::string name = printable(file.path());
  if (file.size() < 8) {
    throw DataError(
        format("{}: a safetensors file begins with 8 bytes that give the header's length, this file has {} bytes", name, file.size()));
  }
  unsigned char raw[8];
  file.read(0, std::as_writable_bytes(std::span(raw)));
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | raw[i];
  if (length > limits.header_bytes) {
    const bool pointer = std::string_view(reinterpret_cast<const char*>(raw), 8) == "version ";
    throw DataError(format("{}: bytes 0 to 7 must give a header length of at most {} bytes, they give {}; {}", name, limits.header_bytes,
                           length, pointer ? "this is a Git LFS pointer" : "this is not a safetensors file, or it is damaged"));
  }
  if (length > file.size() - 8) {
    throw DataError(format("{}: the header must end within the file, it has {} bytes and the file {}; the file was cut off", name, length,
                           file.size()));
  }
  return length;
}

/// Rules 9 and 13 to 15 for one tensor; `where` begins the message.
void check_extent(const TensorEntry& tensor, const std::string& where) {
  if (tensor.end < tensor.begin) {
    throw DataError(format("{}data_offsets must not fall, they are [{}, {}]", where, tensor.begin, tensor.end));
  }
  const auto bits = stored_bits(tensor.spec.dtype, tensor.spec.shape);
  if (!bits) throw DataError(where + "its shape has 2^64 bits or more");
  if (*bits % 8 != 0) throw DataError(format("{}its shape must give whole bytes, it gives {} bits of {}", where, *bits, tensor.spec.dtype));
  if (tensor.end - tensor.begin != *bits / 8) {
    throw DataError(format("{}its shape needs {} bytes, data_offsets [{}, {}] give {}", where, *bits / 8, tensor.begin, tensor.end,
                           tensor.end - tensor.begin));
  }
}

std::string tensor_place(const std::string& file, const TensorEntry& tensor) {
  return format("{}: tensor \"{}\": ", file, printable(tensor.spec.name));
}

/// Rules 14 and 16: sorted by offset, the tensors cover [0, data_bytes) without hole or overlap.
void check_cover(std::vector<TensorEntry>& tensors, std::uint64_t data_bytes, const std::string& file) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  std::uint64_t expected = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != expected) {
      throw DataError(format("{}its data must begin at byte {} of the data section, where the one before ends, it begins at {}",
                             tensor_place(file, tensor), expected, tensor.begin));
    }
    expected = tensor.end;
  }
  if (expected != data_bytes) {
    throw DataError(format("{}: the tensors need {} bytes of data, the file has {}; {}", file, expected, data_bytes,
                           expected > data_bytes ? "it was cut off" : "bytes that belong to no tensor are refused"));
  }
}

void check_names(const std::vector<TensorEntry>& tensors, const std::string& file) {
  std::vector<std::string_view> names;
  for (const TensorEntry& tensor : tensors) names.push_back(tensor.spec.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw DataError(format("{}: tensor \"{}\" occurs twice in the header", file, printable(*twice)));
}

}  // namespace

SafetensorsHeader read_header(const InputFile& file, const SafetensorsLimits& limits) {
  const std::uint64_t length = header_length(file, limits);
  std::string text(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(text)));

  const std::string name = printable(file.path());
  SafetensorsHeader header;
  parse_entries(text, name, limits, header);
  header.data_offset = 8 + length;
  header.leading_blank = text[0] != '{';
  text = {};
  for (const TensorEntry& tensor : header.tensors) check_extent(tensor, tensor_place(name, tensor));
  check_names(header.tensors, name);
  check_cover(header.tensors, file.size() - header.data_offset, name);
  return header;
}

std::vector<TensorEntry> laid_out(std::vector<TensorSpec> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSpec& a, const TensorSpec& b) { return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name; });
  std::vector<TensorEntry> out;
  std::vector<std::string_view> names;
  std::uint64_t offset = 0;
  for (TensorSpec& spec : tensors) {
    check(spec.name != metadata_key, "a tensor cannot be called {}", metadata_key);
    check(spec.shape.size() <= max_rank, "tensor {}: a rank of at most {} can be stored, got {}", spec.name, max_rank, spec.shape.size());
    for (const std::int64_t n : spec.shape) {
      check(n >= 0 && std::uint64_t(n) <= max_dimension, "tensor {}: a dimension must be from 0 to 2^48, got {}", spec.name, n);
    }
    const auto bits = stored_bits(spec.dtype, spec.shape);
    check(bits && *bits % 8 == 0 && *bits / 8 <= ~offset, "tensor {}: its size must be whole bytes and below 2^64", spec.name);
    out.push_back({std::move(spec), offset, offset + *bits / 8});
    offset += *bits / 8;
  }
  for (const TensorEntry& tensor : out) names.push_back(tensor.spec.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  check(twice == names.end(), "tensor {} is given twice", twice == names.end() ? "" : *twice);
  return out;
}

std::string header_bytes(const std::vector<TensorEntry>& tensors, const Metadata& metadata) {
  std::string text(8, '\0');
  text += '{';
  const auto comma = [&text] { text += text.back() == '{' ? "" : ","; };
  if (!metadata.empty()) {
    text.append(json::quoted(metadata_key)).append(":{");
    for (const auto& [key, value] : metadata) comma(), text.append(json::quoted(key)).append(":").append(json::quoted(value));
    text += '}';
  }
  for (const TensorEntry& tensor : tensors) {
    std::string shape;
    for (const std::int64_t n : tensor.spec.shape) shape.append(shape.empty() ? "" : ",").append(to_text(n));
    comma();
    text += json::quoted(tensor.spec.name);
    text += format(":{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}", tensor.spec.dtype, shape, tensor.begin, tensor.end);
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size() - 8;
  check(length <= SafetensorsLimits{}.header_bytes, "a safetensors header can have {} bytes, this one has {}",
        SafetensorsLimits{}.header_bytes, length);
  for (int i = 0; i < 8; ++i) text[std::size_t(i)] = char(length >> (8 * i));
  return text;
}

}  // namespace octet::io

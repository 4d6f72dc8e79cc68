#include "octet/io/gguf_writer.hpp"

#include <algorithm>
#include <cstring>

#include "octet/base/check.hpp"

namespace octet::io {
namespace {

constexpr std::uint64_t alignment = 32;
enum Kind : std::uint32_t { kind_u32 = 4, kind_i32 = 5, kind_f32 = 6, kind_bool = 7, kind_text = 8, kind_list = 9 };

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_text(std::string& out, std::string_view text) { put(out, std::uint64_t(text.size())), out.append(text); }

std::uint64_t aligned(std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; }

std::uint64_t bytes_of(const GgufTensor& t) {
  std::uint64_t n = 1;
  for (const std::int64_t d : t.shape) n *= std::uint64_t(d);
  check(t.type != GgufType::q8_0 || (!t.shape.empty() && t.shape.back() % gguf_block == 0), "{}: rows are not whole blocks of {}", t.name,
        gguf_block);
  if (t.type == GgufType::q8_0) return n / std::uint64_t(gguf_block) * (2 + std::uint64_t(gguf_block));
  return n * (t.type == GgufType::f32 ? 4 : 2);
}

}  // namespace

void GgufKeys::begin(std::string_view key, std::uint32_t type) { put_text(bytes_, key), put(bytes_, type), ++count_; }
void GgufKeys::begin_list(std::string_view key, std::uint32_t type, std::size_t size) {
  begin(key, kind_list), put(bytes_, type), put(bytes_, std::uint64_t(size));
}
void GgufKeys::add(std::string_view key, std::uint32_t value) { begin(key, kind_u32), put(bytes_, value); }
void GgufKeys::add(std::string_view key, float value) { begin(key, kind_f32), put(bytes_, value); }
void GgufKeys::add(std::string_view key, bool value) { begin(key, kind_bool), put(bytes_, char(value)); }
void GgufKeys::add(std::string_view key, std::string_view value) { begin(key, kind_text), put_text(bytes_, value); }
void GgufKeys::add(std::string_view key, const std::vector<std::string>& values) {
  begin_list(key, kind_text, values.size());
  for (const std::string& text : values) put_text(bytes_, text);
}
void GgufKeys::add(std::string_view key, const std::vector<std::int32_t>& values) {
  begin_list(key, kind_i32, values.size());
  for (const std::int32_t x : values) put(bytes_, x);
}
void GgufKeys::add(std::string_view key, const std::vector<float>& values) {
  begin_list(key, kind_f32, values.size());
  for (const float x : values) put(bytes_, x);
}

GgufWriter::Layout GgufWriter::layout_of(const GgufKeys& keys, const std::vector<GgufTensor>& tensors) {
  Layout out;
  out.header = "GGUF";
  put(out.header, std::uint32_t(3)), put(out.header, std::uint64_t(tensors.size())), put(out.header, keys.count());
  out.header += keys.bytes();
  std::uint64_t at = 0;
  for (const GgufTensor& t : tensors) {
    check(std::ranges::find(out.places, t.name, &TensorSpan::name) == out.places.end(), "tensor {} is given twice", t.name);
    put_text(out.header, t.name), put(out.header, std::uint32_t(t.shape.size()));
    for (std::size_t i = t.shape.size(); i-- > 0;) put(out.header, std::uint64_t(t.shape[i]));  // the innermost one first
    put(out.header, std::uint32_t(t.type)), put(out.header, at);
    out.places.push_back({t.name, at, bytes_of(t)});
    at += aligned(bytes_of(t));
  }
  out.header.resize(aligned(out.header.size()), '\0');
  for (TensorSpan& p : out.places) p.begin += out.header.size();
  out.size = out.header.size() + at;
  return out;
}

GgufWriter::GgufWriter(const std::string& path, const GgufKeys& keys, std::vector<GgufTensor> tensors)
    : GgufWriter(path, layout_of(keys, tensors)) {}

GgufWriter::GgufWriter(const std::string& path, Layout&& layout) : places_(std::move(layout.places)), file_(path, layout.size) {
  file_.write(0, std::as_bytes(std::span(layout.header)));
}

void GgufWriter::append(std::string_view name, std::span<const std::byte> bytes) {
  const auto at = std::ranges::find(places_, name, &TensorSpan::name);
  check(at != places_.end(), "{}: tensor {} was not announced", file_.path(), name);
  check(bytes.size() <= at->size - at->done, "{}: tensor {} has {} bytes, got {} after {}", file_.path(), name, at->size, bytes.size(),
        at->done);
  file_.write(at->begin + at->done, bytes);
  at->done += bytes.size();
}

void GgufWriter::commit() {
  for (const TensorSpan& p : places_)
    check(p.done == p.size, "{}: tensor {} has {} bytes, only {} were written", file_.path(), p.name, p.size, p.done);
  file_.publish();
}

}  // namespace octet::io

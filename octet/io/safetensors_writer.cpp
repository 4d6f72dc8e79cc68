#include "octet/io/safetensors_writer.hpp"

#include <algorithm>

#include "octet/base/check.hpp"

namespace octet::io {

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors, const Metadata& metadata)
    : SafetensorsWriter(path, [&] {
        Layout layout{laid_out(std::move(tensors)), {}};
        layout.header = header_bytes(layout.tensors, metadata);
        return layout;
      }()) {}

SafetensorsWriter::SafetensorsWriter(const std::string& path, Layout&& layout)
    : tensors_(std::move(layout.tensors)),
      appended_(tensors_.size()),
      data_offset_(layout.header.size()),
      missing_(tensors_.empty() ? 0 : tensors_.back().end),
      file_(path, data_offset_ + missing_) {
  file_.write(0, std::as_bytes(std::span(layout.header)));
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorEntry& a, const TensorEntry& b) { return a.spec.name < b.spec.name; });
}

void SafetensorsWriter::append(std::string_view name, std::span<const std::byte> bytes) {
  const auto at =
      std::lower_bound(tensors_.begin(), tensors_.end(), name, [](const TensorEntry& t, std::string_view n) { return t.spec.name < n; });
  check(at != tensors_.end() && at->spec.name == name, "{}: tensor {} was not announced", file_.path(), name);
  std::uint64_t& done = appended_[std::size_t(at - tensors_.begin())];
  const std::uint64_t size = at->end - at->begin;
  check(bytes.size() <= size - done, "{}: tensor {} has {} bytes, got {} after {}", file_.path(), name, size, bytes.size(), done);
  file_.write(data_offset_ + at->begin + done, bytes);
  done += bytes.size(), missing_ -= bytes.size();
}

void SafetensorsWriter::finish() {
  for (std::size_t i = 0; i < tensors_.size() && !complete(); ++i) {
    const std::uint64_t size = tensors_[i].end - tensors_[i].begin;
    check(appended_[i] == size, "{}: tensor {} has {} bytes, only {} were written", file_.path(), tensors_[i].spec.name, size,
          appended_[i]);
  }
  file_.sync();
}

void SafetensorsWriter::commit() {
  finish();
  file_.publish();
}

}  // namespace octet::io

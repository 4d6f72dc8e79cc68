#include "octet/io/tensor_folder_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"

namespace octet::io {
namespace {
constexpr const char *single_name = "model.safetensors", *index_name = "model.safetensors.index.json";

std::string shard_name(std::size_t i, std::size_t n) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, n);
  return n == 1 ? single_name : name;
}

}  // namespace

TensorFolderWriter::TensorFolderWriter(std::string folder, std::vector<TensorSpec> tensors, std::uint64_t max_shard_bytes,
                                       Metadata metadata)
    : folder_(std::move(folder)), metadata_(std::move(metadata)) {
  if (const int reason = make_folders(folder_)) refuse_file("make the folder", folder_, reason);
  distribute(std::move(tensors), max_shard_bytes);
}

void TensorFolderWriter::distribute(std::vector<TensorSpec> tensors, std::uint64_t max_shard_bytes) {
  laid_out(tensors);  // its checks, over all shards together
  shards_.emplace_back();
  for (TensorSpec& spec : tensors) {
    const std::uint64_t bytes = *stored_bits(spec.dtype, spec.shape) / 8;
    if (!shards_.back().tensors.empty() && bytes > max_shard_bytes - std::min(max_shard_bytes, shards_.back().bytes))
      shards_.emplace_back();
    index_.tensors.emplace_back(spec.name, std::uint32_t(shards_.size() - 1));
    shards_.back().bytes += bytes;
    total_bytes_ += bytes;
    shards_.back().tensors.push_back(std::move(spec));
  }
  check(shards_.size() <= 4096, "{}: the weights would need {} shards, at most 4096 can be read; allow larger ones", folder_,
        shards_.size());
  for (std::size_t i = 0; i < shards_.size(); ++i) index_.files.push_back(shard_name(i, shards_.size()));
  std::sort(index_.tensors.begin(), index_.tensors.end());
}

SafetensorsWriter& TensorFolderWriter::opened(std::uint32_t i) {
  Shard& shard = shards_[i];
  if (!shard.writer) shard.writer.emplace(folder_ + "/" + index_.files[i], std::move(shard.tensors), metadata_);
  return *shard.writer;
}

void TensorFolderWriter::append(std::string_view name, std::span<const std::byte> bytes) {
  const auto at =
      std::lower_bound(index_.tensors.begin(), index_.tensors.end(), name, [](const auto& t, std::string_view n) { return t.first < n; });
  check(at != index_.tensors.end() && at->first == name, "{}: tensor {} was not announced", folder_, name);
  SafetensorsWriter& writer = opened(at->second);
  writer.append(name, bytes);
  if (writer.complete()) writer.finish();
}

void TensorFolderWriter::commit() {
  for (std::uint32_t i = 0; i < shards_.size(); ++i) opened(i).finish();
  remove_stale();
  for (std::uint32_t i = 0; i < shards_.size(); ++i) opened(i).commit();
  if (shards_.size() > 1) write_file(folder_ + "/" + index_name, weight_index_json(index_, total_bytes_));
}

/// Removes the old index or file if the new ones would not replace it atomically, so that a mixture cannot be read.
void TensorFolderWriter::remove_stale() const {
  for (const char* name : {index_name, single_name}) {
    const std::string path = folder_ + "/" + name;
    if (name == single_name && shards_.size() == 1) continue;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) refuse_file("remove", path, errno);
  }
  sync_folder_of(folder_ + "/" + index_name);
}

}  // namespace octet::io

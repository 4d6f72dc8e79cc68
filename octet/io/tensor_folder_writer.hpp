#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/io/safetensors_writer.hpp"
#include "octet/io/weight_index.hpp"

namespace octet::io {

/// Writes the weights of a Hugging Face folder, tensor by tensor: model.safetensors, or model-00001-of-0000N.safetensors and their
/// index when one file would exceed `max_shard_bytes`. Tensors go to shards in the order given; one larger than the limit is a shard alone.
/// No file gets its name before commit(). A crash within commit() leaves the old weights, the new weights, or a folder that is refused
/// because its index is missing; never a mixture. Other files of the folder remain.
class TensorFolderWriter {
 public:
  static constexpr std::uint64_t usual_shard_bytes = 5'000'000'000;  // as transformers

  /// Creates a missing folder. `metadata` is written to every shard; transformers requires {"format", "pt"}.
  /// ContractError as laid_out(), or when more than 4,096 shards would be needed; IoError.
  TensorFolderWriter(std::string folder, std::vector<TensorSpec> tensors, std::uint64_t max_shard_bytes = usual_shard_bytes,
                     Metadata metadata = {{"format", "pt"}});

  /// The next bytes of a tensor, all at once or in parts; cheapest shard by shard, in the order given to the constructor.
  void append(std::string_view name, std::span<const std::byte> bytes);
  /// ContractError names a tensor that lacks bytes; IoError.
  void commit();

 private:
  struct Shard {
    std::vector<TensorSpec> tensors;  // until the writer is open
    std::uint64_t bytes = 0;
    std::optional<SafetensorsWriter> writer;
  };
  void distribute(std::vector<TensorSpec> tensors, std::uint64_t max_shard_bytes);
  SafetensorsWriter& opened(std::uint32_t shard);
  void remove_stale() const;

  std::string folder_;
  Metadata metadata_;
  std::vector<Shard> shards_;
  WeightIndex index_;  // files[i] is the name of shards_[i]
  std::uint64_t total_bytes_ = 0;
};

}  // namespace octet::io

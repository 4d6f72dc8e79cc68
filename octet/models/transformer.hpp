#pragma once

#include <functional>
#include <vector>

#include "octet/models/model.hpp"
#include "octet/models/mtp_layer.hpp"
#include "octet/models/token_embedding.hpp"
#include "octet/nn/block.hpp"
#include "octet/nn/multiplier.hpp"
#include "octet/nn/partition.hpp"
#include "octet/nn/residual.hpp"

namespace octet::models {

/// Embedding, blocks, final norm, head: the skeleton that the families share. Layers that predict further tokens read the head's input, in
/// training alone: losses of evaluations and logits are those of the head.
template <class Block, class Norm>
class Transformer final : public Model {
 public:
  /// Of a block.
  using BlockConfig = std::function<typename Block::Config(std::int64_t layer)>;

  /// norm_offset: of the final norm. learned_positions: rows of a position table, 0 for none. The options select the parts that a block
  /// recomputes.
  Transformer(const ModelShape&, const BlockConfig&, float norm_offset, std::int64_t learned_positions, const ModelOptions&,
              scaling::Precision&);

  const ModelShape& shape() const override { return shape_; }
  bool masks_documents() const override { return true; }
  bool opens_blocks() const override { return true; }
  void allocate(Stream&, std::int64_t sequence) override;
  bool has_chunks() const override { return true; }
  Tensor boundary(Stream&, const TokenBatch&, Region) const override;
  Tensor choices(Stream& stream, Region region) const override { return routers_.joint_choices(stream, region); }
  Parameter* shared_by_ends() override { return shape_.tied || shape_.mtp_depth > 0 ? &embedding_.table() : nullptr; }
  void loss(Stream&, const TokenBatch&, const scaling::Pass&, const nn::LossSums&, const StageBoundary&) override;
  void forward(Stream&, const TokenBatch&, const scaling::Pass&, const nn::LossSums&, const nn::LossFactor&, const StageBoundary&) override;
  void backward(Stream&, const TokenBatch&, const scaling::Pass&, const Tensor& d) override;
  void logits(Stream&, const TokenBatch&, const scaling::Pass&, std::int64_t last, const Tensor& logits, const StageBoundary&) override;
  std::vector<std::size_t> saved_bytes() const override;
  void visit(nn::Visitor&) override;

 private:
  using Ahead = MtpLayer<Block, Norm>;
  struct Saved {
    ModelChunk chunk;
    nn::Routers::MicroBatch routing;
    std::vector<typename Block::Saved> blocks;
    std::vector<Arena::Mark> ends;   // end of each block's saved activations in the pass's region
    std::vector<std::size_t> bytes;  // of each block's
    typename Norm::Input norm;
    Tensor dn;  // gradient of the final norm's output
    std::vector<typename Ahead::Saved> ahead;
  };

  bool embeds(const ModelChunk& p) const { return p.first == 0; }
  bool has_head(const ModelChunk& p) const { return p.end == int(shape_.layers); }
  // Passes of the gradient of embedding besides the head's, which is 0: backward of the chunk with the head, and of the one that embeds.
  static constexpr int ahead_pass = 1, embedding_pass = 2;
  Block& block(int number) { return *blocks_[std::size_t(number)]; }
  ModelChunk chunk_of(const StageBoundary&) const;
  Saved& saved_in(Region);
  void declare_uses();
  bool sums_wait(const Stream&, const Tensor& x) const;
  typename Norm::Input run_blocks(Stream&, const TokenBatch&, const StageBoundary&, const scaling::Pass&);
  typename Norm::Input last_rows(Stream&, const TokenBatch&, typename Norm::Input& x, std::int64_t last);
  void predict_ahead(Stream&, const TokenBatch&, const Tensor& n, const Tensor& first_keys, const scaling::Pass&, const nn::LossSums&,
                     const nn::LossFactor&, Saved&);
  void backward_ahead(Stream&, const TokenBatch&, const Tensor& first_keys, const scaling::Pass&, const Saved&);
  Tensor first_keys(Stream&, const TokenBatch&) const;
  nn::BlockContext context(const TokenBatch&, const Tensor& first_keys, const nn::Routers::MicroBatch&, int block) const;

  Norm::Input own_rows(Stream&, const TokenBatch&, Region) const;

  nn::Partition& partition_;
  nn::RowExchange& sequences_;
  ModelShape shape_;
  std::vector<ModelChunk> chunks_;  // the memory of other blocks is never bound
  TokenEmbedding embedding_;        // the last chunk has a copy if it is tied, or if layers of further tokens read it
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Ahead>> ahead_;  // by depth
  Norm norm_;
  nn::LanguageHead head_;
  nn::Multiplier of_logits_;
  float ahead_factor_;  // of the loss of each depth
  nn::ResidualQuantizer residual_;
  DType activations_;
  ops::RopeTable rope_, window_rope_;

  std::vector<Saved> saved_;  // by the slot of the pass's region
};

extern template class Transformer<nn::GatedBlock, nn::RmsNorm>;
extern template class Transformer<nn::UnnormedBlock, nn::RmsNorm>;
extern template class Transformer<nn::GeluBlock, nn::LayerNorm>;

}  // namespace octet::models

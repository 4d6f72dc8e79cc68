#pragma once

#include <memory>

#include "octet/models/config.hpp"
#include "octet/nn/block_weights.hpp"
#include "octet/nn/head.hpp"
#include "octet/nn/expert_exchange.hpp"
#include "octet/nn/key_cache.hpp"
#include "octet/nn/partition.hpp"
#include "octet/nn/recompute.hpp"
#include "octet/nn/routers.hpp"

namespace octet::models {

/// For each place of a micro-batch a token further on, and the one behind that: i32 [T] each, targets -1 where none counts.
struct TokensAhead {
  Tensor tokens, targets;
};

/// Tokens of one micro-batch: i32 [T], sequences of `sequence` tokens one after the other, or so many of each sequence with a part.
struct TokenBatch {
  Tensor tokens, targets;  // targets: the next token of each place, -1 where none counts
  std::int64_t sequence = 0;
  Tensor document_starts = {};            // ops::check_document_starts; empty: the model reads over the borders of documents
  SequencePart part = {};                 // of each sequence that is here; others of ModelOptions::sequences have the rest
  nn::KeyCache* cache = &nn::no_cache();  // of logits(): it knows the places of tokens, and the keys before them
  Tensor pairs = {}, references = {};     // of nn::Targets, for an objective of pairs
  std::vector<TokensAhead> ahead = {};    // of forward() in the chunk with the head: of depth 1 to ModelShape::mtp_depth

  nn::Targets for_objective() const { return {targets, pairs, references}; }
};

/// Consecutive blocks of a model, first to end - 1. The chunk with the first block also embeds the tokens, the one with the last block has
/// the final norm and the head. A rank has parameters of its chunks alone, and the precision plan with the quantizers' tables of the whole
/// model.
struct ModelChunk {
  int first = 0, end = 0;
};

/// The chunk that a forward computes, and its borders: tensors [T, D] of activations' type.
struct StageBoundary {
  int number = 0;   // of ModelOptions::chunks
  Tensor in = {};   // empty where the chunk embeds; after a forward that saves, it must live until backward
  Tensor out = {};  // empty where the chunk has the head
  /// Memory of Model::choices(): with the counts of blocks before the chunk on entry of a forward, and of its own on return. Backward reads
  /// there those of all blocks.
  Tensor choices = {};
};

/// The interface of a language model for the trainer. Storage of parameters is bound by nn::Parameters, then allocate() is called once.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelShape& shape() const = 0;
  /// Whether the model uses TokenBatch::document_starts. Without it, data.document_mask is refused.
  virtual bool masks_documents() const { return false; }

  /// Tables for sequences up to `sequence` tokens, in the run's region.
  virtual void allocate(Stream&, std::int64_t sequence) = 0;

  /// Adds the loss of a batch to `sums`. Saves no activations; changes nothing unless the pass records. A model is computed chunk by chunk,
  /// and without StageBoundary as one chunk. Sums are used by the chunk with the head alone.
  virtual void loss(Stream&, const TokenBatch&, const scaling::Pass&, const nn::LossSums& sums, const StageBoundary& = {}) = 0;
  /// The same, and saves the activations for backward() in the pass's region; gradients are those of factor * loss. Forwards with different
  /// slots of the region may be followed by their backwards in any order.
  virtual void forward(Stream&, const TokenBatch&, const scaling::Pass&, const nn::LossSums& sums, const nn::LossFactor& factor,
                       const StageBoundary& = {}) = 0;
  /// Adds to every parameter's gradient. Called once after each forward(), with its pass; saved activations are freed block by block.
  /// d [T, D]: the gradient of the chunk's output on entry, of its input on return; empty if the chunk is the whole model. Pass::later gets
  /// the products of blocks' weights. Until it is run, these gradients are not complete; the pass's region is not read any more. The head's
  /// product is part of forward().
  virtual void backward(Stream&, const TokenBatch&, const scaling::Pass&, const Tensor& d = {}) = 0;
  /// Logits [sequences * last, padded vocabulary], of activations' type, for the last `last` tokens of every sequence. The chunk with the
  /// head fills them, others their output.
  virtual void logits(Stream&, const TokenBatch&, const scaling::Pass&, std::int64_t last, const Tensor& logits,
                      const StageBoundary& = {}) = 0;
  /// For the last token of every sequence.
  void last_logits(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, const Tensor& out) {
    logits(stream, batch, pass, 1, out);
  }

  /// Bytes that each block saved for backward in the last forward(); empty if the model does not count them.
  virtual std::vector<std::size_t> saved_bytes() const { return {}; }

  virtual void visit(nn::Visitor&) = 0;

  /// Whether ModelOptions::chunks are known. Otherwise the model is one chunk, and ignores StageBoundary.
  virtual bool has_chunks() const { return false; }
  /// Memory for a tensor of StageBoundary: [T, D], or the own rows of a member of a partition.
  virtual Tensor boundary(Stream&, const TokenBatch&, Region) const {
    check(false, "model: the family {} cannot be cut into chunks", shape().family);
    return {};
  }
  /// Memory for the choices of routers that all chunks count together; empty if there are none.
  virtual Tensor choices(Stream&, Region) const { return {}; }
  /// The parameter that the first and the last chunk both have: an embedding that is tied, or that further tokens read. Null if there is
  /// none.
  virtual Parameter* shared_by_ends() { return nullptr; }

  /// Of the model's experts; without any it does nothing.
  nn::Routers& routers() { return routers_; }
  const nn::Routers& routers() const { return routers_; }

  /// Whether open() is called before each use of a block. Without it, weights of blocks cannot be divided.
  virtual bool opens_blocks() const { return false; }
  /// Told before a block is used; it outlives the model's use. Null: all blocks are in memory.
  void set_block_weights(nn::BlockWeights* weights) { block_weights_ = weights; }
  void open(Stream& stream, int block, nn::BlockWeights::Needed needed = nn::BlockWeights::Needed::all) {
    if (block_weights_ != nullptr && block >= 0) block_weights_->open(stream, block, needed);
  }

  /// Quantizes every weight that changed; with a pass that records, right after each optimizer step.
  void refresh(Stream&, const scaling::Pass&);

 protected:
  nn::Routers routers_;

 private:
  nn::BlockWeights* block_weights_ = nullptr;
};

/// Options of a model besides its shape.
struct ModelOptions {
  nn::Recompute recompute;              // the parts that blocks' backward recomputes
  std::int64_t recompute_layers = 0;    // number of first blocks that recompute; 0: all
  std::vector<ModelChunk> chunks = {};  // of the model that are here, in ascending order; empty: all of it, as one chunk
  double mtp_loss = 0.3;                // factor of the loss of further tokens, the mean over depths
  bool quantize_residual = false;       // round the residual stream like a layer's input: an experiment for evaluation
  // Whose member has a part of the model, for a family that divides; it outlives the model.
  nn::Partition* partition = &nn::whole_partition();
  // Among members that have parts of sequences, for a rotary family; it outlives the model.
  nn::RowExchange* sequences = &nn::whole_partition();
  // Among members that divide the experts of each layer; it outlives the model.
  nn::ExpertExchange* experts = &nn::all_experts();
  // The loss; it outlives the model.
  const nn::Objective* objective = &nn::sum_of_tokens();
};

}  // namespace octet::models

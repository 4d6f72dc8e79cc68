#pragma once

#include <array>
#include <cstdint>

#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// How one part of backward adds to a gradient in a micro-batch.
enum class GradientUse : std::uint8_t {
  product,   // one GEMM, which can store its result instead of adding it
  products,  // one GEMM per chunk of tokens; the first can store
  sum,       // an op that only adds: column sums of biases and norms, the scatter of an embedding
};

class Gradient;

/// Told when a pass of a micro-batch has completed its uses of a gradient, while it continues with others.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  /// Before backward writes where another gradient was.
  virtual void begin(Stream&, const Gradient&) = 0;
  virtual void complete(Stream&, const Gradient&) = 0;
};

/// The gradient of one parameter: where backward adds to it, and whether the backward of a micro-batch is complete.
///
///   constructor   gradient.add_use(GradientUse::product);
///   backward      const auto [data, accumulate] = gradient.target(stream, GradientUse::product);  ...  gradient.done(stream);
///
/// A parameter may have several uses: a tied head multiplies by the table that the embedding reads. These may be of
/// different passes of a micro-batch, between which a schedule computes passes of others: the head's of forward, the embedding's of
/// backward. Calls happen on the host, so a replayed graph makes none; the counts repeat per pass and stay right.
///
/// A GEMM cannot add to 8-bit storage. Its target is then scratch for one micro-batch, which ops::accumulate adds to stored().
class Gradient {
 public:
  struct Target {
    Tensor data;      // f32 or bf16 [shape of the parameter]
    bool accumulate;  // add to data; otherwise store
  };
  /// The contents of the storage when a step begins.
  enum class Contents : std::uint8_t { zero, stale, foreign };  // foreign: of another gradient, with which it shares memory

  /// Passes of a micro-batch, by number.
  static constexpr std::size_t most_passes = 3;

  /// Declares one use per micro-batch, in that pass. Called by modules as they are made.
  void add_use(GradientUse, int pass = 0);
  /// Storage of less than 32 bits is allowed: backward adds once per micro-batch. Sums of many parts stay in FP32.
  bool may_be_narrow() const { return !sums_parts_; }
  /// Backward reaches the gradient by a GEMM first, so a step may begin with stale contents.
  bool begins_with_product() const { return product_; }

  /// `draws`: i64 [2], see ops::Accumulate; needed by 8-bit storage only, which throws ContractError unless may_be_narrow().
  void bind(const Stored&, const Tensor& draws = {});
  /// Empty in a model made for evaluation only.
  const Stored& stored() const { return stored_; }
  const Tensor& draws() const { return draws_; }
  /// Of several copies of a model, each with draws of its own: the number of this one.
  void set_copy(int number) { copy_ = number; }
  int copy() const { return copy_; }
  /// In 8 bits: a GEMM's result waits in scratch until ops::accumulate adds it.
  bool coded() const { return is_fp8(stored_.codes.dtype); }

  /// Its storage is shared with other gradients in turn: every micro-batch begins with foreign contents.
  void share_storage() { shares_ = true; }
  bool shares_storage() const { return shares_; }
  /// Uses per micro-batch.
  int uses() const { return uses_[0] + uses_[1] + uses_[2]; }
  /// Those passes that have some, and so complete it.
  int passes() const { return (uses_[0] > 0) + (uses_[1] > 0) + (uses_[2] > 0); }

  /// Before the first micro-batch of a step. Throws ContractError for stale contents unless begins_with_product().
  void begin(Contents);
  /// Before each micro-batch, also one that a graph replays: the draws have their numbers.
  void begin_micro_batch();
  /// Where a use adds, or stores once where contents are stale. Coded gradients: scratch of scratch_type(), to store. Throws ContractError
  /// when a sum would add to stale contents, or without begin_micro_batch() before a coded gradient.
  Target target(Stream&, GradientUse);
  /// One use of this micro-batch is complete; after the last one of its pass the listener is told, and that of the next micro-batch begins.
  void done(Stream&, int pass = 0);
  /// None: nullptr. It must outlive the gradient's use.
  void set_listener(GradientListener* listener) { listener_ = listener; }
  /// Every use of the micro-batches so far is complete, and the contents are this step's. A replayed graph calls no target(), so of shared
  /// storage only the begin of a micro-batch is known.
  bool complete() const { return pending_ == uses_ && (shares_ ? numbered_ : contents_ == Contents::zero); }

  /// The type of a coded gradient's scratch: BF16 on a GPU, where memory limits the addition; f32 on a CPU, whose GEMM makes sums in f32.
  static DType scratch_type(const Stream& stream) { return stream.apart_from_host() ? DType::bf16 : DType::f32; }

 private:
  Stored stored_;
  Tensor draws_;
  int copy_ = 0;
  std::array<int, most_passes> uses_{}, pending_{};  // per micro-batch, by pass
  bool product_ = false, sums_parts_ = false;
  bool shares_ = false;
  bool numbered_ = false;  // begin_micro_batch() came, and no target since
  Contents contents_ = Contents::zero;
  GradientListener* listener_ = nullptr;
};

}  // namespace octet

// A model of one's own, outside of Octet's tree, out of the layers in octet/nn: a decoder whose blocks run attention and MLP side by side,
//
//   y = x + attention(norm1(x)) + mlp(norm2(x)),        as in GPT-J and GPT-NeoX.
//
// Its family is registered under a name; the trainer then runs it as any other, under every recipe. The program trains it in BF16 and FP8.
//
//   cmake --build build/cpu --target example_add_model && build/cpu/examples/example_add_model
//
// A program of one's own links octet::train (examples/embed). CONTRIBUTING.md tells how a model becomes part of Octet instead.

#include <cstdio>
#include <exception>

#include "examples/counting.hpp"
#include "octet/nn/attention.hpp"
#include "octet/nn/head.hpp"
#include "octet/nn/mlp.hpp"
#include "octet/nn/norm.hpp"
#include "octet/ops/add/add.hpp"
#include "octet/ops/embedding/embedding.hpp"
#include "octet/ops/quantize/plain_sink.hpp"
#include "octet/machine/machine.hpp"

using namespace octet;

namespace {

/// One block. Its layers ask `precision` how they shall run; their paths name them in plans, reports and recipe.keep_bf16.
class ParallelBlock {
 public:
  struct Saved {
    nn::LayerNorm::Input x1, x2;  // one x, with each norm's statistics
    nn::Attention::Saved attention;
    nn::Mlp<nn::Gelu>::Saved mlp;
  };

  ParallelBlock(const models::ModelShape& s, const std::string& path, scaling::Precision& precision, const scaling::Site& site)
      : norm1_(path + ".norm1", s.width, s.norm_eps),
        norm2_(path + ".norm2", s.width, s.norm_eps),
        attention_(path + ".attn", {.width = s.width, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim}, precision, site),
        mlp_(path + ".mlp", {.width = s.width, .hidden = s.hidden, .bias = true}, precision, site) {}

  /// x, y: [T, D]. With `saved`, what backward needs is kept in the pass's region, and so must x be.
  void forward(Stream& stream, const nn::BlockContext& context, const Tensor& x, const Tensor& y, const scaling::Pass& pass, Saved* saved) {
    const Scope scope(stream);  // frees the following allocations, except `saved`
    const bool keep = saved != nullptr;
    const Region region = keep ? pass.keep : Region(Lifetime::scratch);
    const std::int64_t tokens = x.shape[0];
    nn::LayerNorm::Input x1 = nn::LayerNorm::input(stream, x, region), x2 = nn::LayerNorm::input(stream, x, region);
    const Tensor a = stream.empty(x.shape, x.dtype), m = stream.empty(x.shape, x.dtype);
    ops::Sink n1 =
        attention_.first().operand(stream, {.cols = keep, .tokens = tokens}, pass);  // a norm writes the operands of the GEMM that follows
    norm1_.forward(stream, x1, n1);
    attention_.forward(stream, n1.codes, context, a, pass, keep ? &saved->attention : nullptr);
    ops::Sink n2 = mlp_.first().operand(stream, {.cols = keep, .tokens = tokens}, pass);
    norm2_.forward(stream, x2, n2);
    mlp_.forward(stream, n2.codes, context, m, pass, keep ? &saved->mlp : nullptr);
    ops::add(stream, a, m, a);
    ops::add(stream, x, a, y);
    if (keep) saved->x1 = x1, saved->x2 = x2;
  }

  /// d: [T, D], the gradient of y on entry, of x on return.
  void backward(Stream& stream, const nn::BlockContext& context, const Tensor& d, const Saved& saved, const scaling::Pass& pass) {
    const Scope scope(stream);
    const Tensor da = stream.empty(d.shape, d.dtype), dm = stream.empty(d.shape, d.dtype);
    attention_.backward(stream, d, context, saved.attention, da, pass);
    mlp_.backward(stream, d, context, saved.mlp, dm, pass);
    norm1_.backward(stream, da, saved.x1, d, true);
    norm2_.backward(stream, dm, saved.x2, d, true);
  }

  void visit(nn::Visitor& v) { norm1_.visit(v), attention_.visit(v), norm2_.visit(v), mlp_.visit(v); }

 private:
  nn::LayerNorm norm1_, norm2_;
  nn::Attention attention_;
  nn::Mlp<nn::Gelu> mlp_;
};

class ParallelDecoder final : public models::Model {
 public:
  ParallelDecoder(const models::ModelShape& shape, scaling::Precision& precision)
      : shape_(shape),
        activations_(precision.activations()),
        embedding_("embedding.weight", {shape.padded_vocabulary(), shape.width}),
        norm_("norm", shape.width, shape.norm_eps),
        head_("lm_head", shape.width, shape.padded_vocabulary(), shape.vocabulary, precision, {.layers = int(shape.layers)}) {
    embedding_.gradient.add_use(GradientUse::sum);  // layers declare the uses of their own gradients
    for (int i = 0; i < int(shape.layers); ++i)
      blocks_.push_back(std::make_unique<ParallelBlock>(shape, "layers." + std::to_string(i), precision,
                                                        scaling::Site{.layer = i, .layers = int(shape.layers)}));
  }

  const models::ModelShape& shape() const override { return shape_; }
  bool masks_documents() const override { return true; }  // context() passes their starts on
  void allocate(Stream& stream, std::int64_t sequence) override {
    rope_ = ops::rope_table(stream, sequence, shape_.head_dim, shape_.rope_theta, shape_.rope_scaling);
  }

  // The model is one chunk, as families without has_chunks() are.
  void loss(Stream& stream, const models::TokenBatch& batch, const scaling::Pass& pass, const nn::LossSums& sums,
            const models::StageBoundary&) override {
    const Scope scope(stream);
    const Tensor x = run(stream, batch, pass);
    head_.loss(stream, normalised(stream, x), batch.for_objective(), sums, pass, {}, {});
  }

  // Tensors for backward are in pass.keep, which the trainer empties after backward(); all others in scratch.
  void forward(Stream& stream, const models::TokenBatch& batch, const scaling::Pass& pass, const nn::LossSums& sums,
               const nn::LossFactor& factor, const models::StageBoundary&) override {
    const auto kept = [&] { return stream.empty(shape_of(batch), activations_, pass.keep, Category::activations); };
    saved_.assign(blocks_.size(), {});
    Tensor x = kept();
    ops::embedding_forward(
        stream, {.table = embedding_.value.codes, .tokens = batch.tokens, .out = x, .descale = embedding_.value.tensor_descale()});
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const Tensor y = kept();
      blocks_[i]->forward(stream, context(batch), x, y, pass, &saved_[i]);
      x = y;
    }
    last_ = nn::LayerNorm::input(stream, x, pass.keep), dn_ = kept();
    const Scope scope(stream);
    ops::Sink n = ops::plain_sink(stream.empty(x.shape, activations_));
    norm_.forward(stream, last_, n);
    head_.loss(stream, n.plain, batch.for_objective(), sums, pass, factor, dn_);
  }

  void backward(Stream& stream, const models::TokenBatch& batch, const scaling::Pass& pass, const Tensor&) override {
    const Scope scope(stream);
    const Tensor d = stream.empty(dn_.shape, dn_.dtype);
    norm_.backward(stream, dn_, last_, d, false);
    for (std::size_t i = blocks_.size(); i-- > 0;) blocks_[i]->backward(stream, context(batch), d, saved_[i], pass);
    ops::embedding_backward(stream, {.dy = d, .tokens = batch.tokens, .dtable = embedding_.gradient.target(stream, GradientUse::sum).data});
    embedding_.gradient.done(stream);
  }

  void logits(Stream& stream, const models::TokenBatch& batch, const scaling::Pass& pass, std::int64_t last, const Tensor& logits,
              const models::StageBoundary&) override {
    const Scope scope(stream);
    const Tensor x = run(stream, batch, pass);
    const std::int64_t sequences = batch.tokens.count() / batch.sequence;
    const Tensor ends = stream.empty({sequences * last, shape_.width}, activations_);
    for (std::int64_t s = 0; s < sequences; ++s) copy(stream, x.rows((s + 1) * batch.sequence - last, last), ends.rows(s * last, last));
    head_.logits(stream, normalised(stream, ends), logits, pass);
  }

  // The one list of the model's parameters: storage, optimizer, checkpoints and counts follow it.
  void visit(nn::Visitor& visitor) override {
    visitor.parameter(embedding_);
    for (const auto& block : blocks_) block->visit(visitor);
    norm_.visit(visitor), head_.visit(visitor);
  }

 private:
  Shape shape_of(const models::TokenBatch& batch) const { return {batch.tokens.count(), shape_.width}; }
  nn::BlockContext context(const models::TokenBatch& batch) const { return {batch.sequence, rope_, batch.document_starts}; }

  /// The last block's output in scratch, with nothing kept.
  Tensor run(Stream& stream, const models::TokenBatch& batch, const scaling::Pass& pass) {
    const Tensor x = stream.empty(shape_of(batch), activations_);
    ops::embedding_forward(
        stream, {.table = embedding_.value.codes, .tokens = batch.tokens, .out = x, .descale = embedding_.value.tensor_descale()});
    for (const auto& block : blocks_) block->forward(stream, context(batch), x, x, pass, nullptr);
    return x;
  }
  Tensor normalised(Stream& stream, const Tensor& x) {
    nn::LayerNorm::Input input = nn::LayerNorm::input(stream, x, Lifetime::scratch);
    ops::Sink n = ops::plain_sink(stream.empty(x.shape, activations_));
    norm_.forward(stream, input, n);
    return n.plain;
  }

  models::ModelShape shape_;
  DType activations_;
  Parameter embedding_;
  std::vector<std::unique_ptr<ParallelBlock>> blocks_;
  nn::LayerNorm norm_;
  nn::LanguageHead head_;
  ops::RopeTable rope_;
  // Saved by forward for backward.
  std::vector<ParallelBlock::Saved> saved_;
  nn::LayerNorm::Input last_;
  Tensor dn_;
};

constexpr int steps = 24;

bool learns(const std::string& recipe) {
  train::Engine engine(counting::config("parallel", recipe), Device::cpu, machine::machine_target(Device::cpu));
  const float loss = counting::train(engine, steps);
  std::printf("%-10s loss %.4f after %d steps, %lld parameters\n", recipe.c_str(), double(loss), steps,
              static_cast<long long>(engine.parameters.count()));
  return loss < 0.02f;  // from ln 64 = 4.16; with gradients of the head alone, 0.04
}

bool run() {
  models::register_model_family({.name = "parallel",
                                 .sizes = nullptr,  // or shapes by name, for model.size
                                 .make = [](const models::ModelShape& shape, const models::ModelOptions&, scaling::Precision& precision)
                                     -> std::unique_ptr<models::Model> { return std::make_unique<ParallelDecoder>(shape, precision); },
                                 .hugging_face = {}});
  return learns("bf16") & learns("current") & learns("mxfp8");
}

}  // namespace

int main() {
  try {
    return run() ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "add_model: %s\n", e.what());
    return 2;
  }
}

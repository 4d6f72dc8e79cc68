#pragma once

#include <variant>

#include "octet/nn/attention_config.hpp"
#include "octet/nn/block_context.hpp"
#include "octet/nn/gathered.hpp"
#include "octet/nn/normed_rows.hpp"
#include "octet/nn/saved_activation.hpp"
#include "octet/ops/latent_heads/latent_heads.hpp"

namespace octet::nn {

/// y = norm(c) W^T for the columns c [T, rank] of a matrix.
class LatentLinear {
 public:
  struct Config {
    std::int64_t rank, out;  // out: of all members together
    double norm_eps;
    bool recomputed;
  };
  /// Layers `path`_b and its norm `path`_a_norm. A member of the partition has its own columns of y, and the norm's gradient of these
  /// alone.
  LatentLinear(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition&);
  std::int64_t rank() const { return linear_.in(); }
  std::int64_t out() const { return linear_.out(); }
  /// y: [T, out], overwritten.
  void forward(Stream&, const ops::ColumnsOf& c, const Tensor& y, const scaling::Pass&, NormedRows*);
  /// Where dy lives that backward reads.
  Region gradient_region(const scaling::Pass&) const;
  /// dc: overwritten.
  void backward(Stream&, const Tensor& dy, const NormedRows&, const ops::ColumnsOf& dc, const scaling::Pass&);
  void visit(Visitor& visitor) { norm_.visit(visitor), linear_.visit(visitor); }

 private:
  Partition& partition_;
  RmsNorm norm_;
  Linear linear_;
  SavedActivation input_;
};

/// Queries that are columns of the first layer's output, from the first one on.
class DirectQueries {
 public:
  explicit DirectQueries(std::int64_t columns) : columns_(columns) {}
  /// Of the first layer.
  std::int64_t columns() const { return columns_; }
  ops::ColumnsOf forward(Stream&, const Tensor& a, const scaling::Pass&, NormedRows*) { return {a}; }
  ops::ColumnsOf gradient(Stream&, const Tensor& da, const scaling::Pass&) const { return {da}; }
  void backward(Stream&, const ops::ColumnsOf&, const NormedRows&, const Tensor&, const scaling::Pass&) {}
  void visit(Visitor&) {}

 private:
  std::int64_t columns_;
};

/// Queries from a latent, which are these columns.
class LatentQueries {
 public:
  LatentQueries(const std::string& path, const LatentLinear::Config& c, scaling::Precision& precision, const scaling::Site& s, Partition& p)
      : linear_(path, c, precision, s, p) {}
  std::int64_t columns() const { return linear_.rank(); }
  ops::ColumnsOf forward(Stream&, const Tensor& a, const scaling::Pass&, NormedRows*);
  /// Memory for the gradient of queries.
  ops::ColumnsOf gradient(Stream&, const Tensor& da, const scaling::Pass&) const;
  /// Fills the latent's columns of da.
  void backward(Stream&, const ops::ColumnsOf& dq, const NormedRows&, const Tensor& da, const scaling::Pass&);
  void visit(Visitor& visitor) { linear_.visit(visitor); }

 private:
  LatentLinear linear_;
};

/// Queries, keys and values of multi-head latent attention. One layer makes the latents and the columns of keys that all heads share; its
/// matrix has the rows of all three:
///
///   [cq | ckv | k] = x Wa^T,   q = norm(cq) Wqb^T, or cq itself,   kv = norm(ckv) Wkvb^T
///
/// ops::latent_heads_forward() makes the fused matrix of q, kv and k, at their positions. A member of a partition has the rows of its own
/// heads in Wqb, Wkvb and, without a latent of queries, in Wa. Of the latents' rows and norms all members have copies, whose gradients are
/// those of the own heads until they are summed. Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1 and appendix C.
class LatentQkv {
 public:
  /// own: the configuration with the heads of this member.
  LatentQkv(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole, scaling::Precision&, const scaling::Site&,
            Partition&);

  const LinearSite& first() const { return first_; }
  ops::QkvShape shape(const BlockContext& context) const { return heads(context).heads; }
  bool leaves_rotation() const { return false; }
  void forward(Stream&, const QTensor& x, const BlockContext&, const Tensor& qkv, const scaling::Pass&, QkvSaved*);
  Region gradient_region(const scaling::Pass&) const { return Lifetime::scratch; }
  void backward(Stream&, const Tensor& dqkv, const BlockContext&, const QkvSaved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor&);

 private:
  ops::LatentHeads heads(const BlockContext&) const;
  std::int64_t first_latent() const {
    return std::visit([](const auto& q) { return q.columns(); }, queries_);
  }
  Latents latents_of(const Tensor& a) const;
  void expand(Stream&, const Latents&, const ops::RopeTable&, const scaling::Pass&, const Tensor& qkv);
  ops::LatentArguments arguments(const BlockContext&, const ops::ColumnsOf& q, const Tensor& kv, const Tensor& a, const Tensor& qkv) const;

  Partition& partition_;
  AttentionConfig config_;
  Linear first_;
  std::variant<DirectQueries, LatentQueries> queries_;
  LatentLinear kv_;
};

}  // namespace octet::nn

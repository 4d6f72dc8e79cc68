#include "octet/nn/branch_end.hpp"

#include "octet/ops/quantize/plain_sink.hpp"

namespace octet::nn {

BranchEnd::BranchEnd(const std::string& path, std::int64_t width, const Config& c, Partition& p) : form_(make_form(path, width, c, p)) {}

BranchEnd::Form BranchEnd::make_form(const std::string& path, std::int64_t width, const Config& c, Partition& p) {
  check(!c.normed || c.factor == 1, "{}: a branch ends with a norm or with a factor", path);
  if (c.normed) return Form(std::in_place_type<RmsNorm>, path, width, c.norm, p);
  if (c.factor != 1) return Multiplier(c.factor);
  return Unchanged{};
}

Tensor BranchEnd::room(Stream& stream, const Tensor& y, const scaling::Pass& pass, bool saves) const {
  if (!saves || !std::holds_alternative<RmsNorm>(form_)) return y;
  return stream.empty(y.shape, y.dtype, pass.keep, Category::activations);
}

void BranchEnd::forward(Stream& stream, const Tensor& out, const Tensor& y, const scaling::Pass& pass, Saved* saved) {
  if (auto* const factor = std::get_if<Multiplier>(&form_)) factor->apply(stream, out, y);
  auto* const norm = std::get_if<RmsNorm>(&form_);
  if (norm == nullptr) return;
  const Scope scope(stream);
  RmsNorm::Input input = RmsNorm::input(stream, out, saved != nullptr ? pass.keep : Region(Lifetime::scratch));
  ops::Sink sink = ops::plain_sink(y);
  norm->forward(stream, input, sink);
  if (saved != nullptr) *saved = input;
}

Tensor BranchEnd::backward(Stream& stream, const Tensor& dy, const Saved& saved) {
  if (std::holds_alternative<Unchanged>(form_)) return dy;
  const Tensor d = stream.empty(dy.shape, dy.dtype);
  if (auto* const factor = std::get_if<Multiplier>(&form_)) factor->apply(stream, dy, d);
  if (auto* const norm = std::get_if<RmsNorm>(&form_)) norm->backward(stream, dy, saved, d, false);
  return d;
}

void BranchEnd::visit(Visitor& visitor) {
  if (auto* const norm = std::get_if<RmsNorm>(&form_)) norm->visit(visitor);
}

}  // namespace octet::nn

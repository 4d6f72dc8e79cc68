#include "tests/faults/operand_sqnr.hpp"

#include <cmath>

#include "octet/base/check.hpp"
#include "octet/nn/operands.hpp"

namespace octet::faults {
namespace {

class Search final : public nn::Visitor {
 public:
  explicit Search(const std::string& path) : path_(path) {}
  void linear(nn::LinearSite& l) override {
    if (l.path() == path_) found = &l;
  }
  nn::LinearSite* found = nullptr;

 private:
  const std::string& path_;
};

double sqnr(const Tensor& x, const Quantized& q, Element left_out) {
  double signal = 0, noise = 0;
  for (std::int64_t r = 0; r < q.rows(); ++r)
    for (std::int64_t c = 0; c < q.cols(); ++c) {
      if (r == left_out.row && c == left_out.col) continue;
      const double value = double(value_at(x, r * q.cols() + c)), error = value - double(value_at(q, r, c));
      signal += value * value, noise += error * error;
    }
  return 10 * std::log10(signal / noise);
}

}  // namespace

nn::LinearSite& linear(train::Engine& engine, const std::string& path) {
  Search search(path);
  engine.model->visit(search);
  check(search.found != nullptr, "the model has no linear layer {}", path);
  return *search.found;
}

double operand_sqnr(train::Engine& engine, nn::LinearSite& layer, scaling::Operand operand, const Tensor& x, Element left_out) {
  Stream& stream = engine.stream;
  const Scope scope(stream);
  const scaling::Pass silent{.kind = scaling::Pass::Kind::recompute, .keep = Lifetime::scratch};
  switch (operand) {
    case scaling::Operand::activation:
      return sqnr(x, nn::quantized(stream, layer, {.cols = false, .values = x}, silent).codes.rows, left_out);
    case scaling::Operand::gradient:
      return sqnr(x, nn::quantized(stream, layer, {.tensor = operand, .values = x}, silent).codes.rows, left_out);
    default: return sqnr(layer.weight().parameter().value.values(), layer.weight().operand(stream, nn::Weight::Side::rows), left_out);
  }
}

}  // namespace octet::faults

#include "octet/nn/stacked_linear.hpp"

#include "octet/ops/grouped_gemm/grouped_gemm.hpp"

namespace octet::nn {
namespace {

scaling::Site stacked(scaling::Site site, const StackedLinear::Config& c) {
  site.matrices = c.matrices, site.used = c.used, site.stack = c.all, site.first = c.first;
  return site;
}

// The product of a weight's gradient.
auto product_of(const ops::Sink& dy, const LinearSite::Saved& saved, const ops::RowGroups& groups) {
  return [dy = dy.codes.cols, x = saved.x, groups](Stream& queue, const Gradient::Target& dw) {
    ops::grouped_gemm(queue, ops::GroupedColumnsGemm{.a = dy, .b = x, .groups = groups, .d = dw.data, .accumulate = dw.accumulate});
  };
}

}  // namespace

StackedLinear::StackedLinear(const std::string& path, const Config& c, scaling::Precision& precision, scaling::Site site)
    : LinearSite(path, std::make_unique<Parameter>(path + ".weight", Shape{c.matrices * c.out, c.in}, c.init, ParameterRole::matrix, c.cut),
                 precision, stacked(std::move(site), c)) {
  weight().parameter().matrices = c.matrices * c.joined;
}

void StackedLinear::save(Stream& stream, const QTensor& x, const ops::RowGroups& groups, const scaling::Pass& pass, Saved& saved) {
  saved.of_adapter = adapter().forward_stack(stream, x.rows, groups, {}, pass, pass.keep);
}

void StackedLinear::forward(Stream& stream, const QTensor& x, const ops::RowGroups& groups, const Tensor& y, const scaling::Pass& pass,
                            Saved* saved) {
  weight().refresh(stream, pass);
  const Scope scope(stream);
  ops::grouped_gemm(stream, {.a = x.rows,
                             .stack = weight().operand(stream, Weight::Side::rows),
                             .groups = groups,
                             .d = y,
                             .fast_accumulation = plan().fast_forward});
  const Tensor kept = adapter().forward_stack(stream, x.rows, groups, y, pass, saved != nullptr ? pass.keep : Region(Lifetime::scratch));
  if (saved != nullptr) saved->of_adapter = kept;
}

void StackedLinear::backward_input(Stream& stream, const ops::Sink& dy, const ops::RowGroups& groups, const Tensor& dx) {
  const Scope scope(stream);
  ops::grouped_gemm(
      stream,
      {.a = dy.codes.rows, .stack = weight().operand(stream, Weight::Side::cols), .stack_columns = true, .groups = groups, .d = dx});
}

void StackedLinear::backward_weight(Stream& stream, const ops::Sink& dy, const Saved& saved, const ops::RowGroups& groups,
                                    DeferredWork* later) {
  add_weight_product(stream, later, product_of(dy, saved, groups));
}

void StackedLinear::backward_weight(Stream& stream, const ops::Sink& dy, const Saved& saved, const ops::RowGroups& groups,
                                    RoundProducts& rounds) {
  rounds.add(stream, weight().parameter(),
             [&, product = product_of(dy, saved, groups)](const Gradient::Target& dw) { product(stream, dw); });
}

std::vector<Parameter*> StackedLinear::parameters() {
  struct Collect final : Visitor {
    std::vector<Parameter*> list;
    void parameter(Parameter& p) override { list.push_back(&p); }
  } collect;
  visit(collect);
  return collect.list;
}

}  // namespace octet::nn

#include "octet/nn/shared_experts.hpp"

#include "octet/nn/operands.hpp"
#include "octet/ops/add/add.hpp"

namespace octet::nn {
namespace {

// The one of two functions that takes the form: for no MLP nothing.
template <class F>
struct OfMlp {
  F f;
  void operator()(Mlp<SwiGlu>& mlp) const { f(mlp); }
  template <class None>
  void operator()(None&) const {}
};
template <class F>
OfMlp(F) -> OfMlp<F>;

}  // namespace

SharedExperts::SharedExperts(const std::string& path, const Mlp<SwiGlu>::Config& c, scaling::Precision& precision,
                             const scaling::Site& site, Partition& p)
    : form_(make_form(path, c, precision, site, p)) {}

SharedExperts::Form SharedExperts::make_form(const std::string& path, const Mlp<SwiGlu>::Config& c, scaling::Precision& precision,
                                             const scaling::Site& site, Partition& p) {
  if (c.hidden == 0) return None{};
  return Form(std::in_place_type<Mlp<SwiGlu>>, path, c, precision, site, p);
}

void SharedExperts::forward(Stream& stream, const Tensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass,
                            Saved* saved) {
  std::visit(OfMlp{[&](Mlp<SwiGlu>& mlp) {
               const Tensor part = y ? stream.empty(y.shape, y.dtype) : Tensor{};
               const ops::Sink own = quantized(stream, mlp.first(), {.cols = false, .values = x}, pass);
               mlp.forward(stream, operands_of(own), context, part, pass, saved);
               if (y) ops::add(stream, part, y, y);
             }},
             form_);
}

void SharedExperts::backward(Stream& stream, const Tensor& dy, const Tensor& x, const BlockContext& context, const Saved& saved,
                             const Tensor& dx, const scaling::Pass& pass) {
  std::visit(OfMlp{[&](Mlp<SwiGlu>& mlp) {
               const Scope scope(stream);
               const Tensor part = stream.empty(dx.shape, dx.dtype);
               Saved whole = saved;
               const OperandRequest again{.rows = false, .values = x};
               whole.in_linear.x = quantized(stream, mlp.first(), again, scaling::recomputing_for(pass)).codes.cols;
               mlp.backward(stream, dy, context, whole, part, pass);
               ops::add(stream, part, dx, dx);
             }},
             form_);
}

void SharedExperts::visit(Visitor& visitor) {
  std::visit(OfMlp{[&](Mlp<SwiGlu>& mlp) { mlp.visit(visitor); }}, form_);
}

}  // namespace octet::nn

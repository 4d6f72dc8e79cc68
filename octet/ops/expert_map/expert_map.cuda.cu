#include "octet/base/error.hpp"
#include "octet/ops/combine_rows/combine_rows.kernels.hpp"
#include "octet/ops/expert_map/expert_map.kernels.hpp"
#include "octet/ops/gather_rows/gather_rows.kernels.hpp"
#include "octet/ops/route/route.kernels.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"

namespace octet::cuda {
namespace {
[[noreturn]] void no_kernel() { throw DeviceError("experts: no kernel for GPUs yet"); }
}  // namespace

void expert_map(Queue, const Tensor&, const ops::ExpertMap&, const Tensor&) { no_kernel(); }
void gather_rows(Queue, const Tensor&, const ops::ExpertMap&, const ops::Sink&) { no_kernel(); }
void combine_rows(Queue, const Tensor&, const ops::ExpertMap&, const Tensor&, bool) { no_kernel(); }
void route_forward(Queue, const ops::Routing&, const ops::RouteForward&) { no_kernel(); }
void route_backward(Queue, const ops::Routing&, const ops::RouteBackward&) { no_kernel(); }
void route_load(Queue, const ops::RouteLoad&, const Tensor&) { no_kernel(); }
void weighted_swiglu_forward(Queue, const ops::Saved&, const Tensor&, const ops::ExpertMap&, float, const ops::Sink&) { no_kernel(); }
void weighted_swiglu_backward(Queue, const ops::WeightedSwigluBackward&, const ops::Sink&) { no_kernel(); }
void clear_rows_without_token(Queue, const Tensor&, const ops::ExpertMap&) { no_kernel(); }

}  // namespace octet::cuda

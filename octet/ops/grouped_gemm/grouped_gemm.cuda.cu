#include <array>
#include <mutex>
#include <set>

#include "octet/base/log.hpp"
#include "octet/ops/grouped_gemm/hopper/hopper.hpp"

namespace octet::cuda {
namespace {

/// Operands that the fast kernels refuse are multiplied many times slower: one warning per form.
void say_general_kernel(const ops::GroupedGemm& g) {
  static std::mutex mutex;
  static std::set<std::array<std::int64_t, 4>> said;
  const std::int64_t M = g.along_k ? g.M() : g.a.rows(), type = std::int64_t(g.a.codes.dtype);
  const std::lock_guard lock(mutex);
  if (said.insert({M, g.N(), g.K(), type}).second)
    log::warn(
        "grouped GEMM {} x {} x {} of {} by {} in {} groups: no fast kernel takes it; the general one multiplies it, with the same "
        "result, slowly",
        M, g.N(), g.K(), g.a.codes.dtype, g.b.codes.dtype, g.groups.size());
}

}  // namespace

void grouped_gemm(Queue queue, const ops::GroupedGemm& g) {
  if (g.d.count() == 0) return;
  for (const auto fast : {rows_1x128_128x128, rows_tensor, rows_bf16, columns_1x128_1x128, columns_tensor, columns_bf16})
    if (fast(queue, g)) return;
  say_general_kernel(g);
  plain_grouped_gemm(queue, g);
}

}  // namespace octet::cuda

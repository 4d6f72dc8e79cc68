#include "octet/comm/mpi/workspace.hpp"

namespace octet::comm {

// Few values are added by every rank, many by the rank whose share they are. Shares are of equal size: the last may be padded.
MpiWorkspace mpi_workspace(Stream& stream, const Call& call, int ranks) {
  constexpr std::size_t few_bytes = 4096;
  const auto values = [&](std::int64_t n) { return stream.empty({n}, call.to.dtype, Lifetime::scratch, Category::workspace); };
  const std::int64_t count = call.to.count();
  if (call.kind == Collective::reduce_scatter) return {.share = count, .parts = values(ranks * count), .padded = {}};
  if (call.kind != Collective::all_reduce) return {};
  const bool few = call.to.bytes() <= few_bytes;
  MpiWorkspace out{.share = few ? count : ceil_div(count, std::int64_t(ranks)), .few = few, .parts = {}, .padded = {}};
  out.parts = values(ranks * out.share);
  if (!few) out.padded = values(ranks * out.share);
  return out;
}

}  // namespace octet::comm

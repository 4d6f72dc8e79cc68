#include "octet/comm/collective.hpp"

namespace octet::comm {

std::string to_text(const Call& c) {
  std::string out(name(c.kind));
  if (c.kind == Collective::barrier) return out;
  if (c.kind == Collective::all_reduce || c.kind == Collective::reduce_scatter) out += format(" ({})", name(c.reduction));
  out += format(" of {} {}", c.whole().dtype, c.whole().shape);
  if (c.kind == Collective::send) out += format(" to rank {}", c.peer);
  if (c.kind == Collective::receive || c.kind == Collective::broadcast) out += format(" from rank {}", c.peer);
  return out;
}

std::int64_t bytes_sent(const Call& c, int rank, int size) {
  if (c.uneven()) return (c.from.count() - c.sent[std::size_t(rank)]) * std::int64_t(size_of(c.from.dtype));
  const std::int64_t bytes = std::int64_t(c.whole().bytes()), others = size - 1;
  switch (c.kind) {
    case Collective::all_reduce: return 2 * others * bytes / size;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all: return others * bytes / size;
    case Collective::broadcast: return rank == c.peer && others > 0 ? bytes : 0;
    case Collective::send: return bytes;
    case Collective::receive:
    case Collective::barrier: return 0;
  }
  return 0;
}

}  // namespace octet::comm

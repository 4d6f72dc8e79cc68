#include "octet/comm/peer/peer_calls.hpp"

#include <algorithm>

#include "octet/comm/combine.hpp"

namespace octet::comm::peer {
namespace {

constexpr std::size_t least_bytes = std::size_t(32) << 10;

const std::byte* bytes_of(const Tensor& t) { return static_cast<const std::byte*>(t.data); }

template <class F>
void each_piece(const Mailboxes& m, std::size_t bytes, const F& f) {
  for (std::size_t begin = 0; begin < bytes; begin += m.piece()) f(begin, std::min(m.piece(), bytes - begin));
}
// The next ranks first, so that not all send to one.
template <class F>
void each_other(const Mailboxes& m, const F& f) {
  for (int i = 1; i < m.size(); ++i) f((m.rank() + i) % m.size());
}

// part_of(rank): what this rank sends there. All parts have as many bytes.
template <class PartOf>
void put_parts(Mailboxes& m, std::size_t bytes, const PartOf& part_of) {
  each_piece(m, bytes, [&](std::size_t begin, std::size_t n) { each_other(m, [&](int r) { m.put(r, part_of(r) + begin, n); }); });
}

void copy(cuda::Queue queue, const std::byte* from, const std::byte* to, std::size_t bytes) {
  if (from != to && bytes > 0) cuda::copy(queue, from, const_cast<std::byte*>(to), bytes);
}

// Each part that arrives is copied to place_of(rank).
template <class PlaceOf>
void take_parts(Mailboxes& m, cuda::Queue queue, std::size_t bytes, const PlaceOf& place_of) {
  each_piece(m, bytes, [&](std::size_t begin, std::size_t n) {
    each_other(m, [&](int r) {
      copy(queue, m.take(queue, r), place_of(r) + begin, n);
      m.give_back(queue, r);
    });
  });
}

// use(begin, bytes, parts) of each piece of all ranks' parts, in their order; `own` is the part that stays here.
template <class Use>
void use_parts(Mailboxes& m, cuda::Queue queue, const std::byte* own, std::size_t bytes, const Use& use) {
  std::vector<const void*> parts(std::size_t(m.size()));
  each_piece(m, bytes, [&](std::size_t begin, std::size_t n) {
    parts[std::size_t(m.rank())] = own + begin;
    each_other(m, [&](int r) { parts[std::size_t(r)] = m.take(queue, r); });
    use(begin, n, std::span<const void* const>(parts));
    each_other(m, [&](int r) { m.give_back(queue, r); });
  });
}

Tensor piece_of(const Tensor& of, std::size_t begin, std::size_t bytes) {
  return {of.u8() + begin, {std::int64_t(bytes / size_of(of.dtype))}, of.dtype};
}

void all_gather(Mailboxes& m, cuda::Queue queue, const Tensor& from, const Tensor& to) {
  const std::size_t n = from.bytes();
  put_parts(m, n, [&](int) { return bytes_of(from); });
  copy(queue, bytes_of(from), bytes_of(to) + std::size_t(m.rank()) * n, n);
  take_parts(m, queue, n, [&](int r) { return bytes_of(to) + std::size_t(r) * n; });
}

void all_to_all(Mailboxes& m, cuda::Queue queue, const Tensor& from, const Tensor& to) {
  const std::size_t n = from.bytes() / std::size_t(m.size()), own = std::size_t(m.rank()) * n;
  put_parts(m, n, [&](int r) { return bytes_of(from) + std::size_t(r) * n; });
  copy(queue, bytes_of(from) + own, bytes_of(to) + own, n);
  take_parts(m, queue, n, [&](int r) { return bytes_of(to) + std::size_t(r) * n; });
}

void reduce_scatter(Mailboxes& m, cuda::Queue queue, const Tensor& from, const Tensor& to) {
  const std::size_t n = to.bytes();
  put_parts(m, n, [&](int r) { return bytes_of(from) + std::size_t(r) * n; });
  use_parts(m, queue, bytes_of(from) + std::size_t(m.rank()) * n, n,
            [&](std::size_t begin, std::size_t bytes, std::span<const void* const> parts) { combine(queue, parts, piece_of(to, begin, bytes)); });
}

// Shares of whole packs of 16 bytes, of which the last ones may be shorter: each rank adds its own, which then goes to all.
void all_reduce(Mailboxes& m, cuda::Queue queue, const Tensor& x) {
  const std::size_t all = x.bytes(), share = (all / std::size_t(m.size()) / 16 + 1) * 16;
  const auto begin_of = [&](int r) { return std::min(all, std::size_t(r) * share); };
  const auto bytes_at = [&](int r) { return begin_of(r + 1) - begin_of(r); };
  const std::byte* const data = bytes_of(x);
  each_piece(m, share, [&](std::size_t begin, std::size_t) {
    each_other(m, [&](int r) {
      if (begin < bytes_at(r)) m.put(r, data + begin_of(r) + begin, std::min(m.piece(), bytes_at(r) - begin));
    });
  });
  use_parts(m, queue, data + begin_of(m.rank()), bytes_at(m.rank()), [&](std::size_t begin, std::size_t n, std::span<const void* const> parts) {
    combine(queue, parts, piece_of(x, begin_of(m.rank()) + begin, n));
  });
  m.follow(queue, m.sender()), m.follow(m.sender(), queue);
  put_parts(m, bytes_at(m.rank()), [&](int) { return data + begin_of(m.rank()); });
  each_piece(m, share, [&](std::size_t begin, std::size_t) {
    each_other(m, [&](int r) {
      if (begin >= bytes_at(r)) return;
      copy(queue, m.take(queue, r), data + begin_of(r) + begin, std::min(m.piece(), bytes_at(r) - begin));
      m.give_back(queue, r);
    });
  });
}

void send(Mailboxes& m, const Tensor& x, int to) {
  each_piece(m, x.bytes(), [&](std::size_t begin, std::size_t n) { m.put(to, bytes_of(x) + begin, n); });
}

void receive(Mailboxes& m, cuda::Queue queue, const Tensor& x, int from) {
  each_piece(m, x.bytes(), [&](std::size_t begin, std::size_t n) {
    copy(queue, m.take(queue, from), bytes_of(x) + begin, n);
    m.give_back(queue, from);
  });
}

}  // namespace

bool carries(const Call& c) {
  if (c.whole().bytes() < least_bytes) return false;
  switch (c.kind) {
    case Collective::all_reduce:
    case Collective::reduce_scatter: return c.reduction == Reduction::sum && (c.from.dtype == DType::f32 || c.from.dtype == DType::bf16);
    case Collective::broadcast:
    case Collective::barrier: return false;
    default: return true;
  }
}

void run(Mailboxes& m, cuda::Queue queue, const Call& c, const Call* second) {
  m.follow(m.sender(), queue);
  switch (c.kind) {
    case Collective::all_reduce: all_reduce(m, queue, c.to); break;
    case Collective::reduce_scatter: reduce_scatter(m, queue, c.from, c.to); break;
    case Collective::all_gather: all_gather(m, queue, c.from, c.to); break;
    case Collective::all_to_all: all_to_all(m, queue, c.from, c.to); break;
    case Collective::receive: receive(m, queue, c.to, c.peer); break;
    default: send(m, c.from, c.peer); break;
  }
  if (second != nullptr) receive(m, queue, second->to, second->peer);
  m.follow(queue, m.sender());
}

void begin_send(Mailboxes& m, cuda::Queue queue, const Tensor& x, int to) {
  m.follow(m.sender(), queue);
  send(m, x, to);
}

void all_to_all(Mailboxes& m, cuda::Queue queue, const Tensor& from, const Communicator::UseParts& use) {
  const std::size_t n = from.bytes() / std::size_t(m.size()), size = size_of(from.dtype);
  m.follow(m.sender(), queue);
  put_parts(m, n, [&](int r) { return bytes_of(from) + std::size_t(r) * n; });
  std::vector<Tensor> tensors(std::size_t(m.size()));
  use_parts(m, queue, bytes_of(from) + std::size_t(m.rank()) * n, n,
            [&](std::size_t begin, std::size_t bytes, std::span<const void* const> parts) {
              for (std::size_t r = 0; r < parts.size(); ++r)
                tensors[r] = {const_cast<void*>(parts[r]), {std::int64_t(bytes / size)}, from.dtype};
              use(std::int64_t(begin / size), tensors);
            });
  m.follow(queue, m.sender());
}

}  // namespace octet::comm::peer

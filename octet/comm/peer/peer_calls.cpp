#include "octet/comm/peer/peer_calls.hpp"

#include <algorithm>

#include "octet/comm/combine.hpp"

namespace octet::comm::peer {
namespace {

constexpr std::size_t least_bytes = std::size_t(32) << 10;

const std::byte* bytes_of(const Tensor& t) { return static_cast<const std::byte*>(t.data); }

struct Piece {
  std::size_t begin, bytes;
};
// The numbered piece of a transfer; of 0 bytes after its end.
Piece piece_at(const Mailboxes& m, std::size_t all, std::size_t number) {
  const std::size_t piece = m.piece(), begin = std::min(all, number * piece);
  return {begin, std::min(piece, all - begin)};
}

// The next ranks first, so that not all send to one.
template <class F>
void each_other(const Mailboxes& m, const F& f) {
  for (int i = 1; i < m.size(); ++i) f((m.rank() + i) % m.size());
}

// A call's way through the mailboxes, from its begin to its end in the given queue.
class Passage {
 public:
  /// `bytes`: the most that goes to a rank; 0: nothing is sent, and begun sends continue.
  Passage(Mailboxes& m, cuda::Queue queue, std::size_t bytes)
      : boxes_(m), queue_(queue), sender_(queue), recorded_(cuda::is_recording(queue)) {
    // An edge between branches of a graph takes longer than the copies that it lets overlap.
    const bool few = bytes <= m.piece() * Mailboxes::boxes;
    if (bytes > 0 && !(recorded_ && few)) sender_ = m.sender();
    m.follow(sender_, queue);
  }
  Mailboxes& boxes() const { return boxes_; }
  cuda::Queue queue() const { return queue_; }
  void put(int to, const std::byte* from, std::size_t bytes) const { boxes_.put(sender_, to, from, bytes); }
  /// The queue continues after all puts.
  void end() const { boxes_.follow(queue_, sender_); }

  /// put(number) and take(number) of all pieces, each until they return false, in an order that ends even if the GPU runs all queues one
  /// after the other, as it does where it has fewer channels than queues: puts are as many pieces ahead of takes as there are boxes. A
  /// recorded graph keeps no order but that of its edges, so there each put follows the take before it, and each take its put.
  template <class Put, class Take>
  void run(const Put& put, const Take& take) const {
    const bool edges = recorded_ && sender_ != queue_;
    std::size_t done = 0;  // puts
    bool puts = true, takes = true;
    const auto take_piece = [&](std::size_t k) {
      if (edges && k < done) boxes_.hold(queue_, k);
      return take(k);
    };
    for (std::size_t k = 0; puts || takes; ++k) {
      if (k >= Mailboxes::boxes && takes) takes = take_piece(k - Mailboxes::boxes);
      if (edges && puts && k >= Mailboxes::boxes) boxes_.follow(sender_, queue_);
      puts = puts && put(k);
      if (puts) ++done;
      if (edges && puts) boxes_.mark(k);
    }
  }

 private:
  Mailboxes& boxes_;
  cuda::Queue queue_, sender_;
  bool recorded_;
};

// Of equal transfers between all ranks: what goes to a rank begins at part_of(rank).
template <class PartOf>
auto put_parts(const Passage& way, std::size_t bytes, const PartOf& part_of) {
  return [&way, bytes, part_of](std::size_t k) {
    const Piece p = piece_at(way.boxes(), bytes, k);
    if (p.bytes > 0) each_other(way.boxes(), [&](int r) { way.put(r, part_of(r) + p.begin, p.bytes); });
    return p.bytes > 0;
  };
}

void copy(cuda::Queue queue, const std::byte* from, const std::byte* to, std::size_t bytes) {
  if (from != to && bytes > 0) cuda::copy(queue, from, const_cast<std::byte*>(to), bytes);
}

// use(rank, piece, data) of each other rank.
template <class Use>
auto take_each(const Passage& way, std::size_t bytes, const Use& use) {
  return [&way, bytes, use](std::size_t k) {
    const Piece p = piece_at(way.boxes(), bytes, k);
    if (p.bytes == 0) return false;
    each_other(way.boxes(), [&](int r) {
      use(r, p, way.boxes().take(way.queue(), r));
      way.boxes().give_back(way.queue(), r);
    });
    return true;
  };
}
// Each part that arrives is copied to place_of(rank).
template <class PlaceOf>
auto copy_each(const Passage& way, std::size_t bytes, const PlaceOf& place_of) {
  return take_each(way, bytes, [&way, place_of](int r, const Piece& p, const std::byte* data) {
    copy(way.queue(), data, place_of(r) + p.begin, p.bytes);
  });
}

// use(piece, parts) of all ranks' parts, in their order; `own` is the part that stays here.
template <class Use>
auto take_all(const Passage& way, const std::byte* own, std::size_t bytes, const Use& use) {
  return [&way, own, bytes, use](std::size_t k) {
    Mailboxes& m = way.boxes();
    const Piece p = piece_at(m, bytes, k);
    if (p.bytes == 0) return false;
    std::vector<const void*> parts(std::size_t(m.size()));
    parts[std::size_t(m.rank())] = own + p.begin;
    each_other(m, [&](int r) { parts[std::size_t(r)] = m.take(way.queue(), r); });
    use(p, std::span<const void* const>(parts));
    each_other(m, [&](int r) { m.give_back(way.queue(), r); });
    return true;
  };
}

bool nothing(std::size_t) { return false; }

Tensor piece_of(const Tensor& of, const Piece& p) { return {of.u8() + p.begin, {std::int64_t(p.bytes / size_of(of.dtype))}, of.dtype}; }

void all_gather(const Passage& way, const Tensor& from, const Tensor& to) {
  const std::size_t n = from.bytes();
  copy(way.queue(), bytes_of(from), bytes_of(to) + std::size_t(way.boxes().rank()) * n, n);
  way.run(put_parts(way, n, [&](int) { return bytes_of(from); }),
          copy_each(way, n, [&](int r) { return bytes_of(to) + std::size_t(r) * n; }));
}

void all_to_all(const Passage& way, const Tensor& from, const Tensor& to) {
  const std::size_t n = from.bytes() / std::size_t(way.boxes().size()), own = std::size_t(way.boxes().rank()) * n;
  copy(way.queue(), bytes_of(from) + own, bytes_of(to) + own, n);
  way.run(put_parts(way, n, [&](int r) { return bytes_of(from) + std::size_t(r) * n; }),
          copy_each(way, n, [&](int r) { return bytes_of(to) + std::size_t(r) * n; }));
}

void reduce_scatter(const Passage& way, const Tensor& from, const Tensor& to) {
  const std::size_t n = to.bytes();
  way.run(put_parts(way, n, [&](int r) { return bytes_of(from) + std::size_t(r) * n; }),
          take_all(way, bytes_of(from) + std::size_t(way.boxes().rank()) * n, n,
                   [&](const Piece& p, std::span<const void* const> parts) { combine(way.queue(), parts, piece_of(to, p)); }));
}

std::size_t most_to_a_rank(const Mailboxes& m, const Call& c) {
  switch (c.kind) {
    case Collective::receive: return 0;
    case Collective::reduce_scatter:
    case Collective::all_to_all: return c.from.bytes() / std::size_t(m.size());
    default: return c.from.bytes();
  }
}

void send(const Passage& way, const Tensor& x, int to) {
  const auto put = [&](std::size_t k) {
    const Piece p = piece_at(way.boxes(), x.bytes(), k);
    if (p.bytes > 0) way.put(to, bytes_of(x) + p.begin, p.bytes);
    return p.bytes > 0;
  };
  way.run(put, nothing);
}

void receive(const Passage& way, const Tensor& x, int from) {
  const auto take = [&](std::size_t k) {
    const Piece p = piece_at(way.boxes(), x.bytes(), k);
    if (p.bytes == 0) return false;
    copy(way.queue(), way.boxes().take(way.queue(), from), bytes_of(x) + p.begin, p.bytes);
    way.boxes().give_back(way.queue(), from);
    return true;
  };
  way.run(nothing, take);
}

}  // namespace

// The library's own sum of all values at every rank is as fast.
bool carries(const Call& c) {
  if (c.whole().bytes() < least_bytes || c.uneven()) return false;
  switch (c.kind) {
    case Collective::reduce_scatter: return c.reduction == Reduction::sum && (c.from.dtype == DType::f32 || c.from.dtype == DType::bf16);
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::barrier: return false;
    default: return true;
  }
}

void run(Mailboxes& m, cuda::Queue queue, const Call& c, const Call* second) {
  const Passage way(m, queue, most_to_a_rank(m, c));
  switch (c.kind) {
    case Collective::reduce_scatter: reduce_scatter(way, c.from, c.to); break;
    case Collective::all_gather: all_gather(way, c.from, c.to); break;
    case Collective::all_to_all: all_to_all(way, c.from, c.to); break;
    case Collective::receive: receive(way, c.to, c.peer); break;
    default: send(way, c.from, c.peer); break;
  }
  if (second != nullptr) receive(way, second->to, second->peer);
  way.end();
}

void begin_send(Mailboxes& m, cuda::Queue queue, const Tensor& x, int to) { send(Passage(m, queue, x.bytes()), x, to); }

void all_to_all(Mailboxes& m, cuda::Queue queue, const Tensor& from, const Communicator::UseParts& use) {
  const std::size_t n = from.bytes() / std::size_t(m.size()), size = size_of(from.dtype);
  std::vector<Tensor> tensors(std::size_t(m.size()));
  const Passage way(m, queue, n);
  way.run(put_parts(way, n, [&](int r) { return bytes_of(from) + std::size_t(r) * n; }),
          take_all(way, bytes_of(from) + std::size_t(m.rank()) * n, n, [&](const Piece& p, std::span<const void* const> parts) {
            for (std::size_t r = 0; r < parts.size(); ++r)
              tensors[r] = {const_cast<void*>(parts[r]), {std::int64_t(p.bytes / size)}, from.dtype};
            use(std::int64_t(p.begin / size), tensors);
          }));
  way.end();
}

void all_gather(Mailboxes& m, cuda::Queue queue, const Tensor& from, const Communicator::UsePart& use) {
  const std::size_t size = size_of(from.dtype);
  const Passage way(m, queue, from.bytes());
  way.run(put_parts(way, from.bytes(), [&](int) { return bytes_of(from); }),
          take_each(way, from.bytes(), [&](int r, const Piece& p, const std::byte* data) {
            use(r, std::int64_t(p.begin / size), {const_cast<std::byte*>(data), {std::int64_t(p.bytes / size)}, from.dtype});
          }));
  way.end();
}

}  // namespace octet::comm::peer

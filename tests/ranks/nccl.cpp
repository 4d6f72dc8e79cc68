// Ranks on GPUs, one process each: every collective compared with plain loops, the 8-bit sum, its speed beside NCCL's own, a lost rank.
//   for r in 0 1; do CUDA_VISIBLE_DEVICES=$r RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29611 octet_nccl_ranks & done; wait
// With the argument "lost" rank 1 ends before the last collective, with "replay" before the last launch of a recorded graph. The others
// must say so within 5 seconds. With "check" nothing is timed: ranks may then share a GPU, with NCCL_MULTI_RANK_GPU_ENABLE=1 or with
// another NCCL_HOSTID each.

#include <cmath>
#include <cstdio>
#include <cstring>

#include "octet/base/clock.hpp"
#include "octet/comm/nccl/nccl.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/comm/rendezvous/rendezvous.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/tensor/stream_event.hpp"
#include "octet/tensor/replay.hpp"

namespace octet {
namespace {

using comm::Collective, comm::Communicator, comm::Reduction;

int failures = 0;
void expect(bool ok, const char* what) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what);
}

float value(int rank, std::int64_t i) { return float((rank * 7919 + i * 104729) % 2001 - 1000); }  // sums of 8 ranks are exact in FP32

Tensor filled(Stream& s, int rank, std::int64_t n) {
  std::vector<float> host(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) host[std::size_t(i)] = value(rank, i);
  const Tensor x = s.empty({n}, DType::f32);
  upload(s, host.data(), x);
  return x;
}

template <class Wanted>
void compare(Stream& s, const Tensor& x, const char* what, const Wanted& wanted) {
  const HostCopy host(s, x);
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) different += host.as<float>()[i] != wanted(i);
  expect(different == 0, what);
}

void check_collectives(Stream& s, Communicator& c) {
  const int size = c.size(), rank = c.rank();
  const auto sum = [&](std::int64_t i) {
    float out = 0;
    for (int r = 0; r < size; ++r) out += value(r, i);
    return out;
  };
  for (const std::int64_t n : {0, 1, 1000, 100003}) {
    const Scope scope(s);
    const Tensor x = filled(s, rank, n), top = filled(s, rank, n), whole = filled(s, rank, n * size), part = s.empty({n}, DType::f32);
    c.all_reduce(s, x, Reduction::sum), c.all_reduce(s, top, Reduction::max), c.reduce_scatter(s, whole, part, Reduction::sum);
    c.finish(s);
    compare(s, x, "all_reduce sum", sum);
    compare(s, top, "all_reduce max", [&](std::int64_t i) {
      float out = value(0, i);
      for (int r = 1; r < size; ++r) out = std::max(out, value(r, i));
      return out;
    });
    compare(s, part, "reduce_scatter", [&](std::int64_t i) { return sum(rank * n + i); });
    const Tensor all = s.empty({n * size}, DType::f32), own = filled(s, rank, n), in = s.empty({n * size}, DType::f32);
    c.all_gather(s, own, all), c.all_to_all(s, whole, in), c.broadcast(s, own, size - 1);
    compare(s, all, "all_gather", [&](std::int64_t i) { return value(int(i / n), i % n); });
    compare(s, in, "all_to_all", [&](std::int64_t i) { return value(int(i / n), rank * n + i % n); });
    compare(s, own, "broadcast", [&](std::int64_t i) { return value(size - 1, i); });
    if (size < 2) continue;
    const Tensor out = filled(s, rank, n), got = s.empty({n}, DType::f32);
    c.exchange(s, out, (rank + 1) % size, got, (rank + size - 1) % size);
    compare(s, got, "exchange", [&](std::int64_t i) { return value((rank + size - 1) % size, i); });
  }
  const auto part = c.split(0, -rank);
  expect(part->size() == size && part->rank() == size - 1 - rank, "split");
  part->barrier(s);
}

// Rank r sends (r + 2 q) % 3 pieces of n values to rank q: to some none.
void check_uneven_parts(Stream& s, Communicator& c) {
  for (const std::int64_t n : {1, 1000, 100003}) {
    const Scope scope(s);
    const auto count = [&](int from, int to) { return (from + 2 * to) % 3 * n; };
    std::vector<std::int64_t> sent, received, begins, firsts;
    std::int64_t out = 0, in = 0;
    for (int r = 0; r < c.size(); ++r) {
      begins.push_back(in), firsts.push_back(0);
      for (int q = 0; q < c.rank(); ++q) firsts.back() += count(r, q);
      sent.push_back(count(c.rank(), r)), received.push_back(count(r, c.rank()));
      out += sent.back(), in += received.back();
    }
    const Tensor from = filled(s, c.rank(), out), to = s.empty({in}, DType::f32);
    c.all_to_all(s, from, sent, to, received);
    c.finish(s);
    compare(s, to, "all_to_all of uneven parts", [&](std::int64_t i) {
      int r = c.size() - 1;
      while (begins[std::size_t(r)] > i) --r;
      return value(r, firsts[std::size_t(r)] + i - begins[std::size_t(r)]);
    });
  }
}

// Many pieces of peer memory, normally and in a recorded graph, with work of another queue that uses the same ranks.
void check_pieces(Stream& s, Communicator& c) {
  const std::int64_t n = 50'000'003;  // per rank
  Stream side(s);
  const Scope scope(s);
  const Tensor own = filled(s, c.rank(), n), all = s.empty({n * c.size()}, DType::f32), parts = filled(s, c.rank(), n * c.size());
  const Tensor sums = s.empty({n}, DType::f32), added = s.zeros({n}, DType::f32);
  Replay replay;
  for (int i = 0; i < 5; ++i) {
    clear(s, all), clear(s, sums);
    replay.run(s, {}, [&] {
      wait_for(side, s);
      c.reduce_scatter(side, parts, sums, Reduction::sum);
      c.all_gather(s, own, all);
      c.all_to_all(s, parts, [&](std::int64_t begin, std::span<const Tensor> arrived) {
        for (int r = 0; r < c.size(); ++r)
          if (r == (c.rank() + 1) % c.size()) copy(s, arrived[std::size_t(r)], added.rows(begin, arrived[std::size_t(r)].count()));
      });
      wait_for(s, side);
    });
    c.finish(s);
  }
  const int next = (c.rank() + 1) % c.size();
  compare(s, all, "all_gather in pieces", [&](std::int64_t i) { return value(int(i / n), i % n); });
  compare(s, added, "all_to_all in pieces", [&](std::int64_t i) { return value(next, c.rank() * n + i); });
  compare(s, sums, "reduce_scatter in pieces", [&](std::int64_t i) {
    float out = 0;
    for (int r = 0; r < c.size(); ++r) out += value(r, c.rank() * n + i);
    return out;
  });
}

// A group is the first work of its queue, so that its ranks connect for it: a tensor that peer memory carries, and one that it does not.
void check_first_group(Stream& s, Communicator& c) {
  Stream side(s);
  const Scope scope(side);
  const std::int64_t large = 1'000'003, small = 64;
  const Tensor a = filled(side, c.rank(), large), b = filled(side, c.rank() + 8, small);
  const Tensor all_a = side.empty({large * c.size()}, DType::f32), all_b = side.empty({small * c.size()}, DType::f32);
  c.together(side, [&] { c.all_gather(side, a, all_a), c.all_gather(side, b, all_b); });
  c.finish(side);
  compare(side, all_a, "a group's large tensor", [&](std::int64_t i) { return value(int(i / large), i % large); });
  compare(side, all_b, "a group's small tensor", [&](std::int64_t i) { return value(int(i / small) + 8, i % small); });
}

// Sends that are begun before either rank receives, larger than all boxes.
void check_begun_sends(Stream& s, Communicator& c) {
  if (c.size() < 2) return;
  const std::int64_t n = 10'000'000;
  const Scope scope(s);
  const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
  const Tensor out[2] = {filled(s, c.rank(), n), filled(s, c.rank() + 8, n)}, in = s.empty({n}, DType::f32);
  const comm::BegunSend sends[2] = {c.begin_send(s, out[0], next), c.begin_send(s, out[1], next)};
  for (int i = 0; i < 2; ++i) {
    c.receive(s, in, before);
    c.finish_send(sends[i]);
    compare(s, in, "begun sends", [&](std::int64_t k) { return value(before + 8 * i, k); });
  }
}

void check_eight_bits(Stream& s, Communicator& c) {
  const std::int64_t n = 1'000'003;
  const Tensor x = filled(s, c.rank(), n);
  parallel::EightBitSum(c).all_reduce(s, x);
  c.finish(s);
  const HostCopy host(s, x);
  double error = 0, energy = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int r = 0; r < c.size(); ++r) sum += value(r, i);
    error += std::pow(host.as<float>()[i] - sum, 2), energy += sum * sum;
  }
  if (c.rank() == 0) std::printf("8-bit sum: relative error %.4f\n", std::sqrt(error / energy));
  expect(std::sqrt(error / energy) < 0.045, "the error of the 8-bit sum");
}

// Chunks, also in a recorded graph: the bits of one piece.
void check_chunks(Stream& s, Communicator& c) {
  const std::int64_t n = 1'000'003;
  const Scope scope(s);
  const Tensor whole = filled(s, c.rank(), n), chunks = s.empty({n}, DType::f32);
  parallel::EightBitSum(c).all_reduce(s, whole);
  parallel::EightBitSum sum(c, 1 << 16);
  Replay replay;
  for (int i = 0; i < 5; ++i) {
    copy(s, filled(s, c.rank(), n), chunks);
    replay.run(s, {}, [&] { sum.all_reduce(s, chunks); });
    c.finish(s);
    const HostCopy wanted(s, whole), got(s, chunks);
    expect(std::memcmp(wanted.as<float>(), got.as<float>(), std::size_t(n) * sizeof(float)) == 0, "chunks of the 8-bit sum");
  }
}

template <class F>
double seconds_of(Stream& s, Communicator& c, const F& f) {
  double best = 1e9;
  for (int i = 0; i < 8; ++i) {
    c.barrier(s);
    const double start = monotonic_seconds();
    f();
    c.finish(s);
    best = std::min(best, monotonic_seconds() - start);
  }
  return best;
}

double seconds_in_8_bits(Stream& s, Communicator& c, const Tensor& x) {
  parallel::EightBitSum sum(c);
  return seconds_of(s, c, [&] { sum.all_reduce(s, x); });
}

void measure(Stream& s, Communicator& c) {
  for (const std::int64_t mib : {16, 256, 1024}) {
    const Scope scope(s);
    const Tensor x = s.zeros({mib << 19}, DType::bf16);
    const double plain = seconds_of(s, c, [&] { c.all_reduce(s, x, Reduction::sum); });
    const double coded = seconds_in_8_bits(s, c, x);
    if (c.rank() == 0)
      std::printf("%lld MiB: BF16 %.3f ms, 8 bits %.3f ms, %.2fx\n", (long long)(mib), plain * 1e3, coded * 1e3, plain / coded);
  }
}

int lose_a_rank(Stream& s, Communicator& c, bool recorded) {
  const Tensor x = s.zeros({1 << 20}, DType::f32);
  Replay replay;
  const auto sum = [&] { c.all_reduce(s, x, Reduction::sum); };
  const auto step = [&] { recorded ? replay.run(s, {}, sum) : sum(); };
  for (int i = 0; i < 5; ++i) step();
  c.barrier(s);
  if (c.rank() == 1) std::_Exit(0);
  const double start = monotonic_seconds();
  try {
    step(), c.finish(s);
    expect(false, "a lost rank was not noticed");
  } catch (const comm::CommError& e) {
    std::printf("after %.1f s: %s\n", monotonic_seconds() - start, e.what());
    expect(monotonic_seconds() - start < 8, "the time limit");
  }
  return failures == 0 ? 0 : 1;
}

int run(std::string_view part) {
  const bool lost = part == "lost" || part == "replay";
  const comm::LaunchedRank p = comm::launched_rank_from_environment();
  comm::Met met = comm::meet({p.rank, p.size, p.host, p.port}, "nccl test", p.rank == 0 ? comm::make_nccl_id() : "");
  auto heartbeats = std::make_shared<comm::Heartbeats>(p.rank, std::move(met.connections));
  const auto c = comm::connect_nccl(p.rank, p.size, met.message, {.limit_seconds = lost ? 5.0 : 60.0, .peer_memory = part != "nccl"},
                                    std::move(heartbeats));
  Stream s(Device::cuda, {.device = Device::cuda});
  if (lost) return lose_a_rank(s, *c, part == "replay");
  check_first_group(s, *c), check_collectives(s, *c), check_uneven_parts(s, *c), check_eight_bits(s, *c), check_chunks(s, *c),
      check_pieces(s, *c);
  if (part != "nccl") check_begun_sends(s, *c);  // NCCL's wait for their receives
  if (part != "check") measure(s, *c);
  c->barrier(s);
  if (p.rank == 0) std::printf(failures == 0 ? "all right\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    return octet::run(argc > 1 ? argv[1] : "");
  } catch (const octet::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return int(e.code());
  }
}

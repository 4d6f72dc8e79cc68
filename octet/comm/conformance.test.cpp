#include "octet/comm/conformance.testing.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "octet/comm/self/self.hpp"
#include "octet/comm/threads/threads.hpp"

namespace octet::comm::testing {
namespace {

constexpr std::int64_t counts[] = {0, 1, 7, 64, 257, 5000};

// A number that only this element of this rank has.
double number(int rank, std::int64_t i) {
  const std::uint64_t mixed = (std::uint64_t(rank) * 1000003 + std::uint64_t(i) + 1) * 0x9E3779B97F4A7C15u;
  return double(std::int64_t(mixed >> 20)) * 0x1p-40 - 8;
}
template <class T>
T value(int rank, std::int64_t i) {
  if constexpr (std::is_integral_v<T>) return T(std::int64_t(number(rank, i) * 1e6));
  else if constexpr (std::is_same_v<T, Bf16>) return to_bf16(float(number(rank, i)));
  else return T(number(rank, i));
}

template <class T>
Tensor filled(Stream& s, std::int64_t n, int rank) {
  const Tensor x = s.empty({n}, dtype_of<T>);
  for (std::int64_t i = 0; i < n; ++i) x.as<T>()[i] = value<T>(rank, i);
  return x;
}

template <class T>
T sum_in_order(int size, std::int64_t i) {
  if constexpr (std::is_same_v<T, Bf16>) {
    float sum = to_float(value<T>(0, i));
    for (int r = 1; r < size; ++r) sum += to_float(value<T>(r, i));
    return to_bf16(sum);
  } else {
    T sum = value<T>(0, i);
    for (int r = 1; r < size; ++r) sum += value<T>(r, i);
    return sum;
  }
}

template <class T>
double plain(T x) {
  if constexpr (std::is_same_v<T, Bf16>) return to_float(x);
  else return double(x);
}
template <class T>
T largest(int size, std::int64_t i) {
  T out = value<T>(0, i);
  for (int r = 1; r < size; ++r)
    if (plain(value<T>(r, i)) > plain(out)) out = value<T>(r, i);
  return out;
}

template <class T>
void expect_equal(const Tensor& got, std::int64_t i, T wanted, const char* what) {
  EXPECT_EQ(std::memcmp(&got.as<T>()[i], &wanted, sizeof(T)), 0) << what << " of " << name(got.dtype) << " at " << i;
}

template <class T>
void expect_reductions(Communicator& c) {
  for (const std::int64_t n : counts) {
    Stream s(Device::cpu);
    const Tensor sum = filled<T>(s, n, c.rank()), top = filled<T>(s, n, c.rank());
    c.all_reduce(s, sum, Reduction::sum), c.all_reduce(s, top, Reduction::max);
    for (std::int64_t i = 0; i < n; ++i)
      expect_equal(sum, i, sum_in_order<T>(c.size(), i), "sum"), expect_equal(top, i, largest<T>(c.size(), i), "max");

    const Tensor whole = filled<T>(s, n * c.size(), c.rank()), shard = s.empty({n}, dtype_of<T>);
    c.reduce_scatter(s, whole, shard, Reduction::sum);
    for (std::int64_t i = 0; i < n; ++i) expect_equal(shard, i, sum_in_order<T>(c.size(), c.rank() * n + i), "reduce_scatter");
    const Tensor own = whole.rows(c.rank() * n, n);
    c.reduce_scatter(s, whole, own, Reduction::max);
    for (std::int64_t i = 0; i < n; ++i) expect_equal(own, i, largest<T>(c.size(), c.rank() * n + i), "reduce_scatter in place");
  }
}

template <class T>
void expect_moves(Communicator& c) {
  for (const std::int64_t n : counts) {
    Stream s(Device::cpu);
    const Tensor mine = filled<T>(s, n, c.rank()), all = s.empty({n * c.size()}, dtype_of<T>);
    c.all_gather(s, mine, all);
    for (std::int64_t i = 0; i < all.count(); ++i) expect_equal(all, i, value<T>(int(i / n), i % n), "all_gather");
    const Tensor in_place = s.zeros({n * c.size()}, dtype_of<T>), place = in_place.rows(c.rank() * n, n);
    std::memcpy(place.data, mine.data, mine.bytes());
    c.all_gather(s, place, in_place);
    EXPECT_EQ(std::memcmp(in_place.data, all.data, all.bytes()), 0);

    const Tensor out = filled<T>(s, n * c.size(), c.rank()), in = s.empty({n * c.size()}, dtype_of<T>);
    c.all_to_all(s, out, in);
    for (std::int64_t i = 0; i < in.count(); ++i) expect_equal(in, i, value<T>(int(i / n), c.rank() * n + i % n), "all_to_all");
    for (int root = 0; root < c.size(); ++root) {
      const Tensor x = filled<T>(s, n, c.rank());
      c.broadcast(s, x, root);
      for (std::int64_t i = 0; i < n; ++i) expect_equal(x, i, value<T>(root, i), "broadcast");
    }
  }
}

// Rank r sends (2 r + 3 q) % 5 pieces of n values to rank q: to some none, and no two ranks have equal sums.
template <class T>
void expect_uneven_moves(Communicator& c) {
  for (const std::int64_t n : counts) {
    Stream s(Device::cpu);
    const auto count = [&](int from, int to) { return (2 * from + 3 * to) % 5 * n; };
    std::vector<std::int64_t> sent, received;
    std::int64_t out = 0, in = 0;
    for (int r = 0; r < c.size(); ++r) {
      sent.push_back(count(c.rank(), r)), received.push_back(count(r, c.rank()));
      out += sent.back(), in += received.back();
    }
    const Tensor from = filled<T>(s, out, c.rank()), to = s.empty({in}, dtype_of<T>);
    const Traffic before = c.traffic(Collective::all_to_all);
    const std::int64_t counted = s.work().sent_bytes;
    const auto expect_values = [&](const Tensor& got, const char* name) {
      std::int64_t at = 0;
      for (int r = 0; r < c.size(); ++r) {
        std::int64_t first = 0;
        for (int q = 0; q < c.rank(); ++q) first += count(r, q);
        for (std::int64_t i = 0; i < received[std::size_t(r)]; ++i, ++at) expect_equal(got, at, value<T>(r, first + i), name);
      }
    };
    c.all_to_all(s, from, sent, to, received);
    expect_values(to, "uneven all_to_all");
    const std::int64_t bytes = (out - sent[std::size_t(c.rank())]) * std::int64_t(sizeof(T));
    EXPECT_EQ(c.traffic(Collective::all_to_all) - before, (Traffic{1, bytes}));
    // Two exchanges under way, with another call between them.
    const Tensor one = s.empty({in}, dtype_of<T>), two = s.empty({in}, dtype_of<T>);
    const BegunExchange first = c.begin_all_to_all(s, from, sent, one, received);
    c.all_to_all(s, from, sent, to, received);
    const BegunExchange second = c.begin_all_to_all(s, from, sent, two, received);
    c.finish_all_to_all(first), c.finish_all_to_all(second);
    expect_values(one, "uneven all_to_all in two parts"), expect_values(two, "uneven all_to_all in two parts");
    EXPECT_EQ(c.traffic(Collective::all_to_all) - before, (Traffic{4, 4 * bytes}));
    EXPECT_EQ(s.work().sent_bytes, counted) << "a plan does not know them";
  }
}

// Each value of each other rank's part is shown once, and those of the own part where all are needed.
template <class T>
void expect_pieces(Communicator& c) {
  for (const std::int64_t n : counts) {
    Stream s(Device::cpu);
    const Tensor all = filled<T>(s, n * c.size(), c.rank()), own = filled<T>(s, n, c.rank());
    std::vector<std::int64_t> seen(std::size_t(c.size()), 0);
    c.all_to_all(s, all, [&](std::int64_t begin, std::span<const Tensor> parts) {
      ASSERT_EQ(int(parts.size()), c.size());
      for (int r = 0; r < c.size(); ++r) {
        const Tensor& part = parts[std::size_t(r)];
        for (std::int64_t i = 0; i < part.count(); ++i)
          expect_equal(part, i, value<T>(r, c.rank() * n + begin + i), "all_to_all in pieces");
        seen[std::size_t(r)] += part.count();
      }
    });
    for (const std::int64_t count : seen) EXPECT_EQ(count, n);
    std::fill(seen.begin(), seen.end(), 0);
    c.all_gather(s, own, [&](int r, std::int64_t begin, const Tensor& part) {
      EXPECT_NE(r, c.rank());
      for (std::int64_t i = 0; i < part.count(); ++i) expect_equal(part, i, value<T>(r, begin + i), "all_gather in pieces");
      seen[std::size_t(r)] += part.count();
    });
    for (int r = 0; r < c.size(); ++r) EXPECT_EQ(seen[std::size_t(r)], r == c.rank() ? 0 : n);
  }
}

void expect_transfers(Communicator& c) {
  if (c.size() < 2) return;
  const int next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
  for (const std::int64_t n : counts) {
    Stream s(Device::cpu);
    const Tensor out = filled<float>(s, n, c.rank()), in = s.empty({n}, DType::f32);
    c.exchange(s, out, next, in, last);
    for (std::int64_t i = 0; i < n; ++i) expect_equal(in, i, value<float>(last, i), "exchange");
    if (c.rank() == 0) c.send(s, out, next);
    if (c.rank() == 1) c.receive(s, in, 0);
    if (c.rank() == 1)
      for (std::int64_t i = 0; i < n; ++i) expect_equal(in, i, value<float>(0, i), "receive");
    c.barrier(s);
    if (c.rank() == 0) {
      const Tensor other = filled<float>(s, n, 7);
      const BegunSend first = c.begin_send(s, out, 1), second = c.begin_send(s, other, 1);
      c.finish_send(second), c.finish_send(first);
    }
    for (const int origin : {0, 7}) {
      if (c.rank() != 1) break;
      c.receive(s, in, 0);
      for (std::int64_t i = 0; i < n; ++i) expect_equal(in, i, value<float>(origin, i), "receive of a begun send");
    }
    c.barrier(s);
  }
}

// All ranks send before any receives, also more bytes than a backend buffers.
void expect_sends_beside_each_other(Communicator& c) {
  if (c.size() < 2) return;
  const int next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
  for (const std::int64_t n : {0, 7, 5000, 1 << 20}) {
    Stream s(Device::cpu);
    const Tensor out = filled<float>(s, n, c.rank()), later = filled<float>(s, n, 10 + c.rank()), in = s.empty({n}, DType::f32);
    const BegunSend begun = c.begin_send(s, out, next), other = c.begin_send(s, later, next);
    c.barrier(s);
    for (const int origin : {last, 10 + last}) {
      c.receive(s, in, last);
      for (std::int64_t i = 0; i < n; ++i) expect_equal(in, i, value<float>(origin, i), "receive from a rank that receives, too");
    }
    c.finish_send(begun), c.finish_send(other);
  }
}

// Even and odd ranks apart, each in descending order.
void expect_split(Communicator& c) {
  const auto part = c.split(c.rank() % 2, -c.rank());
  const int members = (c.size() + 1 - c.rank() % 2) / 2;
  ASSERT_EQ(part->size(), members);
  EXPECT_EQ(part->rank(), members - 1 - c.rank() / 2);
  Stream s(Device::cpu);
  const Tensor x = s.empty({1}, DType::i64);
  *x.as<std::int64_t>() = c.rank();
  part->all_reduce(s, x, Reduction::sum);
  std::int64_t wanted = 0;
  for (int r = c.rank() % 2; r < c.size(); r += 2) wanted += r;
  EXPECT_EQ(*x.as<std::int64_t>(), wanted);
}

}  // namespace

void expect_collectives(Communicator& c) {
  expect_reductions<float>(c), expect_reductions<Bf16>(c), expect_reductions<double>(c);
  expect_reductions<std::int32_t>(c), expect_reductions<std::int64_t>(c);
  expect_moves<float>(c), expect_moves<std::uint8_t>(c), expect_moves<Bf16>(c), expect_moves<double>(c);
  expect_uneven_moves<float>(c), expect_uneven_moves<std::uint8_t>(c), expect_uneven_moves<Bf16>(c);
  expect_pieces<float>(c), expect_pieces<std::uint8_t>(c), expect_pieces<Bf16>(c);
  expect_transfers(c);
  expect_sends_beside_each_other(c);
  expect_split(c);
}

TEST(Communicator, OneRankIsTheIdentity) {
  SelfCommunicator self;
  expect_collectives(self);
}

TEST(Communicator, ThreadsGiveTheBitsOfPlainLoops) {
  for (const int ranks : {1, 2, 3, 8}) run_on_threads({.ranks = ranks}, expect_collectives);
}

TEST(Communicator, MaximumIgnoresNanUnlessAllAreNan) {
  run_on_threads({.ranks = 3}, [](Communicator& c) {
    Stream s(Device::cpu);
    const Tensor x = s.empty({4}, DType::f32);
    for (int i = 0; i < 4; ++i) x.f32()[i] = i == c.rank() || i == 3 ? std::numeric_limits<float>::quiet_NaN() : float(c.rank());
    c.all_reduce(s, x, Reduction::max);
    EXPECT_EQ(x.f32()[0], 2);
    EXPECT_EQ(x.f32()[1], 2);
    EXPECT_EQ(x.f32()[2], 1);
    EXPECT_TRUE(x.f32()[3] != x.f32()[3]);
  });
}

// The bytes of an algorithm that sends no byte twice.
TEST(Communicator, CountsCallsAndBytesByName) {
  run_on_threads({.ranks = 4}, [](Communicator& c) {
    Stream s(Device::cpu);
    const Tensor whole = s.zeros({400}, DType::bf16), part = s.zeros({100}, DType::bf16), other = s.zeros({400}, DType::bf16);
    c.all_reduce(s, whole, Reduction::sum), c.all_reduce(s, whole, Reduction::max);
    c.reduce_scatter(s, whole, part, Reduction::sum), c.all_gather(s, part, whole), c.all_to_all(s, whole, other);
    c.broadcast(s, whole, 2), c.barrier(s);
    c.exchange(s, part, (c.rank() + 1) % 4, part.rows(0, 100), (c.rank() + 3) % 4);
    EXPECT_EQ(c.traffic(Collective::all_reduce), (Traffic{2, 2 * 1200}));
    for (const Collective one : {Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all})
      EXPECT_EQ(c.traffic(one), (Traffic{1, 600})) << name(one);
    EXPECT_EQ(c.traffic(Collective::broadcast), (Traffic{1, c.rank() == 2 ? 800 : 0}));
    EXPECT_EQ(c.traffic(Collective::send), (Traffic{1, 200}));
    EXPECT_EQ(c.traffic(Collective::receive), (Traffic{1, 0}));
    EXPECT_EQ(c.traffic().calls, 9);
  });
}

TEST(Communicator, CountsWithoutMemoryOnTheNullDevice) {
  run_on_threads({.ranks = 2}, [](Communicator& c) {
    Stream s(Device::null);
    c.all_reduce(s, s.empty({1 << 20}, DType::f32), Reduction::sum);
    EXPECT_EQ(c.traffic(Collective::all_reduce), (Traffic{1, 4 << 20}));
  });
}

TEST(Communicator, RefusesTensorsThatDoNotFit) {
  SelfCommunicator c;
  Stream s(Device::null);
  const Tensor x = s.empty({4}, DType::f32), y = s.empty({3}, DType::f32), codes = s.empty({4}, DType::u8);
  EXPECT_THROW(c.all_reduce(s, codes, Reduction::sum), ContractError);
  EXPECT_THROW(c.reduce_scatter(s, x, y, Reduction::sum), ContractError);
  EXPECT_THROW(c.all_gather(s, x, y), ContractError);
  EXPECT_THROW(c.all_gather(s, x, codes), ContractError);
  EXPECT_THROW(c.all_to_all(s, x, x), ContractError);
  const std::int64_t four[] = {4}, three[] = {3}, both[] = {2, 2};
  EXPECT_THROW(c.all_to_all(s, x, four, y, four), ContractError);
  EXPECT_THROW(c.all_to_all(s, x, three, y, three), ContractError);
  EXPECT_THROW(c.all_to_all(s, x, both, x, four), ContractError);
  EXPECT_THROW(c.broadcast(s, x, 1), ContractError);
  EXPECT_THROW(c.send(s, x, 0), ContractError);
  EXPECT_THROW(c.receive(s, x, -1), ContractError);
}

}  // namespace octet::comm::testing

#include "octet/parallel/eight_bit_sum.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "octet/comm/threads/threads.hpp"
#include "octet/ops/stored/stored.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::parallel {
namespace {

using comm::Communicator;

constexpr int rank_counts[] = {2, 3, 8, 64};

// Values of a rank: independent, or half of their energy common to all ranks.
std::vector<float> values_of(int rank, std::int64_t n, bool coherent) {
  std::vector<float> own = testing::gaussian(std::size_t(n), std::uint64_t(rank) + 1);
  if (!coherent) return own;
  const std::vector<float> common = testing::gaussian(std::size_t(n), 1000);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = float(std::sqrt(0.5)) * (own[i] + common[i]);
  return own;
}

// Half the distance of E4M3 codes about x, where the block's scale is the least power of two that holds its maximum: the largest error.
double half_step(double x, double descale) {
  const double y = std::max(std::fabs(x) / descale, double(E4M3::min_normal));
  return descale * std::exp2(std::floor(std::log2(y)) - E4M3::mantissa_bits - 1);
}
double descale_of(double amax) { return amax > 0 ? std::exp2(std::ceil(std::log2(amax / double(E4M3::max)))) : 1; }

// Encoding blocks of 128: the largest error of each value, and the mean square of errors that are uniform between two codes.
struct Rounding {
  std::vector<double> bound;
  double mean_square = 0;
};
Rounding rounding_of(const std::vector<double>& x) {
  Rounding r;
  for (std::size_t begin = 0; begin < x.size(); begin += 128) {
    const std::size_t end = std::min(begin + 128, x.size());
    double amax = 0;
    for (std::size_t i = begin; i < end; ++i) amax = std::max(amax, std::fabs(x[i]));
    for (std::size_t i = begin; i < end; ++i) {
      // A value next to a power of two, or a maximum next to the largest code, may be on either side of it in FP32.
      r.bound.push_back(half_step(x[i] * (1 + 0x1p-20), descale_of(amax * (1 + 0x1p-20))));
      r.mean_square += std::pow(2 * half_step(x[i], descale_of(amax)), 2) / 12 / double(x.size());
    }
  }
  return r;
}

// The exact sum and the errors that encoding the ranks' values may make.
struct Reference {
  std::vector<double> sum, bound;
  double mean_square = 0, energy = 0;

  Reference(int ranks, std::int64_t n, bool coherent) : sum(std::size_t(n)), bound(std::size_t(n)) {
    for (int r = 0; r < ranks; ++r) {
      const std::vector<float> own = values_of(r, n, coherent);
      const Rounding rounding = rounding_of({own.begin(), own.end()});
      for (std::size_t i = 0; i < own.size(); ++i) {
        sum[i] += own[i];
        bound[i] += rounding.bound[i] + (ranks - 1) * 0x1p-24 * 1.1 * std::fabs(own[i]);  // and of adding in FP32
      }
      mean_square += rounding.mean_square;
    }
    for (const double s : sum) energy += s * s / double(n);
  }
  // With the encoded sum. The sum of two codes is a code, or half way between two, each half of the time where both have one exponent: then
  // the mean square of that error is 3/2 of that of uniform ones.
  Reference gathered(double ties) const {
    Reference out = *this;
    std::vector<double> largest(sum);
    for (std::size_t i = 0; i < sum.size(); ++i) largest[i] = std::fabs(sum[i]) + bound[i];
    const Rounding worst = rounding_of(largest), exact = rounding_of(sum);
    for (std::size_t i = 0; i < sum.size(); ++i) out.bound[i] += worst.bound[i];
    out.mean_square += exact.mean_square * ties;
    return out;
  }
  double relative() const { return std::sqrt(mean_square / energy); }
};

// Each value within its bound; the relative error. `begin`: where got is in the whole.
double squared_error(const std::vector<double>& got, const Reference& wanted, std::int64_t begin) {
  double squares = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t at = std::size_t(begin) + i;
    const double error = got[i] - wanted.sum[at];
    EXPECT_LE(std::fabs(error), wanted.bound[at] * (1 + 1e-6)) << at;
    squares += error * error / double(wanted.sum.size());
  }
  return squares;
}

// The relative error of n independent errors is within 5 standard deviations of its expectation.
double tolerance(std::int64_t n) { return 5 / std::sqrt(double(n)); }

TEST(EightBitSum, ReduceScatterHasTheErrorOfOneRounding) {
  for (const int ranks : rank_counts)
    for (const bool coherent : {false, true}) {
      const std::int64_t n = std::int64_t(ranks) * round_up(8192 / ranks, 128);
      const Reference wanted(ranks, n, coherent);
      std::mutex mutex;
      double squares = 0;
      comm::run_on_threads({.ranks = ranks}, [&](Communicator& c) {
        Stream s(Device::cpu);
        const Tensor from = testing::tensor_of(s, values_of(c.rank(), n, coherent), {n}), to = s.empty({n / ranks}, DType::f32);
        EightBitSum(c).reduce_scatter(s, from, Stored::plain(to));
        const std::lock_guard lock(mutex);
        squares += squared_error(testing::values(to), wanted, c.rank() * (n / ranks));
      });
      const double relative = std::sqrt(squares / wanted.energy);
      EXPECT_NEAR(relative / wanted.relative(), 1, tolerance(n)) << ranks << (coherent ? " coherent" : "");
      if (!coherent) EXPECT_LT(relative, 0.0265 * (1 + tolerance(n))) << ranks;
      else EXPECT_LT(relative, 0.0265 / std::sqrt((1 + ranks) / 2.0) * (1 + 3 * tolerance(n))) << ranks;
    }
}

TEST(EightBitSum, AllReduceAddsOneRoundingAndGivesAllRanksTheSameBits) {
  for (const int ranks : rank_counts)
    for (const bool coherent : {false, true})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const std::int64_t n = 8192 + 37;
        const Reference parts(ranks, n, coherent), wanted = parts.gathered(1), most = parts.gathered(ranks == 2 ? 1.5 : 1);
        std::mutex mutex;
        std::vector<std::vector<std::uint8_t>> bytes;
        double relative = 0;
        comm::run_on_threads({.ranks = ranks}, [&](Communicator& c) {
          Stream s(Device::cpu);
          const Tensor x = testing::tensor_of(s, values_of(c.rank(), n, coherent), {n}, dtype);
          EightBitSum(c).all_reduce(s, x);
          const std::lock_guard lock(mutex);
          bytes.push_back(testing::bytes(x));
          if (dtype == DType::f32 && c.rank() == 0) relative = std::sqrt(squared_error(testing::values(x), wanted, 0) / wanted.energy);
        });
        for (const auto& b : bytes) EXPECT_EQ(b, bytes[0]) << ranks;
        if (dtype == DType::bf16) continue;
        EXPECT_GT(relative, wanted.relative() * (1 - tolerance(n))) << ranks << (coherent ? " coherent" : "");
        EXPECT_LT(relative, most.relative() * (1 + tolerance(n))) << ranks << (coherent ? " coherent" : "");
        EXPECT_LT(relative, (ranks == 2 ? 0.042 : 0.0375) * (1 + tolerance(n))) << ranks;
      }
}

// Codes that are sent as they are: the sum of encoded values equals that of the values that their encoding makes.
Stored encoded(Stream& s, const Tensor& x) {
  const std::int64_t n = x.count();
  Stored codes{
      .codes = s.empty({n}, DType::e4m3), .scales = s.empty(scales_shape(Storage::e4m3, n), DType::e8m0), .storage = Storage::e4m3};
  ops::encode_stored(s, x, codes);
  return codes;
}
TEST(EightBitSum, CodesAreNotEncodedAgain) {
  for (const std::int64_t n : {0, 1, 200, 1024}) {
    comm::run_on_threads({.ranks = 2}, [&](Communicator& c) {
      Stream s(Device::cpu);
      const Tensor x = testing::tensor_of(s, values_of(c.rank(), n, false), {n}), back = s.empty({n}, DType::f32);
      const Stored codes = encoded(s, x);
      EightBitSum(c).all_reduce(s, codes);
      ops::decode_stored(s, codes, back);
      EightBitSum(c).all_reduce(s, x);
      EXPECT_EQ(testing::bytes(back), testing::bytes(x)) << n;
    });
  }
}

// By the counters: 8.0625 bits per value in each of two directions.
TEST(EightBitSum, SendsAQuarterOfTheBytesOfF32) {
  comm::run_on_threads({.ranks = 4}, [](Communicator& c) {
    Stream s(Device::cpu);
    const std::int64_t n = 4 * 128 * 50;
    const Tensor x = s.zeros({n}, DType::f32);
    c.all_reduce(s, x, comm::Reduction::sum);
    const std::int64_t plain = c.traffic().bytes;
    EightBitSum(c).all_reduce(s, x);
    EXPECT_EQ(plain, 2 * 3 * n);
    EXPECT_EQ(c.traffic().bytes - plain, 2 * 3 * (n + n / 128) / 4);
  });
}

TEST(EightBitSum, NanReachesAllRanks) {
  comm::run_on_threads({.ranks = 3}, [](Communicator& c) {
    Stream s(Device::cpu);
    const Tensor x = s.zeros({1000}, DType::f32);
    if (c.rank() == 1) x.f32()[700] = INFINITY;
    EightBitSum(c).all_reduce(s, x);
    EXPECT_TRUE(std::isnan(x.f32()[700]));
    EXPECT_EQ(x.f32()[699], 0);
  });
}

TEST(EightBitSum, DryRunNeedsTheSameMemory) {
  comm::run_on_threads({.ranks = 2}, [](Communicator& c) {
    Stream real(Device::cpu), dry(Device::null);
    for (Stream* s : {&real, &dry}) EightBitSum(c).all_reduce(*s, s->zeros({1000}, DType::f32));
    EXPECT_EQ(real.arena().peak().total, dry.arena().peak().total);
    EXPECT_EQ(c.traffic(comm::Collective::all_to_all).calls, 4);
  });
}

// Chunks of at most 1,024 values: the bits of one piece, for sizes with and without padding.
TEST(EightBitSum, ChunksHaveTheBitsOfOnePiece) {
  for (const std::int64_t n : {0, 5, 1536, 8 * 384, 9 * 1024 + 77})
    for (const int ranks : {2, 3})
      comm::run_on_threads({.ranks = ranks}, [&](Communicator& c) {
        Stream s(Device::cpu);
        EightBitSum whole(c), chunks(c, 1024);
        const auto fresh = [&](std::int64_t count) { return testing::tensor_of(s, values_of(c.rank(), count, false), {count}); };
        const Tensor a = fresh(n), b = fresh(n);
        whole.all_reduce(s, a), chunks.all_reduce(s, b);
        EXPECT_EQ(testing::bytes(a), testing::bytes(b)) << n;
        const Stored codes[2] = {encoded(s, fresh(n)), encoded(s, fresh(n))};
        whole.all_reduce(s, codes[0]), chunks.all_reduce(s, codes[1]);
        EXPECT_EQ(testing::bytes(codes[0].codes), testing::bytes(codes[1].codes)) << n;
        EXPECT_EQ(testing::bytes(codes[0].scales), testing::bytes(codes[1].scales)) << n;
        const std::int64_t part = round_up(n, 128);
        const Tensor from = fresh(ranks * part), wanted = s.empty({part}, DType::f32), own = from.rows(c.rank() * part, part);
        whole.reduce_scatter(s, from, Stored::plain(wanted)), chunks.reduce_scatter(s, from, Stored::plain(own));
        EXPECT_EQ(testing::bytes(own), testing::bytes(wanted)) << n << ", where the sums replace values";
      });
}

TEST(EightBitSum, OneChunkIsInMemoryAtATime) {
  comm::run_on_threads({.ranks = 2}, [](Communicator& c) {
    Stream s(Device::null);
    const std::int64_t n = 100 * 1024, chunk = 1024, codes = chunk + round_up(chunk / 128, 256);
    const Tensor x = s.zeros({n}, DType::bf16, Lifetime::run);
    const std::size_t before = s.arena().peak().total;
    EightBitSum(c, chunk).all_reduce(s, x);
    EXPECT_EQ(s.arena().peak().total - before, std::size_t(2 * codes)) << "sent and received";
    EXPECT_EQ(c.traffic(comm::Collective::all_to_all).calls, 2 * 100) << "codes and scales of each chunk";
  });
}

// The same codes reach the owner, whether it stores their sum or adds it.
TEST(EightBitSum, AddsToWhatASumHas) {
  for (const Storage storage : {Storage::f32, Storage::bf16})
    comm::run_on_threads({.ranks = 3}, [&](Communicator& c) {
      Stream s(Device::cpu);
      const std::int64_t n = 640;
      const Tensor from = testing::tensor_of(s, values_of(c.rank(), 3 * n, false), {3 * n});
      const Tensor sum = s.empty({n}, DType::f32), old = testing::tensor_of(s, values_of(7, n, true), {n}, code_type(storage));
      const std::vector<double> before = testing::values(old);
      EightBitSum(c).reduce_scatter(s, from, Stored::plain(sum));
      EightBitSum(c).reduce_scatter(s, from, Stored::plain(old), true);
      const std::vector<double> after = testing::values(old);
      double most = 0;  // of a decoded part
      for (int r = 0; r < 3; ++r)
        for (const float x : values_of(r, 3 * n, false)) most = std::max(most, 1.1 * std::abs(double(x)));
      const double unit = storage == Storage::f32 ? 0x1p-24 : 0x1p-9;
      for (std::int64_t i = 0; i < n; ++i) {
        const double old_value = before[std::size_t(i)], wanted = old_value + sum.f32()[i];
        EXPECT_NEAR(after[std::size_t(i)], wanted, 2 * unit * std::abs(wanted) + 5 * 0x1p-24 * (std::abs(old_value) + 3 * most));
      }
    });
}

}  // namespace
}  // namespace octet::parallel

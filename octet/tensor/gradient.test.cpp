#include "octet/tensor/gradient.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

namespace octet {
namespace {

Gradient bound(std::initializer_list<GradientUse> uses, float* storage) {
  Gradient g;
  for (const GradientUse use : uses) g.add_use(use);
  g.bind(Stored::plain({storage, {1}, DType::f32}));
  return g;
}

TEST(Gradient, StoresOnceWhereContentsAreStale) {
  Stream stream(Device::cpu);
  float storage = 0;
  Gradient g = bound({GradientUse::product}, &storage);
  g.begin(Gradient::Contents::stale);
  EXPECT_FALSE(g.complete());
  EXPECT_FALSE(g.target(stream, GradientUse::product).accumulate);
  g.done(stream);
  EXPECT_TRUE(g.complete());
  EXPECT_TRUE(g.target(stream, GradientUse::product).accumulate);  // the next micro-batch
}

TEST(Gradient, OfATiedTableIsCompleteAfterBothUses) {
  Stream stream(Device::cpu);
  float storage = 0;
  Gradient g = bound({GradientUse::sum, GradientUse::products}, &storage);
  g.begin(Gradient::Contents::stale);
  EXPECT_FALSE(g.target(stream, GradientUse::products).accumulate);
  EXPECT_TRUE(g.target(stream, GradientUse::products).accumulate);  // the next chunk
  g.done(stream);
  EXPECT_FALSE(g.complete());
  EXPECT_TRUE(g.target(stream, GradientUse::sum).accumulate);
  g.done(stream);
  EXPECT_TRUE(g.complete());
}

// Of a stage with both ends of a pipeline: two heads, then the embedding of the first micro-batch.
TEST(Gradient, OfTwoPassesIsToldOfEachByItself) {
  struct Count final : GradientListener {
    void begin(Stream&, const Gradient&) override {}
    void complete(Stream&, const Gradient&) override { ++times; }
    int times = 0;
  } told;
  Stream stream(Device::cpu);
  float storage = 0;
  Gradient g;
  g.add_use(GradientUse::sum, 1), g.add_use(GradientUse::products), g.add_use(GradientUse::products);
  g.bind(Stored::plain({&storage, {1}, DType::f32}));
  g.begin(Gradient::Contents::zero), g.set_listener(&told);
  EXPECT_EQ(g.uses(), 3);
  EXPECT_EQ(g.passes(), 2);
  for (const auto& [pass, times] : {std::pair{0, 0}, {0, 1}, {0, 1}, {1, 2}, {0, 3}}) {
    g.done(stream, pass);
    EXPECT_EQ(told.times, times);
  }
  EXPECT_TRUE(g.complete());
  g.done(stream);
  EXPECT_FALSE(g.complete());
  g.set_listener(nullptr);
}

TEST(Gradient, OnlyOneProductPerMicroBatchMayBeNarrow) {
  float storage = 0;
  EXPECT_TRUE(bound({GradientUse::product}, &storage).may_be_narrow());
  EXPECT_FALSE(bound({GradientUse::products}, &storage).may_be_narrow());
  EXPECT_FALSE(bound({GradientUse::sum}, &storage).may_be_narrow());
  EXPECT_FALSE(bound({GradientUse::sum, GradientUse::product}, &storage).may_be_narrow());
}

TEST(Gradient, InSharedMemoryStoresItsFirstProductAndClearsBeforeItsFirstSum) {
  Stream stream(Device::cpu);
  for (const GradientUse use : {GradientUse::product, GradientUse::sum}) {
    float storage = 7;
    Gradient g = bound({use}, &storage);
    g.share_storage();
    g.begin(Gradient::Contents::foreign);
    EXPECT_FALSE(g.complete());
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      storage = 7;
      g.begin_micro_batch();
      EXPECT_EQ(g.target(stream, use).accumulate, use == GradientUse::sum);
      EXPECT_EQ(storage, use == GradientUse::sum ? 0.0f : 7.0f);
      g.done(stream);
      EXPECT_TRUE(g.complete());
    }
    g.begin_micro_batch();
    EXPECT_TRUE(g.complete()) << "a graph that is replayed calls nothing";
  }
}

TEST(Gradient, RefusesSumsOnStaleContentsAndUndeclaredUses) {
  Stream stream(Device::cpu);
  float storage = 0;
  Gradient g = bound({GradientUse::sum, GradientUse::products}, &storage);
  g.begin(Gradient::Contents::stale);
  EXPECT_THROW(g.target(stream, GradientUse::sum), ContractError);
  EXPECT_THROW(bound({GradientUse::sum}, &storage).begin(Gradient::Contents::stale), ContractError);
  EXPECT_THROW(bound({}, &storage).done(stream), ContractError);
  EXPECT_THROW(Gradient().target(stream, GradientUse::sum), ContractError);
}

TEST(Gradient, OfEightBitsGivesScratchOncePerMicroBatchThatWasNumbered) {
  Stream stream(Device::null);
  const Stored codes{.codes = stream.empty({3, 4}, DType::e4m3), .scales = stream.empty({1}, DType::e8m0), .storage = Storage::e4m3};
  const Tensor draws = stream.empty({2}, DType::i64);
  Gradient g;
  g.add_use(GradientUse::product);
  g.bind(codes, draws);
  g.begin(Gradient::Contents::stale);
  EXPECT_FALSE(g.complete());
  EXPECT_THROW(g.target(stream, GradientUse::product), ContractError);
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    g.begin_micro_batch();
    const auto [data, accumulate] = g.target(stream, GradientUse::product);
    EXPECT_EQ(data.dtype, Gradient::scratch_type(stream));
    EXPECT_NE(data.data, codes.codes.data);
    EXPECT_FALSE(accumulate);
    EXPECT_THROW(g.target(stream, GradientUse::product), ContractError) << "its draws would be the same";
    g.done(stream);
    EXPECT_TRUE(g.complete());
  }
  EXPECT_THROW(g.bind(codes), ContractError);
  g.add_use(GradientUse::sum);
  EXPECT_THROW(g.bind(codes, draws), ContractError);
}

}  // namespace
}  // namespace octet

#include "octet/tensor/gradient.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

namespace octet {
namespace {

Gradient bound(std::initializer_list<GradientUse> uses, float* storage) {
  Gradient g;
  for (const GradientUse use : uses) g.add_use(use);
  g.bind({storage, {1}, DType::f32});
  return g;
}

TEST(Gradient, StoresOnceWhereContentsAreStale) {
  float storage = 0;
  Gradient g = bound({GradientUse::product}, &storage);
  g.begin(Gradient::Contents::stale);
  EXPECT_FALSE(g.complete());
  EXPECT_FALSE(g.target(GradientUse::product).accumulate);
  g.done();
  EXPECT_TRUE(g.complete());
  EXPECT_TRUE(g.target(GradientUse::product).accumulate);  // the next micro-batch
}

TEST(Gradient, OfATiedTableIsCompleteAfterBothUses) {
  float storage = 0;
  Gradient g = bound({GradientUse::sum, GradientUse::products}, &storage);
  g.begin(Gradient::Contents::stale);
  EXPECT_FALSE(g.target(GradientUse::products).accumulate);
  EXPECT_TRUE(g.target(GradientUse::products).accumulate);  // the next chunk
  g.done();
  EXPECT_FALSE(g.complete());
  EXPECT_TRUE(g.target(GradientUse::sum).accumulate);
  g.done();
  EXPECT_TRUE(g.complete());
}

TEST(Gradient, OnlyOneProductPerMicroBatchMayBeNarrow) {
  float storage = 0;
  EXPECT_TRUE(bound({GradientUse::product}, &storage).may_be_narrow());
  EXPECT_FALSE(bound({GradientUse::products}, &storage).may_be_narrow());
  EXPECT_FALSE(bound({GradientUse::sum}, &storage).may_be_narrow());
  EXPECT_FALSE(bound({GradientUse::sum, GradientUse::product}, &storage).may_be_narrow());
}

TEST(Gradient, RefusesSumsOnStaleContentsAndUndeclaredUses) {
  float storage = 0;
  Gradient g = bound({GradientUse::sum, GradientUse::products}, &storage);
  g.begin(Gradient::Contents::stale);
  EXPECT_THROW(g.target(GradientUse::sum), ContractError);
  EXPECT_THROW(bound({GradientUse::sum}, &storage).begin(Gradient::Contents::stale), ContractError);
  EXPECT_THROW(bound({}, &storage).done(), ContractError);
  EXPECT_THROW(Gradient().target(GradientUse::sum), ContractError);
}

}  // namespace
}  // namespace octet

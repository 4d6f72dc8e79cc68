#include "octet/tensor/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "octet/tensor/stream.hpp"
#include "tests/testing/scratch.hpp"

namespace octet {
namespace {

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(Arena, AllocationsAreAlignedAndApart) {
  Arena arena(Device::cpu);
  std::uintptr_t end = 0;
  for (const std::size_t bytes : {1u, 255u, 256u, 257u, 0u, 1000u}) {
    void* const p = arena.allocate(bytes, Lifetime::scratch, Category::temporaries);
    ASSERT_NE(p, nullptr) << bytes;
    EXPECT_EQ(address(p) % 256, 0u) << bytes;
    EXPECT_GE(address(p), end) << "a stack grows by what was asked for before";
    end = address(p) + bytes;
  }
  EXPECT_EQ(arena.in_use(), 256u + 256 + 256 + 512 + 0 + 1024) << "in units of 256 bytes";
}

TEST(Arena, ReleaseGivesTheSameAddressesAgain) {
  Arena arena(Device::cpu);
  (void)arena.allocate(1000, Lifetime::step, Category::activations);
  const Arena::Mark mark = arena.mark(Lifetime::step);
  void* const first = arena.allocate(5000, Lifetime::step, Category::activations);
  (void)arena.allocate(7000, Lifetime::step, Category::activations);
  arena.release(Lifetime::step, mark);
  EXPECT_EQ(arena.in_use(), 1024u);
  EXPECT_EQ(arena.allocate(1, Lifetime::step, Category::activations), first);
  arena.clear(Lifetime::step);
  EXPECT_EQ(arena.in_use(), 0u);
}

TEST(Arena, RegionsDoNotShareBytes) {
  Arena arena(Device::cpu);
  const Region all[] = {Lifetime::run,     Lifetime::step, Region(Lifetime::micro_batch, 0), Region(Lifetime::micro_batch, 3),
                        Lifetime::scratch, Lifetime::host};
  std::vector<unsigned char*> parts;
  for (const Region& r : all) {
    parts.push_back(static_cast<unsigned char*>(arena.allocate(600, r, Category::weights)));
    std::fill_n(parts.back(), 600, static_cast<unsigned char>(parts.size()));
  }
  arena.clear(Lifetime::scratch), arena.clear(Region(Lifetime::micro_batch, 3));
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (int k = 0; k < 600; ++k) ASSERT_EQ(parts[i][k], i + 1) << "region " << i;
  EXPECT_EQ(arena.in_use(), 4u * 768);
}

TEST(Arena, RegionsOfTheNullDeviceDoNotShareAddresses) {
  Arena arena(Device::null), other(Device::null);
  constexpr std::size_t bytes = std::size_t(1) << 45;
  std::vector<std::uintptr_t> begins;
  for (Arena* a : {&arena, &other})
    for (const Region region : {Region(Lifetime::run), Region(Lifetime::step), Region(Lifetime::scratch)})
      begins.push_back(address(a->allocate(bytes, region, Category::temporaries)));
  std::ranges::sort(begins);
  for (std::size_t i = 1; i < begins.size(); ++i) EXPECT_GE(begins[i] - begins[i - 1], bytes);
}

TEST(Arena, TwoReleasesOutOfOrderAreRefused) {
  Arena arena(Device::null);
  (void)arena.allocate(1, Lifetime::scratch, Category::temporaries);
  const Arena::Mark outer = arena.mark(Lifetime::scratch);
  (void)arena.allocate(1, Lifetime::scratch, Category::temporaries);
  const Arena::Mark inner = arena.mark(Lifetime::scratch);
  arena.release(Lifetime::scratch, outer);
  EXPECT_TRUE(testing::has(testing::error_of<ContractError>([&] { arena.release(Lifetime::scratch, inner); }),
                           "arena: a region was cut back twice, or out of order"));
}

// The peak of a region is the most that stood in it at once, whatever came and went; the categories are those of that moment.
TEST(Arena, PeakIsTheSumOfEachRegionsFullestMoment) {
  Arena arena(Device::null);
  (void)arena.allocate(1024, Lifetime::run, Category::weights);
  (void)arena.allocate(512, Lifetime::run, Category::optimizer);
  {
    const Arena::Mark mark = arena.mark(Lifetime::scratch);
    (void)arena.allocate(4096, Lifetime::scratch, Category::temporaries);
    arena.release(Lifetime::scratch, mark);
    (void)arena.allocate(2048, Lifetime::scratch, Category::workspace);  // less than the temporaries before it
    (void)arena.allocate(256, Lifetime::scratch, Category::workspace);
    arena.release(Lifetime::scratch, mark);
  }
  (void)arena.allocate(768, Lifetime::host, Category::optimizer);
  const MemoryPeak peak = arena.peak();
  EXPECT_EQ(peak.total, 1024u + 512 + 4096) << "host memory is counted by itself";
  EXPECT_EQ(peak.host, 768u);
  EXPECT_EQ(peak.by_category[std::size_t(Category::weights)], 1024u);
  EXPECT_EQ(peak.by_category[std::size_t(Category::optimizer)], 512u);
  EXPECT_EQ(peak.by_category[std::size_t(Category::temporaries)], 4096u);
  EXPECT_EQ(peak.by_category[std::size_t(Category::workspace)], 0u);
  EXPECT_EQ(arena.in_use(), 1024u + 512 + 768);
}

// A region of the null device and one of the CPU, and a third account in plain numbers, over a random program of marks and allocations.
TEST(Arena, TheNullDeviceCountsTheBytesOfTheCpu) {
  constexpr Lifetime regions[] = {Lifetime::run, Lifetime::micro_batch, Lifetime::scratch};
  Arena real(Device::cpu), dry(Device::null);
  std::mt19937 random(5);
  struct Account {
    std::vector<std::size_t> sizes;  // of its allocations
    std::size_t highest = 0;
    std::vector<std::size_t> depths;  // of the marks
    std::vector<Arena::Mark> real, dry;
    std::size_t used() const {
      std::size_t sum = 0;
      for (const std::size_t n : sizes) sum += n;
      return sum;
    }
  } accounts[3];
  for (int i = 0; i < 3000; ++i) {
    const std::size_t which = random() % 3;
    Account& a = accounts[which];
    const Region region = regions[which];
    const unsigned what = random() % 5;
    if (what == 0) a.depths.push_back(a.sizes.size()), a.real.push_back(real.mark(region)), a.dry.push_back(dry.mark(region));
    if (what == 1 && !a.depths.empty()) {
      real.release(region, a.real.back()), dry.release(region, a.dry.back());
      a.sizes.resize(a.depths.back());
      a.depths.pop_back(), a.real.pop_back(), a.dry.pop_back();
    }
    if (what > 1) {
      const std::size_t bytes = random() % 5000;
      const auto category = Category(random() % categories);
      (void)real.allocate(bytes, region, category), (void)dry.allocate(bytes, region, category);
      a.sizes.push_back((bytes + 255) / 256 * 256);
      a.highest = std::max(a.highest, a.used());
    }
    ASSERT_EQ(real.in_use(), accounts[0].used() + accounts[1].used() + accounts[2].used()) << "after " << i;
    ASSERT_EQ(dry.in_use(), real.in_use()) << "after " << i;
  }
  EXPECT_EQ(real.peak().total, accounts[0].highest + accounts[1].highest + accounts[2].highest);
  EXPECT_EQ(dry.peak().total, real.peak().total);
  EXPECT_EQ(dry.peak().by_category, real.peak().by_category);
  std::size_t sum = 0;
  for (const std::size_t bytes : real.peak().by_category) sum += bytes;
  EXPECT_EQ(sum, real.peak().total) << "the categories add up";
}

TEST(Arena, MoreThanTheAddressSpaceIsRefusedAndChangesNothing) {
  for (const Device device : {Device::cpu, Device::null}) {
    Arena arena(device);
    (void)arena.allocate(300, Lifetime::run, Category::weights);
    const std::string why =
        testing::error_of<DeviceError>([&] { (void)arena.allocate(std::size_t(1) << 60, Lifetime::run, Category::weights); });
    EXPECT_EQ(why.substr(0, 34), "out of memory: 1152921504606846976") << why;
    EXPECT_EQ(arena.in_use(), 512u);
  }
}

TEST(Scope, FreesWhatCameAfterItInItsRegionAlone) {
  Stream stream(Device::null);
  (void)stream.empty({64}, DType::f32);
  {
    const Scope outer(stream);
    (void)stream.empty({128}, DType::f32);
    {
      const Scope inner(stream);
      (void)stream.empty({256}, DType::f32);
      (void)stream.empty({64}, DType::f32, Lifetime::step);
      EXPECT_EQ(stream.arena().in_use(), 256u + 512 + 1024 + 256);
    }
    EXPECT_EQ(stream.arena().in_use(), 256u + 512 + 256) << "allocations of other regions remain";
  }
  EXPECT_EQ(stream.arena().in_use(), 256u + 256);
}

TEST(Scope, EndsWithAnError) {
  Stream stream(Device::null);
  try {
    const Scope scope(stream, Lifetime::micro_batch);
    (void)stream.empty({64}, DType::f32, Lifetime::micro_batch);
    throw DataError("anything");
  } catch (const DataError&) {
  }
  EXPECT_EQ(stream.arena().in_use(), 0u);
}

TEST(Arena, NamesItsDevicesAndCategories) {
  EXPECT_EQ(name(Device::cpu), "cpu");
  EXPECT_EQ(name(Device::null), "null");
  EXPECT_EQ(name(Category::weights), "weights");
  EXPECT_EQ(name(Category::weight_operands), "weights for GEMMs");
  EXPECT_EQ(name(Category::workspace), "workspace");
}

}  // namespace
}  // namespace octet

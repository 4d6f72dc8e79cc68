#include "octet/data/mixture.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "octet/data/corpus.testing.hpp"
#include "octet/data/loader.hpp"

namespace octet::data {
namespace {

constexpr std::int64_t length = 16;

// Three texts of 40, 83 and 25 windows.
struct ThreeTexts : ::testing::Test {
  Scratch scratch[3];
  std::vector<std::unique_ptr<Dataset>> datasets;
  std::vector<Windows> windows;
  ThreeTexts() {
    for (std::size_t i = 0; i < 3; ++i) {
      datasets.push_back(std::make_unique<Dataset>(make_dataset(scratch[i], some_texts(60, int(20 + i)))));
      const std::uint64_t count[] = {40, 83, 25};
      windows.emplace_back(*datasets[i], TokenRanges{{0, count[i] * length + 1}}, length, "training");
    }
  }
  Mixture mixture() const { return Mixture({{windows[0], 500000}, {windows[1], 300000}, {windows[2], 200000}}); }
};

TEST_F(ThreeTexts, EveryBlockHasItsSharesExactlyAndATextsSamplesComeInTheirOrder) {
  const Mixture mixture = this->mixture();
  std::map<std::size_t, std::set<std::uint64_t>> seen;
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    const Mixture::TextSample p = mixture.place(sample, 7);
    EXPECT_TRUE(seen[p.text].insert(p.sample).second) << sample;
    if (sample % 10 != 9) continue;
    const std::uint64_t blocks = sample / 10 + 1, wanted[] = {5 * blocks, 3 * blocks, 2 * blocks};
    for (std::size_t t = 0; t < 3; ++t) {
      ASSERT_EQ(seen[t].size(), wanted[t]) << sample;
      ASSERT_EQ(*seen[t].rbegin(), wanted[t] - 1) << "each sample of a text once, without gaps";
    }
  }
  EXPECT_EQ(mixture.epoch_samples(), 80u);
}

TEST_F(ThreeTexts, ATextShowsEachWindowOnceInItsEpoch) {
  const Mixture mixture = this->mixture();
  Batch batch;
  batch.rows = 1, batch.length = length, batch.resize();
  std::multiset<std::vector<std::int32_t>> shown, wanted;
  for (std::uint64_t sample = 0; shown.size() < 25; ++sample)
    if (mixture.place(sample, 3).text == 2 && mixture.place(sample, 3).sample < 25)
      mixture.read(sample, 3, batch, 0), shown.insert(batch.inputs);
  for (std::uint64_t i = 0; i < 25; ++i) windows[2].read(i, batch, 0), wanted.insert(batch.inputs);
  EXPECT_EQ(shown, wanted);
}

TEST_F(ThreeTexts, TheOrderDependsOnSeedAndSampleAloneAndASeekContinuesIt) {
  const auto take = [](Loader& loader, std::size_t batches) {
    std::vector<std::vector<std::int32_t>> out;
    for (std::size_t i = 0; i < batches; ++i) out.push_back(loader.next().inputs);
    return out;
  };
  Loader one(mixture(), {.rows = 4, .seed = 5}), late(mixture(), {.rows = 4, .seed = 5, .prefetch = 1}),
      other(mixture(), {.rows = 4, .seed = 6});
  const auto wanted = take(one, 60);
  late.seek(80);
  EXPECT_EQ(take(late, 40), std::vector(wanted.begin() + 20, wanted.end()));
  EXPECT_NE(take(other, 60), wanted);
}

TEST_F(ThreeTexts, OneTextAloneHasTheOrderThatItHadWithoutAMixture) {
  const Mixture alone(windows[1]), mixed({{windows[1], 750000}, {windows[0], 250000}});
  Batch a, b;
  for (Batch* x : {&a, &b}) x->rows = 1, x->length = length, x->resize();
  for (std::uint64_t sample = 0; sample < 400; ++sample) {
    EXPECT_EQ(alone.place(sample, 9).sample, sample);
    const Mixture::TextSample p = mixed.place(sample, 9);
    if (p.text != 0) continue;
    alone.read(p.sample, 9, a, 0), mixed.read(sample, 9, b, 0);
    ASSERT_EQ(a.inputs, b.inputs) << "the first text's order does not change by others";
  }
}

TEST(Mixture, SharesAreNumbersThatLeaveSomeForTheFirstText) {
  const std::vector<Share> shares = parse_shares({"data/a:0.25", "data/b:c:0.000001"});
  EXPECT_EQ(shares[0].path, "data/a");
  EXPECT_EQ(shares[0].millionths, 250000);
  EXPECT_EQ(shares[1].path, "data/b:c");
  EXPECT_EQ(shares[1].millionths, 1);
  const auto refusal = [](const std::vector<std::string>& mix) { return error_of<ConfigError>([&] { parse_shares(mix); }); };
  for (const char* text : {"data/a", "data/a:", ":0.5", "data/a:0", "data/a:1", "data/a:-0.1", "data/a:nan", "data/a:x"})
    EXPECT_TRUE(has(refusal({text}), "must be PATH:SHARE")) << text;
  EXPECT_TRUE(has(refusal({"a:0.1234567"}), "more than 6 decimals"));
  EXPECT_TRUE(has(refusal({"a:0.5", "b:0.5"}), "keep the sum below 1"));
}

}  // namespace
}  // namespace octet::data

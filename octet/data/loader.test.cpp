#include "octet/data/loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "octet/config/read.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/data/data_config.hpp"
#include "octet/data/permutation.hpp"

namespace octet::data {
namespace {

constexpr std::int64_t length = 16;

/// 83 windows of 16 tokens over several shards.
struct Loading : ::testing::Test {
  Scratch scratch;
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Windows> windows;
  Loading() {
    dataset = std::make_unique<Dataset>(make_dataset(scratch, some_texts(60), 2048));
    windows = std::make_unique<Windows>(*dataset, TokenRanges{{10, 10 + 83 * length + 5}}, length, "training");
  }

  using Rows = std::vector<std::vector<std::int32_t>>;
  /// The input rows of the next `samples` samples.
  static Rows take(Loader& loader, std::size_t samples) {
    Rows rows;
    while (rows.size() < samples) {
      const Batch batch = loader.next();
      for (std::int64_t r = 0; r < batch.rows && rows.size() < samples; ++r)
        rows.emplace_back(batch.inputs.begin() + r * length, batch.inputs.begin() + (r + 1) * length);
    }
    return rows;
  }
};

TEST_F(Loading, SampleGIsTheWindowThatThePermutationOfItsEpochNames) {
  ASSERT_EQ(windows->count(), 83u);
  Loader loader(*windows, {.rows = 5, .seed = 11});
  Batch wanted;
  wanted.rows = 1, wanted.length = length;
  wanted.resize();
  for (std::uint64_t sample = 0; sample < 200;) {
    const Batch batch = loader.next();
    ASSERT_EQ(batch.first_sample, sample);
    ASSERT_EQ(batch.rows, 5);
    for (std::int64_t r = 0; r < batch.rows; ++r, ++sample) {
      windows->read(Permutation(83, 11, sample / 83)(sample % 83), wanted, 0);
      ASSERT_TRUE(std::equal(wanted.inputs.begin(), wanted.inputs.end(), batch.inputs.begin() + r * length));
      ASSERT_TRUE(std::equal(wanted.targets.begin(), wanted.targets.end(), batch.targets.begin() + r * length));
    }
  }
}

TEST_F(Loading, TheOrderDoesNotDependOnRowsOrPrefetch) {
  Loader one(*windows, {.rows = 1, .seed = 3, .prefetch = 1});
  const Rows wanted = take(one, 300);
  for (const std::int64_t rows : {2, 3, 8, 83, 100}) {
    Loader loader(*windows, {.rows = rows, .seed = 3, .prefetch = rows});
    EXPECT_EQ(take(loader, 300), wanted) << rows;
  }
  Loader other(*windows, {.rows = 1, .seed = 4});
  EXPECT_NE(take(other, 300), wanted);
}

TEST_F(Loading, ReadersThatShareTheSamplesGetTogetherWhatOneGets) {
  Loader alone(*windows, {.rows = 1, .seed = 3});
  const Rows wanted = take(alone, 240);
  for (const std::int64_t readers : {2, 3, 4}) {
    Rows joined(240);
    for (std::int64_t i = 0; i < readers; ++i) {
      Loader loader(*windows, {.rows = 2, .stride = 2 * readers, .offset = 2 * i, .seed = 3});
      while (loader.position() < 240) {
        const Batch batch = loader.next();
        for (std::int64_t r = 0; r < 2; ++r)
          joined[batch.first_sample + std::uint64_t(r)].assign(batch.inputs.begin() + r * length, batch.inputs.begin() + (r + 1) * length);
      }
    }
    EXPECT_EQ(joined, wanted) << readers;
  }
}

TEST_F(Loading, AnEpochShowsEveryWindowOnceAndTheNextInAnotherOrder) {
  Loader loader(*windows, {.rows = 83, .seed = 1});
  EXPECT_EQ(loader.epoch_samples(), 83u);
  Rows first = take(loader, 83), second = take(loader, 83);
  EXPECT_NE(first, second);
  std::ranges::sort(first), std::ranges::sort(second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::ranges::adjacent_find(first), first.end());
}

TEST_F(Loading, AResumedLoaderGoesOnAsIfNeverStopped) {
  Loader whole(*windows, {.rows = 4, .seed = 2});
  const Rows wanted = take(whole, 400);
  for (const std::size_t stopped_at : {4u, 80u, 84u, 200u}) {
    Loader before(*windows, {.rows = 4, .seed = 2}), after(*windows, {.rows = 4, .seed = 2});
    take(before, stopped_at);
    ASSERT_EQ(before.position(), stopped_at);
    after.next();
    after.seek(before.position());
    EXPECT_EQ(take(after, 400 - stopped_at), Rows(wanted.begin() + std::ptrdiff_t(stopped_at), wanted.end()));
  }
}

TEST_F(Loading, ManySeeksAndEarlyEndsDoNoHarm) {
  Batch wanted;
  wanted.rows = 1, wanted.length = length;
  wanted.resize();
  Loader loader(*windows, {.rows = 1, .seed = 6, .prefetch = 3});
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t at = philox(1, i).w[0];
    loader.seek(at);
    const Batch batch = loader.next();
    ASSERT_EQ(batch.first_sample, at);
    windows->read(Permutation(83, 6, at / 83)(at % 83), wanted, 0);
    ASSERT_TRUE(std::ranges::equal(wanted.inputs, batch.inputs));
  }
  for (int i = 0; i < 100; ++i) Loader(*windows, {.rows = 3, .seed = 6});
}

TEST_F(Loading, SeveralLoadersReadOneDatasetAtOnce) {
  Loader reference(*windows, {.rows = 2, .seed = 8});
  const Rows wanted = take(reference, 200);
  std::vector<Rows> got(4);
  {
    std::vector<std::jthread> consumers;
    for (Rows& rows : got)
      consumers.emplace_back([&] {
        Loader loader(*windows, {.rows = 2, .seed = 8});
        rows = take(loader, 200);
      });
  }
  for (const Rows& rows : got) EXPECT_EQ(rows, wanted);
}

TEST_F(Loading, AShardThatChangesIsReportedByNextEveryTime) {
  Loader loader(*windows, {.rows = 1, .seed = 1, .prefetch = 1});
  loader.next();
  for (const Shard& shard : dataset->shards()) std::filesystem::resize_file(shard.path(), 300);
  const auto drain = [&] {
    for (int i = 0; i < 5; ++i) loader.next();
  };
  EXPECT_TRUE(has(error_of<DataError>(drain), "now it has 300"));
  const std::uint64_t stopped = loader.position();
  EXPECT_TRUE(has(error_of<DataError>([&] { loader.next(); }), "now it has 300"));
  EXPECT_EQ(loader.position(), stopped);
}

TEST_F(Loading, WaitingIsMeasuredAndRowsOutsideTheirStrideAreABrokenContract) {
  Loader loader(*windows, {.rows = 2});
  EXPECT_EQ(loader.wait_seconds(), 0);
  loader.next();
  EXPECT_GE(loader.wait_seconds(), 0);
  EXPECT_LT(loader.wait_seconds(), 60);
  EXPECT_TRUE(has(error_of<ContractError>([&] { Loader(*windows, {.rows = 2, .stride = 4, .offset = 3}); }),
                  "rows 3 to 5 must lie in the stride of 4"));
  EXPECT_TRUE(has(error_of<ContractError>([&] { Loader(*windows, {.rows = 0}); }), "at least 1 row"));
}

TEST(DataConfig, ReadsItsKeysAndRefusesWhatIsOutOfRange) {
  DataConfig config;
  config::read_toml("path = \"data/docs\"\nsequence_length = 256\neval_fraction = 0.05\nverify = false\nprefetch = 2\n", "run.toml",
                    config);
  EXPECT_EQ(config.path, "data/docs");
  EXPECT_EQ(config.sequence_length, 256);
  EXPECT_EQ(config.eval_fraction, 0.05);
  EXPECT_FALSE(config.verify);
  for (const char* const bad : {"sequence_length = 0", "eval_fraction = 1.0", "eval_fraction = -0.1", "prefetch = 0"})
    EXPECT_TRUE(has(error_of<ConfigError>([&] { config::read_toml(bad, "run.toml", config); }), "run.toml:1:")) << bad;
}

}  // namespace
}  // namespace octet::data

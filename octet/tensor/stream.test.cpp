#include "octet/tensor/stream.hpp"

#include <gtest/gtest.h>

#include <set>

#include "octet/tensor/stream_event.hpp"
#include "octet/tensor/timer.hpp"

namespace octet {
namespace {

TEST(Stream, ZerosAreZeroWhateverStoodThere) {
  Stream stream(Device::cpu);
  {
    const Scope scope(stream);
    const Tensor t = stream.empty({100}, DType::f32);
    std::fill_n(t.f32(), 100, 7.0f);
  }
  const Tensor t = stream.zeros({100}, DType::f32);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(t.f32()[i], 0.0f) << i;
}

TEST(Stream, TensorsStandInTheRegionAndCategoryThatWereAskedFor) {
  Stream stream(Device::null);
  (void)stream.empty({64}, DType::f32, Lifetime::run, Category::weights);
  (void)stream.zeros({64}, DType::bf16, Lifetime::step, Category::gradients);
  EXPECT_EQ(stream.arena().peak().by_category[std::size_t(Category::weights)], 256u);
  EXPECT_EQ(stream.arena().peak().by_category[std::size_t(Category::gradients)], 256u);
  stream.arena().clear(Lifetime::step);
  EXPECT_EQ(stream.arena().in_use(), 256u);
}

TEST(Stream, CopyMovesBytesAndCountsThem) {
  Stream stream(Device::cpu);
  const Tensor from = stream.empty({3, 5}, DType::bf16), to = stream.zeros({3, 5}, DType::bf16);
  for (int i = 0; i < 15; ++i) from.bf16()[i] = to_bf16(float(i));
  const Work before = stream.work();
  copy(stream, from, to);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(to_float(to.bf16()[i]), float(i));
  EXPECT_EQ((stream.work() - before).bytes, 2 * 30) << "read once, written once";
  EXPECT_EQ((stream.work() - before).ops, 1);
  EXPECT_THROW(copy(stream, from, from.reshaped({15})), ContractError);
  EXPECT_THROW(copy(stream, from, Tensor(to.data, to.shape, DType::f16)), ContractError);
}

TEST(Stream, UploadAndDownloadMoveTheHostsBytes) {
  Stream stream(Device::cpu);
  std::vector<std::int32_t> there{4, -5, 6}, back(3);
  const Tensor t = stream.empty({3}, DType::i32);
  upload(stream, there.data(), t);
  there.assign(3, 0);  // may be reused at once
  download(stream, t, back.data());
  EXPECT_EQ(back, (std::vector<std::int32_t>{4, -5, 6}));
  EXPECT_EQ(read<std::int32_t>(stream, t, 1), -5);
  EXPECT_THROW((void)read<std::int32_t>(stream, t, 3), ContractError);
  EXPECT_THROW((void)read<float>(stream, t), ContractError);
  EXPECT_EQ(HostCopy(stream, t).tensor().data, t.data) << "on the CPU, the tensor itself";
}

TEST(Stream, ASideQueueHasScratchOfItsOwnAndSharesTheRest) {
  for (const Device device : {Device::cpu, Device::null}) {
    Stream main(device);
    const Tensor before = main.empty({64}, DType::f32);
    {
      Stream side(main), other(side);
      const Scope scope(side);
      const Tensor a = side.empty({64}, DType::f32), b = other.empty({64}, DType::f32), c = main.empty({64}, DType::f32);
      EXPECT_EQ(c.u8(), before.u8() + 256) << "main's scratch grows as if there were no side";
      if (device == Device::cpu) EXPECT_EQ(std::set({a.data, b.data, c.data}).size(), 3u);
      (void)side.empty({64}, DType::f32, Lifetime::run, Category::weights);
      EXPECT_EQ(main.arena().peak().by_category[std::size_t(Category::weights)], 256u);
      side.count({.ops = 3}), other.count({.ops = 1});
      EXPECT_EQ(main.work().ops, 4) << "a dry run counts the work of all queues";
    }
    EXPECT_EQ(main.arena().in_use(), std::size_t(4 * 256)) << "of a, by its scope";
    Stream later(main);
    (void)later.empty({64}, DType::f32);
    EXPECT_EQ(main.arena().peak().total, std::size_t(6 * 256)) << "no side after an ended one takes its scratch, in which work may go on";
  }
}

TEST(Stream, APlaceIsSetBeforeItIsWaitedFor) {
  Stream main(Device::cpu);
  Stream side(main);
  StreamEvent event;
  EXPECT_THROW(event.wait(main), ContractError);
  event.record(side);
  event.wait(main);
  wait_for(side, main), wait_for(main, main);
}

// Addresses of the null device must not be touched: each of these would crash.
TEST(Stream, TheNullDeviceCountsWorkAndMovesNothing) {
  Stream stream(Device::null);
  const Tensor t = stream.zeros({1000}, DType::f32);
  float host[1000];
  copy(stream, t, stream.empty({1000}, DType::f32)), clear(stream, t), upload(stream, host, t), download(stream, t, host), wait(stream);
  EXPECT_EQ(stream.work().ops, 3) << "two clears and a copy";
  EXPECT_EQ(stream.work().bytes, 4000 + 8000 + 4000);
  EXPECT_EQ(stream.queue(), nullptr);
}

TEST(Work, AddsSubtractsAndMultipliesEveryCount) {
  const Work a{.ops = 1, .flops = 2, .gemm_flops = 3, .bytes = 4, .fp8_flops = 5, .emulated_flops = 6, .collectives = 7, .sent_bytes = 8};
  const auto numbers = [](const Work& w) {
    return std::vector<double>{double(w.ops), w.flops,          w.gemm_flops,          w.bytes,
                               w.fp8_flops,   w.emulated_flops, double(w.collectives), double(w.sent_bytes)};
  };
  EXPECT_EQ(numbers(3 * a), (std::vector<double>{3, 6, 9, 12, 15, 18, 21, 24}));
  EXPECT_EQ(numbers(3 * a + a), numbers(4 * a));
  EXPECT_EQ(numbers(3 * a - a), numbers(2 * a));
}

TEST(Stream, AnObserverSeesTensorsUntilItIsTakenAway) {
  struct Seen final : Observer {
    std::vector<std::string> names;
    void observe(std::string_view path, std::string_view what, const Tensor& t) override {
      names.push_back(std::string(path) + "/" + std::string(what) + " " + to_text(t.shape));
    }
  } seen;
  Stream stream(Device::null);
  const Tensor t = stream.empty({2}, DType::f32);
  stream.observe("a", "x", t);
  stream.set_observer(&seen);
  EXPECT_TRUE(stream.observed());
  stream.observe("b", "y", t);
  stream.set_observer(nullptr);
  stream.observe("c", "z", t);
  EXPECT_EQ(seen.names, std::vector<std::string>{"b/y [2]"});
}

TEST(Timer, MeasuresOnTheCpuAndNothingOnTheNullDevice) {
  for (const Device device : {Device::cpu, Device::null}) {
    Stream stream(device);
    Timer timer(stream);
    const auto begin = std::chrono::steady_clock::now();
    timer.start();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(5)) {
    }
    const double seconds = timer.stop();
    if (device == Device::null) EXPECT_EQ(seconds, 0);
    else EXPECT_GE(seconds, 0.004);
  }
}

}  // namespace
}  // namespace octet

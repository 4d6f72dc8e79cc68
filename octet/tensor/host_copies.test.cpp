#include "octet/tensor/host_copies.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace octet {
namespace {

TEST(HostCopies, HaveEveryByteOfLargeAndEmptyTensors) {
  Stream stream(Device::cpu);
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::byte>> copies;
  for (const std::int64_t n : {std::int64_t(0), std::int64_t(1), std::int64_t(1000), (std::int64_t(130) << 20) + 7}) {
    tensors.push_back(stream.empty({n}, DType::u8));
    for (std::int64_t i = 0; i < n; ++i) tensors.back().u8()[i] = std::uint8_t(i * 2654435761u >> 13);
    copies.emplace_back(std::size_t(n), std::byte(0));
  }
  std::vector<HostCopies::Copy> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) parts.push_back({tensors[i], copies[i].data()});
  HostCopies all(stream, std::move(parts));
  EXPECT_EQ(all.bytes(), (std::size_t(130) << 20) + 1008);
  EXPECT_EQ(copies.back().back(), std::byte(0)) << "nothing is copied before run()";
  all.run();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    EXPECT_TRUE(copies[i].empty() || std::memcmp(copies[i].data(), tensors[i].data, copies[i].size()) == 0) << i;
}

}  // namespace
}  // namespace octet

#include "octet/comm/rendezvous/gpus.hpp"

#include <gtest/gtest.h>

#include "tests/testing/scratch.hpp"

namespace octet::comm {
namespace {

using Names = std::vector<std::string>;

Names visible(const std::optional<std::string>& list, const std::string& devices = "/nowhere") {
  return visible_gpus([&](const char*) { return list; }, devices);
}

TEST(Gpus, AreTheEntriesOfTheVariable) {
  EXPECT_EQ(visible("0"), Names{"0"});
  EXPECT_EQ(visible("3,1"), (Names{"3", "1"}));
  EXPECT_EQ(visible("GPU-8932f937,MIG-1"), (Names{"GPU-8932f937", "MIG-1"}));
  for (const char* none : {"", "-1", "NoDevFiles", ","}) EXPECT_TRUE(visible(none).empty()) << none;
  EXPECT_EQ(visible("2,-1,3"), Names{"2"}) << "as CUDA reads it";
}

TEST(Gpus, AreTheDevicesWithoutTheVariable) {
  const testing::Scratch scratch;
  EXPECT_TRUE(visible({}, scratch.folder()).empty());
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"}) scratch.write(name, "");
  EXPECT_EQ(visible({}, scratch.folder()), (Names{"0", "1"}));
  EXPECT_TRUE(visible("", scratch.folder()).empty()) << "an empty variable hides all";
}

}  // namespace
}  // namespace octet::comm

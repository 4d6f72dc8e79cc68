#include "octet/bench/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace octet::bench {
namespace {

std::string link(const Links& links, const std::string& row, const std::string& column) {
  const auto it = std::find_if(links.begin(), links.end(), [&](const auto& l) { return l.first == std::pair(row, column); });
  return it == links.end() ? "" : it->second;
}

TEST(Topology, LinksAreReadFromTheTableOfNvidiaSmi) {
  const Links links = links_of(
      "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV18\tSYS\tPIX\t0-47\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tPHB\tNODE\t0-47\t0\t\tN/A\n"
      "GPU2\tSYS\tPHB\t X \tSYS\t48-95\t1\t\tN/A\n"
      "NIC0\tPIX\tNODE\tSYS\t X \t\t\t\t\n"
      "\n"
      "Legend:\n\n  X    = Self\n  GPU0 GPU1 no table\n");
  EXPECT_EQ(links.size(), 12u);
  EXPECT_EQ(link(links, "GPU0", "GPU1"), "NV18");
  EXPECT_EQ(link(links, "GPU1", "GPU2"), "PHB");
  EXPECT_EQ(link(links, "GPU2", "NIC0"), "SYS");
  EXPECT_EQ(link(links, "NIC0", "GPU1"), "NODE");
  EXPECT_EQ(link(links, "GPU0", "GPU0"), "");
}

TEST(Topology, AnOutputWithoutATableHasNoLinks) {
  for (const char* text : {"", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "GPU0\n"})
    EXPECT_TRUE(links_of(text).empty()) << text;
  EXPECT_TRUE(links_of("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-7\tN/A\n").empty()) << "one GPU";
}

TEST(Topology, EveryPairOfRanksIsMeasured) {
  const Topology t = measure_topology(
      {.bytes = {4096, 65536}, .device = "cpu", .ranks = 3, .quality_ranks = {}, .effort = {.repeats = 3, .sample_seconds = 1e-4}});
  EXPECT_EQ(t.bytes, 65536);
  EXPECT_EQ(t.backend, "threads");
  ASSERT_EQ(t.ranks.size(), 3u);
  EXPECT_EQ(t.ranks[2].device, "cpu");
  ASSERT_EQ(t.pairs.size(), 3u);
  const std::pair<int, int> wanted[] = {{0, 1}, {0, 2}, {1, 2}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::pair(t.pairs[i].first, t.pairs[i].second), wanted[i]);
    EXPECT_GT(t.pairs[i].seconds.median, 0);
    EXPECT_LE(t.pairs[i].seconds.low, t.pairs[i].seconds.high);
  }
  EXPECT_NE(table_text(t).find("1 and 2"), std::string::npos) << table_text(t);
}

}  // namespace
}  // namespace octet::bench

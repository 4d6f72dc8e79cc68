#include "octet/comm/mesh.hpp"

#include <gtest/gtest.h>

#include "octet/comm/self/self.hpp"
#include "octet/comm/threads/threads.hpp"

namespace octet::comm {
namespace {

TEST(Mesh, EveryAxisJoinsTheRanksThatDifferInItsCoordinateAlone) {
  run_on_threads({.ranks = 12}, [](Communicator& world) {
    const Mesh mesh(world, {{"tensor", 2}, {"data", 3}, {"pipeline", 2}});
    const int coordinates[] = {world.rank() % 2, world.rank() / 2 % 3, world.rank() / 6};
    const char* names[] = {"tensor", "data", "pipeline"};
    const int sizes[] = {2, 3, 2}, strides[] = {1, 2, 6};
    for (int a = 0; a < 3; ++a) {
      Communicator& along = mesh.along(names[a]);
      ASSERT_EQ(along.size(), sizes[a]);
      EXPECT_EQ(along.rank(), coordinates[a]);
      Stream s(Device::cpu);
      const Tensor own = s.empty({1}, DType::i32), all = s.empty({along.size()}, DType::i32);
      *own.as<std::int32_t>() = world.rank();
      along.all_gather(s, own, all);
      for (int i = 0; i < along.size(); ++i)
        EXPECT_EQ(all.as<std::int32_t>()[i], world.rank() + (i - coordinates[a]) * strides[a]) << names[a];
    }
    EXPECT_TRUE(mesh.has("data"));
    EXPECT_FALSE(mesh.has("context"));
    EXPECT_THROW(mesh.along("context"), ContractError);
  });
}

TEST(Mesh, ErrorsOfAnAxisNameRanksByTheirNumbersAmongAll) {
  int told = 0;
  run_on_threads({.ranks = 4, .limit_seconds = 0.2}, [&](Communicator& world) {
    const Mesh mesh(world, {{"tensor", 2}, {"data", 2}});
    Stream s(Device::cpu);
    if (world.rank() != 2) return;
    try {
      mesh.along("tensor").broadcast(s, s.zeros({3}, DType::f32), 1);
    } catch (const CommError& e) {
      ++told;
      EXPECT_STREQ(e.what(), "rank 2 of 4, before the first step: broadcast of f32 [3] from rank 3: rank 3 has not come within 0.2 s");
      EXPECT_EQ(e.rank, 2);
      EXPECT_EQ(e.peer, 3);
    }
  });
  EXPECT_EQ(told, 1);
}

TEST(Mesh, RefusesAxesThatDoNotFit) {
  SelfCommunicator one;
  EXPECT_NO_THROW(Mesh(one, {{"data", 1}}));
  EXPECT_THROW(Mesh(one, {{"data", 2}}), ConfigError);
  EXPECT_THROW(Mesh(one, {{"data", 0}}), ConfigError);
  EXPECT_THROW(Mesh(one, {{"data", 1}, {"data", 1}}), ContractError);
  EXPECT_THROW(Mesh(one, {{"", 1}}), ContractError);
}

}  // namespace
}  // namespace octet::comm

#include "octet/base/fiber.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace octet {
namespace {

TEST(Fiber, TakesTurnsWithTheThreadThatResumesIt) {
  std::vector<int> order;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    for (int i = 1; i < 6; i += 2) order.push_back(i), self->yield();
  });
  self = &fiber;
  for (int i = 0; i < 6; i += 2) order.push_back(i), fiber.resume();
  fiber.resume();
  EXPECT_TRUE(fiber.ended());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(Fiber, HandsOverItsException) {
  Fiber fiber([] { throw std::runtime_error("torn"); });
  EXPECT_THROW(fiber.resume(), std::runtime_error);
  EXPECT_TRUE(fiber.ended());
}

TEST(Fiber, ThatIsNotResumedDestroysItsObjects) {
  struct Counts {
    int& n;
    ~Counts() { ++n; }
  };
  int destroyed = 0;
  {
    Fiber* self = nullptr;
    Fiber fiber([&] {
      const Counts object{destroyed};
      self->yield();
    });
    self = &fiber;
    fiber.resume();
  }
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace octet

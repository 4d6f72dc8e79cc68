#include "octet/tensor/cut.hpp"

#include <gtest/gtest.h>

namespace octet {
namespace {

std::vector<std::int64_t> places(const std::vector<CutPiece>& pieces) {
  std::vector<std::int64_t> out;
  for (const CutPiece& p : pieces)
    for (std::int64_t i = 0; i < p.count; ++i) out.push_back(p.first + i / p.run * p.stride + i % p.run);
  return out;
}

TEST(Cut, RowsAndColumnsAreWhereTheyAreInTheMatrix) {
  EXPECT_EQ(places(Cut::of_rows({4, 3}, 1, 2).pieces), (std::vector<std::int64_t>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(places(Cut::of_columns({2, 6}, 2, 3).pieces), (std::vector<std::int64_t>{2, 3, 4, 8, 9, 10}));
  EXPECT_EQ(places(Cut::of_rows({5}, 3, 2).pieces), (std::vector<std::int64_t>{3, 4}));
  const Cut copy = Cut::copied({3}, 2, false);
  EXPECT_EQ(places(copy.pieces), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(copy.counted(3), 0);
  EXPECT_EQ(Cut::copied({3}, 2, true).counted(3), 3);
  EXPECT_EQ(Cut{}.counted(3), 3);
  const Cut rows = Cut::of_rows({4, 3}, 1, 2);
  EXPECT_EQ(rows.shared(1, true).alone, 6) << "it has no other copy";
  EXPECT_EQ(rows.shared(2, false).counted(6), 0);
}

TEST(Cut, EverySliceOfAPartHasThePlacesOfItsValues) {
  std::vector<CutPiece> pieces = Cut::of_columns({5, 12}, 8, 4).pieces;
  pieces.push_back({7, 100, 7, 7});
  const std::vector<std::int64_t> all = places(pieces);
  const auto n = std::int64_t(all.size());
  for (std::int64_t first = 0; first <= n; ++first)
    for (std::int64_t count = 0; first + count <= n; ++count) {
      const std::vector<CutPiece> some = pieces_of(pieces, first, count);
      EXPECT_EQ(places(some), std::vector<std::int64_t>(all.begin() + first, all.begin() + first + count)) << first << " " << count;
      std::vector<std::int64_t> by_runs;
      each_run(some, [&](std::int64_t begin, std::int64_t place, std::int64_t length) {
        EXPECT_EQ(begin, std::int64_t(by_runs.size()));
        for (std::int64_t i = 0; i < length; ++i) by_runs.push_back(place + i);
      });
      EXPECT_EQ(by_runs, places(some));
    }
}

}  // namespace
}  // namespace octet

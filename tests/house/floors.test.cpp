#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/house/source_tree.hpp"

// A floor includes floors below it only, and only those that it names in CMakeLists.txt.

namespace octet::house {
namespace {

struct Floor {
  int level = -1;
  std::set<std::string> depends;
};

// Reads the lines octet_floor(<name> LEVEL <n> [DEPENDS <floor>...] [LIBS ...]).
std::map<std::string, Floor> floors_of(const SourceFile& cmake) {
  std::map<std::string, Floor> floors;
  for (const std::string& line : cmake.lines) {
    constexpr std::string_view call = "octet_floor(";
    if (!line.starts_with(call)) continue;
    std::istringstream words(line.substr(call.size(), line.find(')') - call.size()));
    std::string name, word, list;
    words >> name;
    Floor& floor = floors[name];
    while (words >> word) {
      if (word == "LEVEL" || word == "DEPENDS" || word == "LIBS") list = word;
      else if (list == "LEVEL") floor.level = std::stoi(word);
      else if (list == "DEPENDS") floor.depends.insert(word);
    }
  }
  return floors;
}

const std::map<std::string, Floor>& floors() {
  static const std::map<std::string, Floor> found = [] {
    for (const SourceFile& file : source_tree())
      if (file.path == "CMakeLists.txt") return floors_of(file);
    return std::map<std::string, Floor>();
  }();
  return found;
}

bool reaches(const std::string& from, const std::string& to) {
  if (from == to) return true;
  for (const std::string& below : floors().at(from).depends)
    if (floors().contains(below) && reaches(below, to)) return true;
  return false;
}

// The path of a line #include "...", else "".
std::string included(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return "";
  const std::size_t open = line.find('"'), close = line.find('"', open + 1);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

// Why a file may not include this path, or "".
std::string refusal(const SourceFile& file, const std::string& path) {
  const std::string own = file.floor();
  if (SourceFile{path, {}}.is_test() && !file.is_test()) return "only tests include '" + path + "'";
  if (path.starts_with("tests/")) return "";
  if (path.find("..") != std::string::npos || !path.starts_with("octet/"))
    return "include '" + path + "' by its full path, octet/<floor>/...";
  const std::string other = SourceFile{path, {}}.floor();
  if (!floors().contains(other)) return "'" + other + "' is no floor of CMakeLists.txt";
  if (other == own) return "";
  const int here = floors().at(own).level, there = floors().at(other).level;
  if (there >= here)
    return "floor '" + own + "' (level " + std::to_string(here) + ") may not include '" + other + "' (level " + std::to_string(there) + ")";
  return reaches(own, other) ? "" : "floor '" + own + "' does not name '" + other + "' in its DEPENDS";
}

TEST(Floors, AreListedInCmakeWithTheirLevels) {
  ASSERT_GE(floors().size(), 5u);
  for (const auto& [name, floor] : floors()) EXPECT_GE(floor.level, 0) << name;
  EXPECT_EQ(floors().at("base").level, 0);
}

TEST(Floors, EveryFileOfOctetStandsOnOne) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree())
    if (file.is_below("octet/") && !floors().contains(file.floor())) violations.push_back(file.path + ": stands on no floor");
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Floors, NoFileIncludesFromBesideOrAbove) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree()) {
    if (!file.is_below("octet/") || !floors().contains(file.floor())) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string path = included(file.lines[i]);
      if (path.empty()) continue;
      const std::string why = refusal(file, path);
      if (!why.empty()) violations.push_back(at_line(file, i, why));
    }
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

// The rooms of a floor that has an order among them: a file includes files of its own room and of those before it.
const std::map<std::string, std::vector<std::string>> ordered_rooms = {{"octet/train/", {"step", "checkpoint", "run", "study"}}};

// The position of a path's room in its floor's order, or -1.
int room_of(const std::string& path, const std::string& floor, const std::vector<std::string>& rooms) {
  for (std::size_t i = 0; i < rooms.size(); ++i)
    if (path.starts_with(floor + rooms[i] + "/")) return int(i);
  return -1;
}

TEST(Floors, ARoomIncludesItselfAndTheRoomsBeforeIt) {
  std::vector<std::string> violations;
  for (const auto& [floor, rooms] : ordered_rooms) {
    for (const SourceFile& file : source_tree()) {
      if (!file.is_below(floor) || file.is_test()) continue;
      const int here = room_of(file.path, floor, rooms);
      if (here < 0) violations.push_back(file.path + ": lies in no room of " + floor);
      for (std::size_t i = 0; i < file.lines.size(); ++i) {
        const std::string path = included(file.lines[i]);
        if (room_of(path, floor, rooms) > here) violations.push_back(at_line(file, i, "'" + path + "' is in a later room of " + floor));
      }
    }
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Floors, TheCheckSeesWhatItShallSee) {
  const SourceFile gemm{"octet/ops/gemm/gemm.cpp", {}}, proof{"octet/ops/gemm/gemm.test.cpp", {}};
  EXPECT_EQ(refusal(gemm, "octet/tensor/tensor.hpp"), "");
  EXPECT_EQ(refusal(gemm, "octet/base/check.hpp"), "");
  EXPECT_EQ(refusal(gemm, "octet/ops/quantize/sink.hpp"), "");
  EXPECT_EQ(refusal(gemm, "octet/nn/linear.hpp"), "floor 'ops' (level 3) may not include 'nn' (level 5)");
  EXPECT_EQ(refusal(gemm, "octet/data/loader.hpp"), "floor 'ops' (level 3) may not include 'data' (level 3)");
  EXPECT_NE(refusal(gemm, "../nn/linear.hpp"), "");
  EXPECT_NE(refusal(gemm, "tests/testing/testing.hpp"), "");
  EXPECT_NE(refusal(gemm, "octet/ops/gemm/gemm.reference.hpp"), "");
  EXPECT_EQ(refusal(proof, "tests/testing/testing.hpp"), "");
  EXPECT_EQ(included("#include \"octet/base/error.hpp\"  // why"), "octet/base/error.hpp");
  EXPECT_EQ(included("#include <vector>"), "");
}

}  // namespace
}  // namespace octet::house

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/house/source_tree.hpp"

// A level includes levels below it only, and only those that it names in CMakeLists.txt.

namespace octet::house {
namespace {

struct Level {
  int number = -1;
  std::set<std::string> depends;
};

// Reads the lines octet_level(<name> LEVEL <n> [DEPENDS <level>...] [LIBS ...]).
std::map<std::string, Level> levels_of(const SourceFile& cmake) {
  std::map<std::string, Level> levels;
  for (const std::string& line : cmake.lines) {
    constexpr std::string_view call = "octet_level(";
    if (!line.starts_with(call)) continue;
    std::istringstream words(line.substr(call.size(), line.find(')') - call.size()));
    std::string name, word, list;
    words >> name;
    Level& level = levels[name];
    while (words >> word) {
      if (word == "LEVEL" || word == "DEPENDS" || word == "LIBS") list = word;
      else if (list == "LEVEL") level.number = std::stoi(word);
      else if (list == "DEPENDS") level.depends.insert(word);
    }
  }
  return levels;
}

const std::map<std::string, Level>& levels() {
  static const std::map<std::string, Level> found = [] {
    for (const SourceFile& file : source_tree())
      if (file.path == "CMakeLists.txt") return levels_of(file);
    return std::map<std::string, Level>();
  }();
  return found;
}

bool reaches(const std::string& from, const std::string& to) {
  if (from == to) return true;
  for (const std::string& below : levels().at(from).depends)
    if (levels().contains(below) && reaches(below, to)) return true;
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
  const std::string own = file.level();
  if (SourceFile{path, {}}.is_test() && !file.is_test()) return "only tests include '" + path + "'";
  if (path.starts_with("tests/")) return "";
  if (path.find("..") != std::string::npos || !path.starts_with("octet/"))
    return "include '" + path + "' by its full path, octet/<level>/...";
  const std::string other = SourceFile{path, {}}.level();
  if (!levels().contains(other)) return "'" + other + "' is no level of CMakeLists.txt";
  if (other == own) return "";
  const int here = levels().at(own).number, there = levels().at(other).number;
  if (there >= here)
    return "level '" + own + "' (level " + std::to_string(here) + ") may not include '" + other + "' (level " + std::to_string(there) + ")";
  return reaches(own, other) ? "" : "level '" + own + "' does not name '" + other + "' in its DEPENDS";
}

TEST(Levels, AreListedInCmakeWithTheirLevels) {
  ASSERT_GE(levels().size(), 5u);
  for (const auto& [name, level] : levels()) EXPECT_GE(level.number, 0) << name;
  EXPECT_EQ(levels().at("base").number, 0);
}

TEST(Levels, EveryFileOfOctetIsInOne) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree())
    if (file.is_below("octet/") && !levels().contains(file.level())) violations.push_back(file.path + ": is in no level");
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Levels, NoFileIncludesFromBesideOrAbove) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree()) {
    if (!file.is_below("octet/") || !levels().contains(file.level())) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string path = included(file.lines[i]);
      if (path.empty()) continue;
      const std::string why = refusal(file, path);
      if (!why.empty()) violations.push_back(at_line(file, i, why));
    }
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

// Folders whose own ones have an order: a file includes files of its own folder and of those before it. "": the files beside them.
const std::map<std::string, std::vector<std::string>> ordered_folders = {
    {"octet/train/", {"layout", "step", "checkpoint", "run", "study"}},
    {"octet/train/run/", {"config", "dry_run", "ranks", "folder", "record", "evaluation", "engine", "checkpoints", "recovery", ""}}};

// The position of a path's folder in its level's order, or -1.
int folder_of(const std::string& path, const std::string& level, const std::vector<std::string>& folders) {
  for (std::size_t i = 0; i < folders.size(); ++i)
    if (path.starts_with(folders[i].empty() ? level : level + folders[i] + "/")) return int(i);
  return -1;
}

TEST(Levels, AnOrderedFolderIncludesItselfAndThoseBeforeIt) {
  std::vector<std::string> violations;
  for (const auto& [level, folders] : ordered_folders) {
    for (const SourceFile& file : source_tree()) {
      if (!file.is_below(level) || file.is_test() || file.path.ends_with(".md")) continue;
      const int here = folder_of(file.path, level, folders);
      if (here < 0) violations.push_back(file.path + ": is in no folder of " + level);
      for (std::size_t i = 0; i < file.lines.size(); ++i) {
        const std::string path = included(file.lines[i]);
        if (folder_of(path, level, folders) > here)
          violations.push_back(at_line(file, i, "'" + path + "' is in a later folder of " + level));
      }
    }
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Levels, TheCheckSeesWhatItShallSee) {
  const SourceFile gemm{"octet/ops/gemm/gemm.cpp", {}}, proof{"octet/ops/gemm/gemm.test.cpp", {}};
  EXPECT_EQ(refusal(gemm, "octet/tensor/tensor.hpp"), "");
  EXPECT_EQ(refusal(gemm, "octet/base/check.hpp"), "");
  EXPECT_EQ(refusal(gemm, "octet/ops/quantize/sink.hpp"), "");
  EXPECT_EQ(refusal(gemm, "octet/nn/linear.hpp"), "level 'ops' (level 3) may not include 'nn' (level 5)");
  EXPECT_EQ(refusal(gemm, "octet/data/loader.hpp"), "level 'ops' (level 3) may not include 'data' (level 3)");
  EXPECT_NE(refusal(gemm, "../nn/linear.hpp"), "");
  EXPECT_NE(refusal(gemm, "tests/testing/testing.hpp"), "");
  EXPECT_NE(refusal(gemm, "octet/ops/gemm/gemm.reference.hpp"), "");
  EXPECT_EQ(refusal(proof, "tests/testing/testing.hpp"), "");
  EXPECT_EQ(included("#include \"octet/base/error.hpp\"  // why"), "octet/base/error.hpp");
  EXPECT_EQ(included("#include <vector>"), "");
}

}  // namespace
}  // namespace octet::house

#include "octet/data/glob.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "octet/base/log.hpp"
#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

using Names = std::vector<std::string>;

/// A small tree to search in.
struct Glob : ::testing::Test {
  Scratch scratch;
  Glob() {
    for (const char* const name :
         {"a.txt", "b.md", "docs/c.txt", "docs/deep/er/d.txt", "docs/deep/e.txt", "docs/.hidden/f.txt", "docs/.g.txt", "docs/B.txt"})
      scratch.write(name, "x");
  }
  /// The matches, without the folder's path.
  Names matches(const std::string& pattern) const {
    Names names = files_matching(scratch.at(pattern));
    for (std::string& name : names) name.erase(0, scratch.folder().size() + 1);
    return names;
  }
};

TEST_F(Glob, TwoStarsReachEveryDepthAlsoNone) {
  EXPECT_EQ(matches("**/*.txt"), (Names{"a.txt", "docs/B.txt", "docs/c.txt", "docs/deep/e.txt", "docs/deep/er/d.txt"}));
  EXPECT_EQ(matches("docs/**/*.txt"), (Names{"docs/B.txt", "docs/c.txt", "docs/deep/e.txt", "docs/deep/er/d.txt"}));
  EXPECT_EQ(matches("docs/**/d.txt"), (Names{"docs/deep/er/d.txt"}));
  EXPECT_EQ(matches("**/deep/**/*.txt"), (Names{"docs/deep/e.txt", "docs/deep/er/d.txt"}));
  EXPECT_EQ(matches("docs/**"), matches("docs/**/*"));
  EXPECT_EQ(matches("**/**/*.txt"), matches("**/*.txt")) << "each file once";
}

TEST_F(Glob, AStarStaysInsideOneName) {
  EXPECT_EQ(matches("*.txt"), (Names{"a.txt"}));
  EXPECT_EQ(matches("*/*.txt"), (Names{"docs/B.txt", "docs/c.txt"}));
  EXPECT_EQ(matches("docs/[a-d].tx?"), (Names{"docs/c.txt"}));
  EXPECT_EQ(matches("docs/[!a-z].txt"), (Names{"docs/B.txt"}));
  EXPECT_EQ(matches("docs/*/e.txt"), (Names{"docs/deep/e.txt"}));
}

TEST_F(Glob, HiddenNamesMatchOnlyWhenAskedFor) {
  EXPECT_EQ(matches("docs/.*.txt"), (Names{"docs/.g.txt"}));
  EXPECT_EQ(matches("docs/.hidden/*.txt"), (Names{"docs/.hidden/f.txt"}));
}

TEST_F(Glob, APathIsItselfEvenWithStarsInItsName) {
  scratch.write("od[d]*.txt", "x");
  scratch.write("odd.txt", "x");
  EXPECT_EQ(matches("od[d]*.txt"), (Names{"od[d]*.txt"}));
  EXPECT_EQ(matches("./docs/../a.txt"), (Names{"a.txt"}));
}

TEST_F(Glob, NoMatchIsAnEmptyList) {
  EXPECT_EQ(matches("*.none"), Names{});
  EXPECT_EQ(matches("none/**/*.txt"), Names{});
  EXPECT_EQ(matches("a.txt/*"), Names{});
  EXPECT_EQ(matches("none.txt"), Names{});
  EXPECT_EQ(files_matching(""), Names{});
}

TEST_F(Glob, LinksToFoldersAreNotEnteredAndLinksToFilesAreFiles) {
  fs::create_directory_symlink(scratch.folder(), scratch.at("docs/loop"));
  fs::create_symlink(scratch.at("a.txt"), scratch.at("docs/link.txt"));
  fs::create_symlink(scratch.at("gone"), scratch.at("docs/dangling.txt"));
  log::set_quiet(true);
  EXPECT_EQ(matches("docs/**/*.txt"), (Names{"docs/B.txt", "docs/c.txt", "docs/deep/e.txt", "docs/deep/er/d.txt", "docs/link.txt"}));
  log::set_quiet(false);
}

TEST_F(Glob, PipesArePassedOverAndRefusedWhenNamed) {
  ASSERT_EQ(::mkfifo(scratch.at("docs/pipe.txt").c_str(), 0600), 0);
  EXPECT_EQ(matches("docs/p*.txt"), Names{});
  EXPECT_EQ(error_of<ConfigError>([&] { matches("docs/pipe.txt"); }),
            format("'{}' is not a plain file; copy its text into one", scratch.at("docs/pipe.txt")));
}

TEST_F(Glob, AFolderIsAnsweredWithThePatternForItsFiles) {
  EXPECT_EQ(error_of<ConfigError>([&] { matches("docs"); }),
            format("'{}' is a folder; name its files, such as '{}'", scratch.at("docs"), scratch.at("docs/**/*.txt")));
}

TEST_F(Glob, ARelativePatternStartsInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(scratch.folder());
  EXPECT_EQ(files_matching("**/c.txt"), (Names{"docs/c.txt"}));
  EXPECT_EQ(files_matching("*.md"), (Names{"b.md"}));
  fs::current_path(before);
}

}  // namespace
}  // namespace octet::data

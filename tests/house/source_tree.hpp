#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// The repository's own text, for tests that read it. Only what belongs to it: no build folder, run, data or hidden folder.

namespace octet::house {

struct SourceFile {
  std::string path;  // from the repository's root, with '/'
  std::vector<std::string> lines;

  /// The level of "octet/<level>/...", or "" outside of octet/.
  std::string level() const;
  bool is_below(std::string_view folder) const { return path.starts_with(folder); }
  /// In tests/, or beside the code it tests: *.test.*, *.testing.* (shared by such tests), *.reference.* (references to compare with).
  bool is_test() const;
  /// Written in a programming language: not a document, configuration or data.
  bool is_code() const;
};

/// Every text file of the repository, read once.
const std::vector<SourceFile>& source_tree();

/// A C++ line split in code (including the text of strings) and the comment after "//".
struct SplitLine {
  std::string code, comment;
};
SplitLine split_comment(const std::string& line);

/// "path:12: what", as editors understand it.
std::string at_line(const SourceFile& file, std::size_t index, std::string_view what);

/// The violations, one per line, for a failure message.
std::string listed(const std::vector<std::string>& violations);

}  // namespace octet::house

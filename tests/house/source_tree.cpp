#include "tests/house/source_tree.hpp"

#include <algorithm>
#include <fstream>

namespace octet::house {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view code_endings[] = {".cpp", ".hpp", ".cu", ".cuh", ".cmake", ".py", ".sh", ".js", ".css", ".html"};
constexpr std::string_view text_endings[] = {".md", ".txt", ".json", ".toml", ".yml", ".yaml"};

bool ends_with_any(std::string_view path, const auto& endings) {
  return std::any_of(std::begin(endings), std::end(endings), [&](std::string_view e) { return path.ends_with(e); });
}

// Files of builds and runs, as in .gitignore.
bool is_foreign(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return (name.starts_with('.') && name != ".ci") || name == "build" || name == "runs" || name == "data" || name == "__pycache__";
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string path = entry->path().lexically_relative(root).generic_string();
    if (entry->is_directory()) {
      // octet/data is a level; only at the top "data" and "runs" are products.
      if (is_foreign(entry->path()) && !path.starts_with("octet/")) entry.disable_recursion_pending();
    } else if (ends_with_any(path, code_endings) || ends_with_any(path, text_endings) || path.starts_with("scripts/") ||
               path.starts_with(".ci/")) {
      files.push_back({path, read_lines(entry->path())});
    }
  }
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace

std::string SourceFile::level() const {
  if (!path.starts_with("octet/")) return "";
  const std::size_t end = path.find('/', 6);
  return end == std::string::npos ? "" : path.substr(6, end - 6);
}

bool SourceFile::is_test() const {
  constexpr std::string_view marks[] = {".test.", ".testing.", ".reference."};
  return path.starts_with("tests/") ||
         std::any_of(std::begin(marks), std::end(marks), [&](std::string_view mark) { return path.find(mark) != std::string::npos; });
}

bool SourceFile::is_code() const {
  return ends_with_any(path, code_endings) || path.ends_with("CMakeLists.txt") || path.starts_with("scripts/") || path.starts_with(".ci/");
}

const std::vector<SourceFile>& source_tree() {
  static const std::vector<SourceFile> files = read_tree(OCTET_SOURCE_DIR);
  return files;
}

SplitLine split_comment(const std::string& line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == '\\') ++i;
      else if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || (line[i] == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(line[i - 1]))))) {
      quote = line[i];
    } else if (line.compare(i, 2, "//") == 0) {
      return {line.substr(0, i), line.substr(i + 2)};
    }
  }
  return {line, ""};
}

std::string at_line(const SourceFile& file, std::size_t index, std::string_view what) {
  return file.path + ":" + std::to_string(index + 1) + ": " + std::string(what);
}

std::string listed(const std::vector<std::string>& violations) {
  std::string text;
  for (const std::string& violation : violations) text += violation + "\n";
  return text;
}

}  // namespace octet::house

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace octet::testing {

/// An empty folder for a test's files, removed with the object.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "octet_test_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("no folder for test files could be made at " + pattern);
    folder_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& folder() const { return folder_; }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  /// The number of files and folders in it.
  std::size_t entries() const {
    return std::size_t(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }
  /// Writes a file, with the folders above it; returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path path = at(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

 private:
  std::string folder_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The message of the `Wanted` error that `call` throws, "no error" when it throws nothing; any other error is passed on.
template <class Wanted, class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Wanted& e) {
    return e.what();
  }
  return "no error";
}

inline bool has(std::string_view message, std::string_view part) { return message.find(part) != std::string_view::npos; }

}  // namespace octet::testing

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "octet/base/error.hpp"

// What the tests of this floor share.

namespace octet::io {

/// An empty folder, removed with the object.
class Scratch {
 public:
  Scratch() {
    std::string pattern = ::testing::TempDir() + "/octet_io_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& folder() const { return folder_; }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t entries() const {
    return std::size_t(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

 private:
  std::string folder_;
};

/// The message of the `Wanted` that `call` throws, "no error" when it throws nothing; any other error goes on.
template <class Wanted, class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Wanted& e) {
    return e.what();
  }
  return "no error";
}

inline bool has(const std::string& message, std::string_view part) { return message.find(part) != std::string::npos; }

}  // namespace octet::io

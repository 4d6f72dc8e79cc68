#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "octet/comm/mpi/mpi.hpp"
#include "octet/launch/process.hpp"
#include "tests/testing/begun_octet.hpp"
#include "tests/testing/octet.hpp"

namespace octet::testing {

/// Whether `octet launch` starts ranks by mpirun.
inline bool has_mpi() { return !comm::mpi_module_path().empty() && !launch::find_program("mpirun").empty(); }

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

/// Tests of `octet launch` in a folder of their own.
class Launch : public ::testing::Test {
 protected:
  // The launcher's folder is in the test's.
  void SetUp() override { ::setenv("TMPDIR", scratch.folder().c_str(), 1); }
  void TearDown() override { ::unsetenv("TMPDIR"), ::unsetenv("OCTET_MPI_MODULE"); }

  Ended octet(const std::string& line) const { return run_octet(line, scratch.folder()); }

  /// The process of a rank, once it has started, other than `earlier`; 0 if the launcher has ended.
  pid_t rank_process(BegunOctet& launcher, int rank, pid_t earlier = 0) const {
    for (; launcher.running(); std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      for (const auto& entry : std::filesystem::directory_iterator(scratch.folder())) {
        const std::string file = entry.path().string() + "/rank-" + std::to_string(rank) + ".process";
        if (!has(file, "octet-launch-") || !std::filesystem::exists(file)) continue;
        if (const pid_t process = pid_t(std::atoi(bytes_of(file).c_str())); process > 0 && process != earlier) return process;
      }
    return 0;
  }
  bool left_nothing() const {
    for (const auto& entry : std::filesystem::directory_iterator(scratch.folder()))
      if (has(entry.path().string(), "octet-launch-")) return false;
    return true;
  }

  Scratch scratch;
};

}  // namespace octet::testing

#pragma once

#include <cstdio>
#include <filesystem>
#include <map>

#include "tests/testing/begun_octet.hpp"

namespace octet::testing {

/// The words before a program that start it as ranks on this machine, as root and with more ranks than processors. `recovery`: mpirun
/// leaves the other ranks alone when one ends, which then find out for themselves.
inline std::string mpirun_words(int ranks, bool recovery = false) {
  return "--allow-run-as-root --oversubscribe --bind-to none --mca btl self,vader --mca mpi_yield_when_idle 1 " +
         std::string(recovery ? "--enable-recovery " : "") + "-n " + std::to_string(ranks) + " " + OCTET_PROGRAM + " ";
}

/// The program on several ranks, begun by mpirun and not waited for; killed with the object.
class RankProcesses {
 public:
  RankProcesses(int ranks, const std::string& line, const std::string& folder, const std::string& err, bool recovery = false)
      : begun_(mpirun_words(ranks, recovery) + line, folder, err, OCTET_MPIRUN) {}

  BegunOctet& mpirun() { return begun_; }
  static bool is_stopped(pid_t process) {
    const std::string stat = text_of("/proc/" + std::to_string(process) + "/stat");
    return stat.find(") T ") != stat.npos;
  }
  /// The processes of ranks, by rank, as far as they have begun.
  std::map<int, pid_t> processes() const {
    std::map<int, pid_t> out;
    std::error_code none;
    for (std::filesystem::directory_iterator at("/proc", none), end; !none && at != end; at.increment(none)) {
      const std::string name = at->path().filename().string();
      if (name.find_first_not_of("0123456789") != name.npos || parent_of(at->path()) != begun_.process()) continue;
      if (const int rank = rank_of(at->path()); rank >= 0) out[rank] = pid_t(std::stol(name));
    }
    return out;
  }

 private:
  // "" of a process that is gone.
  static std::string text_of(const std::filesystem::path& path) {
    std::string out;
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return out;
    char block[4096];
    while (const std::size_t n = std::fread(block, 1, sizeof block, file)) out.append(block, n);
    std::fclose(file);
    return out;
  }
  static pid_t parent_of(const std::filesystem::path& process) {
    const std::string stat = text_of(process / "stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == stat.npos) return -1;
    std::istringstream rest(stat.substr(name_end + 1));
    std::string state;
    long parent = -1;
    rest >> state >> parent;
    return pid_t(parent);
  }
  static int rank_of(const std::filesystem::path& process) {
    const std::string variables = text_of(process / "environ"), name = "OMPI_COMM_WORLD_RANK=";
    const std::size_t at = variables.find(name);
    return at == variables.npos ? -1 : std::stoi(variables.substr(at + name.size()));
  }

  BegunOctet begun_;
};

}  // namespace octet::testing

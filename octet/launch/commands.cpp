#include "octet/launch/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/comm/rendezvous/socket.hpp"
#include "octet/launch/rank_folder.hpp"
#include "octet/launch/rank_process.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::launch {
namespace {

// The part that all ways share. Ranks do not see the step of a batch system around this launcher.
Start common(const LaunchOptions& options, const std::string& folder) {
  Start s{.program = this_program, .words = {"launch"}, .removed = {"SLURM_STEP_ID"}, .own_group = true};
  s.words.insert(s.words.end(), options.words.begin(), options.words.end());
  s.variables.emplace_back(RankFolder::variable, folder);
  if (!options.logs.empty()) s.variables.emplace_back(log_variable, options.logs);
  return s;
}

void share_threads(const LaunchOptions& options, Start& s) {
  if (!comm::environment_variable("OMP_NUM_THREADS"))
    s.variables.emplace_back("OMP_NUM_THREADS", std::to_string(std::max(1, cpu::threads() / options.choice.ranks)));
}

void hide_gpus(const LaunchOptions& options, Start& s) {
  if (!options.machine.gpus.empty()) s.variables.emplace_back("CUDA_VISIBLE_DEVICES", "");
}

// By which the ranks of one start know each other.
std::string new_token() {
  std::array<unsigned char, 16> bytes;
  if (::getentropy(bytes.data(), bytes.size()) != 0)
    throw DeviceError(format("the system gives no random numbers: {}", std::strerror(errno)));
  constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (const unsigned char b : bytes) out += digits[b >> 4], out += digits[b & 15];
  return out;
}

Start of_gpu(const LaunchOptions& options, Start s, int rank, int port) {
  const std::string number = std::to_string(rank), size = std::to_string(options.choice.ranks);
  for (const char* name : {"RANK", "LOCAL_RANK"}) s.variables.emplace_back(name, number);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) s.variables.emplace_back(name, size);
  s.variables.emplace_back("MASTER_ADDR", "127.0.0.1"), s.variables.emplace_back("MASTER_PORT", std::to_string(port));
  s.variables.emplace_back("CUDA_VISIBLE_DEVICES", options.machine.gpus[std::size_t(rank)]);
  return s;
}

// The library that keeps mpirun on loopback is beside the module for MPI. Where it is missing, mpirun listens on all addresses.
void keep_on_loopback(const LaunchOptions& options, Start& s) {
  const std::string library = (std::filesystem::path(options.machine.mpi_module).parent_path() / "liboctet_loopback.so").string();
  if (!exists(library)) return;
  const auto others = comm::environment_variable("LD_PRELOAD");
  s.variables.emplace_back("LD_PRELOAD", library + (others && !others->empty() ? ":" + *others : ""));
}

// Open MPI's options, as of version 4.1: root and more ranks than processors are allowed, ranks are bound to no processor and yield it
// while they wait, they share memory and open no port, mpirun's own port is on the loopback interface, and a batch system is not asked for
// hosts. Its files are in the launcher's folders.
Start of_mpirun(const LaunchOptions& options, Start s, const std::string& folder, const std::string& memory) {
  std::vector<std::string> words{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet"};
  const auto set = [&](const char* key, const std::string& value) { words.insert(words.end(), {"--mca", key, value}); };
  set("mpi_yield_when_idle", "1"), set("btl", "self,vader"), set("oob_tcp_if_include", "lo"), set("oob_tcp_disable_ipv6_family", "1");
  set("orte_tmpdir_base", folder), set("plm", "^slurm"), set("ras", "^slurm");
  if (!memory.empty()) set("btl_vader_backing_directory", memory);
  words.insert(words.end(), {"-n", std::to_string(options.choice.ranks), std::filesystem::read_symlink(this_program).string()});
  words.insert(words.end(), s.words.begin(), s.words.end());
  keep_on_loopback(options, s);
  s.program = options.machine.mpirun, s.words = std::move(words);
  return s;
}

}  // namespace

std::vector<Start> commands(const LaunchOptions& options, const std::string& folder, int port, const std::string& memory) {
  Start s = common(options, folder);
  if (options.choice.way == Way::threads) {
    hide_gpus(options, s);
    s.variables.emplace_back("OCTET_THREAD_RANKS", std::to_string(options.choice.ranks));
    return {s};
  }
  share_threads(options, s);
  if (options.choice.way == Way::mpi) {
    hide_gpus(options, s);
    return {of_mpirun(options, s, folder, memory)};
  }
  std::vector<Start> out;
  s.variables.emplace_back(comm::token_variable, new_token());
  for (int rank = 0; rank < options.choice.ranks; ++rank) out.push_back(of_gpu(options, s, rank, port));
  return out;
}

int told_ranks(const Choice& c) { return c.way == Way::threads ? 1 : c.ranks; }

int free_port() { return comm::port_of(comm::listen_on("", 0)); }

}  // namespace octet::launch

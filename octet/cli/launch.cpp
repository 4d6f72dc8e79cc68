#include "octet/launch/launch.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "octet/base/descriptor.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/log.hpp"
#include "octet/cli/command.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"
#include "octet/config/read.hpp"
#include "octet/launch/rank_process.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::string device = "auto", logs;
  std::int64_t ranks = 0, restarts = 0, fewest = 0;
  double grace = 10;
  std::vector<std::string> words;
};

// Other subcommands would run once per rank, each for itself.
void require_ranks_of(const std::vector<std::string>& words) {
  constexpr std::string_view known[] = {"train", "compare", "eval", "bench"};
  if (words.empty()) throw ConfigError("octet launch starts a subcommand: octet launch --ranks 4 train run.toml; see octet launch --help");
  const std::string& name = words[0];
  if (name.starts_with("-")) throw ConfigError(format("octet launch has no option `{}`; see octet launch --help", printable(name)));
  if (std::find(std::begin(known), std::end(known), name) == std::end(known))
    throw ConfigError(format("octet launch {}: only {} can run on several ranks", printable(name), joined(known)));
  constexpr std::string_view measured[] = {"step", "scaling", "allreduce", "tp-attention", "--calibrate"};
  const auto measures_ranks = [&](const std::string& word) {
    return std::find(std::begin(measured), std::end(measured), word.substr(0, word.find('='))) != std::end(measured);
  };
  if (name == "bench" && std::none_of(words.begin() + 1, words.end(), measures_ranks))
    throw ConfigError(format("octet launch bench: choose {}, which measure ranks; others measure one", joined(measured)));
}

void require_no_rank() {
  const comm::LaunchedRank p = comm::launched_rank_from_environment();
  if (p.size > 1)
    throw ConfigError(format("octet launch starts the ranks of one machine itself, but {} has started {} processes: leave out octet launch",
                             comm::name(p.launcher), p.size));
  if (comm::thread_ranks_from_environment() > 0) throw ConfigError("octet launch: unset OCTET_THREAD_RANKS, which it sets itself");
}

std::string log_folder(const std::string& path) {
  if (path.empty()) return "";
  if (const int reason = make_folders(path)) refuse_file("make the folder", path, reason);
  return std::filesystem::absolute(path).string();
}

// The words of `train` that continue a run on other ranks with as many sequences per step. They override a number that the user has set.
std::optional<std::vector<std::string>> train_on_ranks(std::vector<std::string> words, const std::string& run, int ranks) {
  train::RunConfig config;
  config::read_toml_file(run + "/config.toml", config, config::Written::by_program);
  const std::int64_t data = ranks / config.ranks.beside_data();
  if (data * config.ranks.beside_data() != ranks || !config.ranks.fits_groups(data)) return {};
  const auto split = train::split_of(train::sequences_per_step(config), data, config.train.batch);
  if (!split) return {};
  for (const auto& [key, value] : {std::pair("ranks.data", data), {"train.batch", split->batch}, {"train.accumulate", split->accumulate}})
    words.insert(words.end(), {"--set", format("{}={}", key, value)});
  return words;
}

void set_fewest_ranks(const Options& o, launch::LaunchOptions& plan) {
  if (o.fewest == 0) return;
  const std::string option = format("--min-ranks {}", o.fewest);
  if (o.words[0] != "train") throw ConfigError(option + ": only octet train resumes on fewer ranks; leave the option out");
  if (o.restarts == 0) throw ConfigError(option + " is for restarts: give --restarts too");
  if (o.fewest > plan.choice.ranks)
    throw ConfigError(format("{}: {} {} started; choose a number up to that", option, plan.choice.ranks,
                             plan.choice.ranks == 1 ? "rank is" : "ranks are"));
  if (plan.choice.way == launch::Way::threads)
    return log::warn("{} has no effect: ranks are threads of one process here, and are lost together", option);
  plan.fewest_ranks = int(o.fewest), plan.on_ranks = train_on_ranks;
}

ExitCode run(const Options& o) {
  if (launch::is_around_a_rank()) return ExitCode(launch::run_around_rank(o.words));
  require_ranks_of(o.words);
  require_no_rank();
  launch::LaunchOptions plan{.words = o.words, .choice = {}, .machine = launch::this_machine(), .logs = log_folder(o.logs)};
  const auto devices = o.device == "cpu" ? launch::Devices::cpu : o.device == "gpu" ? launch::Devices::gpu : launch::Devices::automatic;
  plan.choice = launch::choose(int(o.ranks), devices, plan.machine);
  plan.restarts = int(o.restarts), plan.grace_seconds = o.grace;
  set_fewest_ranks(o, plan);
  return ExitCode(launch::launch(plan));
}

}  // namespace

void add_launch(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command(
      "launch", "Start a subcommand on several ranks of this machine",
      "  octet launch train run.toml                          one process per GPU\n"
      "  octet launch --ranks 4 train run.toml --fp8          4 ranks; on CPUs they are processes over MPI\n"
      "  octet launch --ranks 4 --restarts 3 --rank-logs logs train run.toml\n"
      "  octet launch --ranks 4 --restarts 9 --min-ranks 2 train run.toml\n"
      "  octet launch --ranks 2 bench allreduce\n"
      "All words after the subcommand's name belong to it. The exit code is that of the rank that failed first, 128 + n if signal n killed "
      "it.",
      Result::file);
  command.option("--ranks", o->ranks, "ranks to start; 0: one per GPU", {.at_least = 0, .at_most = 1024});
  command.option("--device", o->device, "auto (GPUs if there are), cpu or gpu", {.one_of = {"auto", "cpu", "gpu"}});
  command.option("--restarts", o->restarts, "starts after a lost rank or one that a signal killed; train resumes its newest checkpoint",
                 {.at_least = 0, .at_most = 1000});
  command.option("--min-ranks", o->fewest,
                 "fewest ranks of a restart of train: a rank that is lost in two starts in a row is left out; 0: all ranks start again",
                 {.at_least = 0, .at_most = 1024});
  command.option("--rank-logs", o->logs, "folder for the output of ranks other than 0, as rank-N.log");
  command.option("--grace", o->grace,
                 "seconds from SIGTERM to SIGKILL for the other ranks, once one has failed, and for ranks that have not met",
                 {.at_least = 1, .at_most = 3600});
  command.rest(o->words);
  command.run([o] { return run(*o); });
}

}  // namespace octet::cli

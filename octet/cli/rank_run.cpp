#include "octet/cli/rank_run.hpp"

#include <chrono>
#include <thread>

#include "octet/launch/run_note.hpp"

namespace octet::cli {
namespace {

// The rank that reports may have begun to wait later than this one, and mpirun ends all ranks with the first that ends.
constexpr std::chrono::seconds for_the_report(1);

}  // namespace

ExitCode run_on_ranks(const machine::RankWish& wish,
                      const std::function<ExitCode(comm::Communicator&, const machine::RankPlacement&)>& work) {
  ExitCode code = ExitCode::done;
  try {
    machine::on_ranks(wish, [&](comm::Communicator& ranks, const machine::RankPlacement& placement) {
      if (ranks.rank() == 0) launch::note_begun();
      const ExitCode own = work(ranks, placement);
      if (ranks.rank() == 0 || placement.backend != "threads") code = own;
    });
  } catch (const comm::CommError& e) {
    if (!e.others_tell) throw;
    std::this_thread::sleep_for(for_the_report);
    return e.code();
  }
  return code;
}

}  // namespace octet::cli

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
  try {
    return machine::result_on_ranks(wish, [&](comm::Communicator& ranks, const machine::RankPlacement& placement) {
      if (ranks.rank() == 0) launch::note_begun();
      return work(ranks, placement);
    });
  } catch (const comm::CommError& e) {
    if (!e.others_tell) throw;
    std::this_thread::sleep_for(for_the_report);
    return e.code();
  }
}

}  // namespace octet::cli

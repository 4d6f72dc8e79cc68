#include "octet/cli/rank_run.hpp"

#include "octet/launch/run_note.hpp"

namespace octet::cli {

ExitCode run_on_ranks(const machine::RankWish& wish, const std::function<ExitCode(comm::Communicator&, const machine::RankPlace&)>& work) {
  ExitCode code = ExitCode::done;
  try {
    machine::on_ranks(wish, [&](comm::Communicator& ranks, const machine::RankPlace& place) {
      if (ranks.rank() == 0) launch::note_begun();
      const ExitCode own = work(ranks, place);
      if (ranks.rank() == 0 || place.backend != "threads") code = own;
    });
  } catch (const comm::CommError& e) {
    if (!e.others_tell) throw;
    return e.code();
  }
  return code;
}

}  // namespace octet::cli

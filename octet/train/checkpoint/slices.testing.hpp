#pragma once

#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/step/small_model.testing.hpp"

// The state of engines on ranks to a folder and back.

namespace octet::train::testing {

/// Writes this rank's part; all ranks that divide the state call it.
inline void save(Engine& e, int rank, const std::string& folder) {
  if (rank > 0 && !e.shards_state()) return;
  Capture capture(e.stream, rank == 0 ? Capture::What::all : e.saves_parts() ? Capture::What::slices : Capture::What::none);
  e.visit_state(capture);
  const Snapshot s = capture.take();
  write_file(folder + "/" + state_file_name(rank), std::string(reinterpret_cast<const char*>(s.file.get()), s.bytes));
}

/// The parts of up to 8 ranks.
inline void load(Engine& e, const std::string& folder) {
  std::vector<std::string> names;
  for (int rank = 0; rank < 8; ++rank)
    if (exists(folder + "/" + state_file_name(rank))) names.push_back(state_file_name(rank));
  const StateFiles files(folder, names);
  for (const auto mode : {Restore::Mode::check, Restore::Mode::write}) {
    Restore restore(e.stream, files, mode);
    e.visit_state(restore);
    restore.finish();
  }
}

}  // namespace octet::train::testing

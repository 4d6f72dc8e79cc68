#include "octet/launch/run_note.hpp"

#include "octet/base/file.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"

namespace octet::launch {

std::string begun_note(const std::string& run_note) { return run_note + "-begun"; }

void note_begun() {
  if (const auto file = comm::environment_variable(run_note_variable)) write_file(begun_note(*file), "");
}

void note_run_folder(const std::string& folder) {
  if (const auto file = comm::environment_variable(run_note_variable)) write_file(*file, folder);
}

}  // namespace octet::launch

#include "octet/launch/run_note.hpp"

#include "octet/base/file.hpp"
#include "octet/comm/rendezvous/place.hpp"

namespace octet::launch {

void note_run_folder(const std::string& folder) {
  if (const auto file = comm::environment_variable(run_note_variable)) write_file(*file, folder);
}

}  // namespace octet::launch

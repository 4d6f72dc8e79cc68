#include "octet/train/study/twin.hpp"

#include "octet/base/path.hpp"
#include "octet/train/study/nudge.hpp"

namespace octet::train {

void Twin::begin(Engine& e) {
  if (number_ > 0) nudge(e.stream, e.parameters, seed_, number_);
}

int twin_of(const std::string& run_folder) {
  const std::string path = run_folder + "/run.json";
  return !run_folder.empty() && exists(path) ? telemetry::read_run_facts(path).twin : 0;
}

}  // namespace octet::train

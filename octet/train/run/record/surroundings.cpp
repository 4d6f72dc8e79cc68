#include "octet/train/run/record/surroundings.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "octet/machine/machine.hpp"
#include "octet/train/checkpoint/store.hpp"
#include "octet/train/run/folder/run_folder.hpp"

namespace octet::train {
namespace {

constexpr double between_looks = 1;  // seconds

double free_on_disk(const std::string& folder) {
  struct statvfs facts {};
  return ::statvfs(folder.c_str(), &facts) == 0 ? double(facts.f_bavail) * double(facts.f_frsize) : NAN;
}

/// Seconds since the folder of a checkpoint got its last entry, its manifest.
double age_of(const std::string& folder) {
  struct stat facts {};
  return ::stat(folder.c_str(), &facts) == 0 ? std::max(0.0, double(std::time(nullptr) - facts.st_mtime)) : INFINITY;
}

double bytes_of(const Manifest& manifest) {
  double bytes = 0;
  for (const Manifest::File& file : manifest.files) bytes += double(file.bytes);
  return bytes;
}

}  // namespace

Surroundings::Surroundings(std::string folder)
    : folder_(std::move(folder)), started_(monotonic_seconds()), looked_(started_ - between_looks) {}

telemetry::MachineEvent Surroundings::measure(Device device) {
  if (!folder_.empty() && monotonic_seconds() - looked_ >= between_looks) look(device);
  return last_;
}

void Surroundings::look(Device device) {
  looked_ = monotonic_seconds();
  last_ = {
      .memory_free = double(machine::available_bytes(device)), .disk_free = free_on_disk(folder_), .checkpoint_age = looked_ - started_};
  try {
    const CheckpointStore store(checkpoint_folder(folder_));
    const std::vector<std::int64_t> steps = store.steps();
    if (steps.empty()) return;
    last_.checkpoint_age = std::min(last_.checkpoint_age, age_of(store.path(steps.back())));
    last_.checkpoint_bytes = bytes_of(store.manifest(steps.back()));
  } catch (const Error&) {
    // Removed while it was read: its space is not known.
  }
}

}  // namespace octet::train

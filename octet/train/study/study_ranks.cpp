#include "octet/train/study/study_ranks.hpp"

#include "octet/machine/machine.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::train {

StudyRanks::StudyRanks(const CompareRanks& c, const std::string& device)
    : ranks_(c.ranks != nullptr ? *c.ranks : self_),
      here_(c.here),
      backend_(c.backend),
      stream_(ranks_.size() > 1 ? machine::device_named(device) : Device::cpu) {}

void StudyRanks::count_in(RunConfig& c) const {
  if (!alone()) c.ranks.data = ranks_.size() / c.ranks.beside_data();
}

std::int64_t StudyRanks::of_first(std::int64_t own) { return parallel::of_first(stream_, ranks_, own); }
std::string StudyRanks::of_first(const std::string& own) { return parallel::of_first(stream_, ranks_, own); }
bool StudyRanks::any(bool own) { return parallel::total(stream_, ranks_, own) > 0; }

}  // namespace octet::train

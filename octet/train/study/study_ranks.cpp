#include "octet/train/study/study_ranks.hpp"

#include "octet/machine/machine.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::train {

StudyRanks::StudyRanks(const CompareRanks& c, const std::string& device)
    : RunRanks(c.ranks), placement_(c.placement), stream_(alone() ? Device::cpu : machine::device_named(device)) {}

void StudyRanks::count_in(RunConfig& c) {
  if (!alone()) c.ranks.data = all().size() / c.ranks.beside_data();
}

std::int64_t StudyRanks::of_first(std::int64_t own) { return parallel::of_first(stream_, all(), own); }
std::string StudyRanks::of_first(const std::string& own) { return parallel::of_first(stream_, all(), own); }
bool StudyRanks::first_finds(const std::function<bool()>& look) {
  bool own = false;
  first_works([&] { own = look(); });
  return of_first(own) != 0;
}
bool StudyRanks::any(bool own) { return parallel::total(stream_, all(), own) > 0; }

}  // namespace octet::train

#include "octet/train/run/ranks/accord.hpp"

#include <algorithm>

#include "octet/parallel/host_values.hpp"

namespace octet::train {

Accord agree(Stream& stream, comm::Communicator& ranks, const Accord& own) {
  if (ranks.size() == 1) return own;
  const double numbers[] = {double(own.stop), double(own.save), double(own.saving), double(own.out_of_time), own.seconds, own.waited};
  const std::vector<double> all = parallel::gathered(stream, ranks, numbers);
  Accord out;
  for (auto n = all.begin(); n != all.end(); n += std::size(numbers)) {
    const Accord rank{.stop = n[0] != 0, .save = n[1] != 0, .saving = n[2] != 0, .out_of_time = n[3] != 0, .seconds = n[4], .waited = n[5]};
    out.stop |= rank.stop, out.save |= rank.save, out.saving |= rank.saving, out.out_of_time |= rank.out_of_time;
    out.seconds = std::max(out.seconds, rank.seconds), out.waited = std::max(out.waited, rank.waited);
    out.ranks.push_back(rank);
  }
  return out;
}

}  // namespace octet::train

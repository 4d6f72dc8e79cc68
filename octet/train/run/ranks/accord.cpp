#include "octet/train/run/ranks/accord.hpp"

#include <algorithm>
#include <array>

#include "octet/parallel/host_values.hpp"

namespace octet::train {

namespace {

constexpr std::size_t numbers = 12;

std::array<double, numbers> numbers_of(const Accord& a) {
  return {double(a.stop),    double(a.save), double(a.saving),  double(a.out_of_time), a.seconds,         a.waited,
          a.gpu.utilization, a.gpu.power,    a.gpu.temperature, a.gpu.sm_clock,        a.gpu.memory_used, double(a.gpu.throttling)};
}

Accord accord_of(const double* n) {
  return {.stop = n[0] != 0,
          .save = n[1] != 0,
          .saving = n[2] != 0,
          .out_of_time = n[3] != 0,
          .seconds = n[4],
          .waited = n[5],
          .gpu = {.utilization = n[6],
                  .power = n[7],
                  .temperature = n[8],
                  .sm_clock = n[9],
                  .memory_used = n[10],
                  .throttling = std::int64_t(n[11])}};
}

}  // namespace

Accord agree(Stream& stream, comm::Communicator& ranks, const Accord& own) {
  const std::vector<double> all = parallel::gathered(stream, ranks, numbers_of(own));
  Accord out;
  for (std::size_t at = 0; at < all.size(); at += numbers) {
    const Accord rank = accord_of(all.data() + at);
    out.stop |= rank.stop, out.save |= rank.save, out.saving |= rank.saving, out.out_of_time |= rank.out_of_time;
    out.seconds = std::max(out.seconds, rank.seconds), out.waited = std::max(out.waited, rank.waited);
    out.ranks.push_back(rank);
  }
  return out;
}

}  // namespace octet::train

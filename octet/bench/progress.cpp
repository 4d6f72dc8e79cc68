#include "octet/bench/progress.hpp"

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/base/text.hpp"

namespace octet::bench {

std::string progress_text(const std::string& what, std::size_t number, std::size_t total, double elapsed_seconds) {
  std::string out = format("measuring {}, {} of {}", what, number, total);
  const auto done = double(number - 1);
  if (done > 0) out += format(", about {} s left", fixed(elapsed_seconds / done * (double(total) - done), 0));
  return out + " ...";
}

Progress::Progress(std::size_t total) : total_(total), start_(monotonic_seconds()) {}

void Progress::begin(const std::string& what) { log::info("{}", progress_text(what, ++begun_, total_, monotonic_seconds() - start_)); }

}  // namespace octet::bench

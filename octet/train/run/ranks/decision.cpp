#include "octet/train/run/ranks/decision.hpp"

#include <sstream>

#include "octet/base/text.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::train {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

Decision decision_of_first(Stream& stream, comm::Communicator& ranks, const Decision& own) {
  const health::Orders& o = own.orders;
  const health::Request& r = own.request;
  const double numbers[] = {double(o.acts),     o.limits.loss,    o.limits.grad_norm, o.rate_factor,          double(o.pass_data),
                            double(o.incident), double(r.action), double(r.before),   double(r.layers.size())};
  const std::vector<double> n = parallel::gathered(stream, ranks, numbers);
  Decision out{.orders = {.acts = n[0] != 0,
                          .limits = {.loss = n[1], .grad_norm = n[2]},
                          .rate_factor = n[3],
                          .pass_data = std::int64_t(n[4]),
                          .incident = n[5] != 0},
               .request = {.action = health::RecoveryAction(int(n[6])), .before = std::int64_t(n[7])}};
  if (n[8] > 0) out.request.layers = lines_of(parallel::of_first(stream, ranks, joined(r.layers, "\n")));
  if (out.request.action == health::RecoveryAction::stop) out.request.reason = parallel::of_first(stream, ranks, r.reason);
  return out;
}

}  // namespace octet::train

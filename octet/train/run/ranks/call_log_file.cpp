#include "octet/train/run/ranks/call_log_file.hpp"

#include <exception>

#include "octet/base/clock.hpp"
#include "octet/base/file.hpp"
#include "octet/base/host_name.hpp"
#include "octet/base/log.hpp"
#include "octet/json/value.hpp"

namespace octet::train {
void write_last_calls(const std::string& run_folder, const comm::Communicator& ranks) {
  const double now = monotonic_seconds();
  json::Array calls;
  for (const comm::LoggedCall& c : ranks.last_calls().calls())
    calls.push_back(json::Object{{"number", c.number},
                                 {"step", c.step},
                                 {"collective", std::string(name(c.kind))},
                                 {"dtype", to_text(c.dtype)},
                                 {"count", c.count},
                                 {"sent_bytes", c.sent_bytes},
                                 {"age", now - c.begin},
                                 {"seconds", c.end - c.begin}});
  const json::Value file = json::Object{{"rank", std::int64_t(ranks.rank())},
                                        {"ranks", std::int64_t(ranks.size())},
                                        {"host", printable(host_name())},
                                        {"step", ranks.step()},
                                        {"calls", calls}};
  try {
    write_own_file(format("{}/collectives-{}.json", run_folder, ranks.rank()),
                   file.dump(json::Layout::indented, json::Invalid::replace) + '\n');
  } catch (const Error& e) {
    log::warn("{}", e.what());
  }
}

CallLogFile::CallLogFile(const std::string& run_folder, const comm::Communicator& ranks)
    : folder_(run_folder), ranks_(ranks), exceptions_(std::uncaught_exceptions()) {}

CallLogFile::~CallLogFile() {
  if (ranks_.size() > 1 && std::uncaught_exceptions() > exceptions_) write_last_calls(folder_, ranks_);
}

}  // namespace octet::train

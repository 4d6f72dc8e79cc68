#include "octet/comm/comm_error.hpp"

namespace octet::comm {
namespace {

std::string sentence(const Call& call, int rank, int size, std::int64_t step, const std::string& what) {
  return format("rank {} of {}, {}: {}: {}", rank, size, step < 0 ? "before the first step" : format("step {}", step), to_text(call), what);
}

}  // namespace

CommError::CommError(const Call& call, int rank, int size, std::int64_t step, int peer, const std::string& what)
    : Error(ExitCode::ranks, sentence(call, rank, size, step, what)), collective(call.kind), rank(rank), peer(peer), step(step) {}

}  // namespace octet::comm

#include "octet/comm/mpi/attendance.hpp"

#include <algorithm>

#include "octet/comm/mpi/module.hpp"

namespace octet::comm {

Attendance::Attendance(MpiGroup* group)
    : group_(group), rank_(mpi_transport().rank(group)), peers_(std::size_t(mpi_transport().size(group))) {}

Attendance::~Attendance() {
  for (Peer& p : peers_)
    if (p.receive != nullptr) mpi_transport().cancel(p.receive);
}

void Attendance::wait_in(std::int64_t number, bool late) {
  hear();
  const bool heard = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.latest >= number - 1 && p.latest > 0; });
  if ((late || heard) && told_ < number) tell(number);
}

// A transfer that MPI refuses tells nothing: its rank stays absent.
void Attendance::hear() {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    Peer& p = peers_[r];
    if (int(r) == rank_) continue;
    if (p.receive == nullptr && mpi_transport().receive(group_, &p.incoming, sizeof p.incoming, int(r), &p.receive) != 0) continue;
    int done = 0;
    if (mpi_transport().test(p.receive, &done) != 0 || done == 0) continue;
    p.latest = std::max(p.latest, p.incoming);
    p.receive = nullptr;
  }
}

void Attendance::tell(std::int64_t number) {
  told_ = number;
  Note& note = notes_.emplace_back(Note{number, {}});
  for (int r = 0; r < int(peers_.size()); ++r) {
    MpiRequest* request = nullptr;
    if (r != rank_ && mpi_transport().send(group_, &note.number, sizeof note.number, r, &request) == 0) note.sends.push_back(request);
  }
  for (auto n = notes_.begin(); n != notes_.end();) {
    std::erase_if(n->sends, [](MpiRequest* request) {
      int done = 0;
      return mpi_transport().test(request, &done) == 0 && done != 0;
    });
    n = n->sends.empty() ? notes_.erase(n) : std::next(n);
  }
}

std::vector<int> Attendance::absent(std::int64_t number) const {
  std::vector<int> out;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (int(r) != rank_ && (peers_[r].latest == 0 || peers_[r].latest < number - 1)) out.push_back(int(r));
  return out;
}

}  // namespace octet::comm

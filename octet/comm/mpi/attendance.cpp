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

void Attendance::wait(bool late) {
  for (int r = 0; r < int(peers_.size()); ++r)
    if (r != rank_) hear(r);
  if (asked_ || !(late || heard_)) return;
  asked_ = true;
  Message& question = add(question_);
  for (int r = 0; r < int(peers_.size()); ++r)
    if (r != rank_) send(question, r);
}

void Attendance::hear(int rank) {
  Peer& p = peers_[std::size_t(rank)];
  while (receive(rank)) {
    if (p.incoming < 0) {
      p.answered = std::max(p.answered, -p.incoming);
    } else {
      heard_ = true;
      send(add(-p.incoming), rank);
    }
  }
}

// Whether a message has come. A transfer that MPI refuses says nothing: its rank stays absent.
bool Attendance::receive(int rank) {
  Peer& p = peers_[std::size_t(rank)];
  if (p.receive == nullptr && mpi_transport().receive(group_, &p.incoming, sizeof p.incoming, rank, &p.receive) != 0) return false;
  int done = 0;
  if (mpi_transport().test(p.receive, &done) != 0 || done == 0) return false;
  p.receive = nullptr;
  return true;
}

// Also forgets the messages that have been sent.
Attendance::Message& Attendance::add(std::int64_t number) {
  for (auto m = messages_.begin(); m != messages_.end();) {
    std::erase_if(m->sends, [](MpiRequest* request) {
      int done = 0;
      return mpi_transport().test(request, &done) == 0 && done != 0;
    });
    m = m->sends.empty() ? messages_.erase(m) : std::next(m);
  }
  return messages_.emplace_back(Message{number, {}});
}

void Attendance::send(Message& m, int rank) {
  MpiRequest* request = nullptr;
  if (mpi_transport().send(group_, &m.number, sizeof m.number, rank, &request) == 0) m.sends.push_back(request);
}

std::vector<int> Attendance::absent() const {
  std::vector<int> out;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (int(r) != rank_ && peers_[r].answered != question_) out.push_back(int(r));
  return out;
}

}  // namespace octet::comm

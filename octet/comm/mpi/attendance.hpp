#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "octet/comm/mpi/transport.hpp"

namespace octet::comm {

/// The ranks that have come to a collective that does not end. A rank that waits long tells all others the number of its call; a waiting
/// rank that hears of this tells, too. Ranks that stay silent are lost or late. Messages travel in a group of MPI of their own.
class Attendance {
 public:
  /// All ranks call it.
  explicit Attendance(MpiGroup* group);
  ~Attendance();
  Attendance(const Attendance&) = delete;

  /// While this rank waits in its call `number`: hears of others, and tells them if one has told of this call or `late`.
  void wait_in(std::int64_t number, bool late);
  /// Ranks, without this one, that have told of no call from `number` - 1 on: a rank may still wait in the call before, which a lost one
  /// has left incomplete.
  std::vector<int> absent(std::int64_t number) const;

 private:
  struct Note {
    std::int64_t number = 0;
    std::vector<MpiRequest*> sends;
  };
  struct Peer {
    std::int64_t latest = 0, incoming = 0;
    MpiRequest* receive = nullptr;
  };
  void hear();
  void tell(std::int64_t number);

  MpiGroup* group_;
  int rank_;
  std::int64_t told_ = 0;
  std::list<Note> notes_;  // a note stays where it is until it is sent
  std::vector<Peer> peers_;
};

}  // namespace octet::comm

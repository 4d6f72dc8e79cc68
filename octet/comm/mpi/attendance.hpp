#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "octet/comm/mpi/transport.hpp"

namespace octet::comm {

/// The ranks that wait, too, while a call of this rank does not end. A rank that waits long asks all others; a waiting rank that is asked
/// answers, and asks, too. Ranks that do not answer are lost or late. Calls may be those of different groups: on a mesh a rank waits
/// for another that itself waits for the lost one. Messages travel in a group of MPI of their own.
class Attendance {
 public:
  /// All ranks call it.
  explicit Attendance(MpiGroup* group);
  ~Attendance();
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  /// A call of this rank begins. Answers to questions of earlier calls do not count.
  void begin() { ++question_, asked_ = heard_ = false; }
  /// While it waits: hears the others, and asks them if one has asked or `late`.
  void wait(bool late);
  /// Ranks, without this one, that have not answered since begin().
  std::vector<int> absent() const;

 private:
  // A question has a number above 0, its answer that below 0.
  struct Message {
    std::int64_t number = 0;
    std::vector<MpiRequest*> sends;
  };
  struct Peer {
    std::int64_t answered = 0, incoming = 0;
    MpiRequest* receive = nullptr;
  };
  void hear(int rank);
  bool receive(int rank);
  Message& add(std::int64_t number);
  void send(Message&, int rank);

  MpiGroup* group_;
  int rank_;
  std::int64_t question_ = 0;
  bool asked_ = false, heard_ = false;
  std::list<Message> messages_;  // a message stays where it is until it is sent
  std::vector<Peer> peers_;
};

}  // namespace octet::comm

#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "octet/comm/peer/host_memory.hpp"
#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/cuda/peer.hpp"

namespace octet::comm {

/// Boxes in the memory of each rank's GPU, into which the other ranks of the machine copy pieces of tensors over NVLink or PCIe. Copy
/// engines move them, and queues wait for flags without a kernel, so no multiprocessor is taken from other work.
///
///   put        waits until the next box at `to` is empty, copies the piece there, marks it full     in the given queue
///   take       waits until the oldest box from `from` that was not taken is full                    in the given queue
///   give_back  marks it empty                                                                       in the given queue
///
/// Two ranks use the boxes between them in the same order, in turn. A flag has two values, so a recorded graph may repeat its puts and
/// takes. Flags are in memory of the host. So a rank can end its waits for one that is lost.
class Mailboxes {
 public:
  static constexpr int boxes = 2;  // from each rank to each other one

  /// The bytes of all ranks, rank after rank, each as many as given.
  using Gather = std::function<std::vector<std::byte>(std::span<const std::byte>)>;
  /// All ranks call it. Null on all of them where one has no access to another, with the reason of this rank in `why`, if it is one.
  static std::unique_ptr<Mailboxes> connect(int rank, int size, const Gather&, std::string& why);
  /// Waits at most a second until the others do not use this rank's memory any more.
  ~Mailboxes();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The bytes of a box: a multiple of 1 MiB.
  std::size_t piece() const { return piece_; }

  /// Puts beside other work are in this queue.
  cuda::Queue sender() const { return sender_; }
  /// `later` continues after all work that `earlier` has now.
  void follow(cuda::Queue later, cuda::Queue earlier);
  /// Remembers the end of the sender's work by a number, modulo boxes; then a queue continues after it.
  void mark(std::size_t number);
  void hold(cuda::Queue, std::size_t number);
  /// After all work of the sender now. The caller destroys it.
  cuda::Event end_of_puts();
  void put(cuda::Queue, int to, const std::byte* from, std::size_t bytes);
  /// The piece, until it is given back.
  const std::byte* take(cuda::Queue, int from);
  void give_back(cuda::Queue, int from);

  /// From now on no queue of this rank waits for another one, because a rank is lost.
  void abandon();

 private:
  struct Card;
  Mailboxes(int rank, int size);
  Card make_card();
  void open(std::span<const Card> cards);
  std::size_t flag(int from, int to, int box) const;
  std::size_t box(int from, int to, int number) const;
  std::byte* state(std::size_t at) const { return flags_->device() + at; }
  void close();

  int rank_, size_;
  std::size_t piece_;
  cuda::Queue sender_ = nullptr;
  cuda::Event order_ = nullptr;
  std::array<cuda::Event, boxes> marks_{};
  std::optional<cuda::SharedMemory> own_;
  std::unique_ptr<HostMemory> made_, host_;  // the first rank makes the flags
  std::optional<cuda::PinnedMemory> flags_;
  std::vector<std::optional<cuda::PeerMemory>> peers_;
  std::vector<int> puts_, takes_, given_back_;  // by rank, modulo boxes
  std::jthread releasing_;
};

}  // namespace octet::comm

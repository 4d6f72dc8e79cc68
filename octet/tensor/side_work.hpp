#pragma once

#include <functional>
#include <map>
#include <memory>

#include "octet/tensor/stream_event.hpp"

namespace octet {

/// Work beside that of a stream. Each piece begins after all work that the stream has then, and after the pieces before it. It ends before
/// work that is put into the stream after join(). In between the stream does not read results of the piece, and does not write or free its
/// inputs. A piece allocates nothing but scratch of its queue.
///
/// This class itself runs each piece in its stream, at once: nothing is beside.
class SideWork {
 public:
  using Work = std::function<void(Stream& queue)>;
  /// A piece that has begun. Its end; null: it was at once.
  using Piece = std::shared_ptr<const StreamEvent>;

  SideWork() = default;
  virtual ~SideWork() = default;
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  virtual Piece begin(Stream& stream, const Work& work) {
    work(stream);
    return {};
  }
  /// A piece whose results the stream needs next: it is the stream's own work, unless there is other work to put beside it.
  virtual void run(Stream& stream, const Work& work) { work(stream); }
  /// Between a piece's begin and its join: here other work may come before the stream's next.
  virtual void pause() {}
  /// Of this piece and those before it.
  virtual void join(Stream&, const Piece&) {}
  /// Of all pieces.
  virtual void join(Stream&) {}
};

/// Of pieces in one side queue, which outlives this, of one or several streams of that device. A stream joins its own pieces.
class QueuedWork final : public SideWork {
 public:
  explicit QueuedWork(Stream& side) : side_(side) {}
  Piece begin(Stream&, const Work&) override;
  void join(Stream&, const Piece&) override;
  void join(Stream&) override;

 private:
  Stream& side_;
  std::map<const Stream*, Piece> last_;  // of each stream until it is joined: a recorded graph cannot wait for work outside of it
};

}  // namespace octet

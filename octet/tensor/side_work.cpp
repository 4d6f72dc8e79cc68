#include "octet/tensor/side_work.hpp"

#include <utility>

namespace octet {

SideWork::Piece QueuedWork::begin(Stream& stream, const Work& work) {
  wait_for(side_, stream);
  work(side_);
  auto end = std::make_shared<StreamEvent>();
  end->record(side_);
  return last_ = std::move(end);
}

void QueuedWork::join(Stream& stream, const Piece& piece) {
  check(piece != nullptr, "side work: a piece of another queue is joined");
  piece->wait(stream);
  if (piece == last_) last_.reset();
}

void QueuedWork::join(Stream& stream) {
  if (last_ != nullptr) join(stream, Piece(last_));
}

}  // namespace octet

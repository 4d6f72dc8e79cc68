#include "octet/tensor/side_work.hpp"

#include <utility>

namespace octet {

SideWork::Piece QueuedWork::begin(Stream& stream, const Work& work) {
  wait_for(side_, stream);
  work(side_);
  auto end = std::make_shared<StreamEvent>();
  end->record(side_);
  return last_[&stream] = std::move(end);
}

void QueuedWork::join(Stream& stream, const Piece& piece) {
  check(piece != nullptr, "side work: a piece of another queue is joined");
  piece->wait(stream);
  if (const auto last = last_.find(&stream); last != last_.end() && last->second == piece) last_.erase(last);
}

void QueuedWork::join(Stream& stream) {
  if (const auto last = last_.find(&stream); last != last_.end()) join(stream, Piece(last->second));
}

}  // namespace octet

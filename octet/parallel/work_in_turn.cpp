#include "octet/parallel/work_in_turn.hpp"

namespace octet::parallel {

void WorkInTurn::run(Stream& stream, const Work& work) {
  if (!turns_.running()) return work_.run(stream, work);
  const Piece piece = work_.begin(stream, work);
  pause();
  work_.join(stream, piece);
}

}  // namespace octet::parallel

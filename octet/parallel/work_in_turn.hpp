#pragma once

#include "octet/parallel/turns.hpp"
#include "octet/tensor/side_work.hpp"

namespace octet::parallel {

/// Side work of passes in turn: while a piece of one is under way, the other computes. Pieces of both are in one queue, in the order in
/// which they begin, so that the exchanges of ranks have one order. Where passes are apart, this is the other side work.
///
///   one     attention  sum~~~~~~  norm  gather~~~~~~~  MLP                 forward of a micro-batch
///   other              gradients........  gradients......  gather~~~       backward of another one
class WorkInTurn final : public SideWork {
 public:
  /// Both outlive this.
  WorkInTurn(SideWork& work, Turns& turns) : work_(work), turns_(turns) {}

  Piece begin(Stream& stream, const Work& work) override { return work_.begin(stream, work); }
  void run(Stream&, const Work&) override;
  void pause() override { turns_.pass(Turns::Exchange::rows); }
  void join(Stream& stream, const Piece& piece) override { work_.join(stream, piece); }
  void join(Stream& stream) override { work_.join(stream); }

 private:
  SideWork& work_;
  Turns& turns_;
};

}  // namespace octet::parallel

#include "octet/parallel/turns.hpp"

#include "octet/base/check.hpp"
#include "octet/base/clock.hpp"

namespace octet::parallel {

Turns& apart() {
  static Turns turns;
  return turns;
}

namespace {

std::string_view piece_after(Turns::Exchange e) {
  constexpr std::string_view pieces[] = {"experts", "attention", "computation"};
  return pieces[std::size_t(e)];
}

}  // namespace

void InTurn::run(const Pass& first, const Pass& second, const Piece& piece) {
  check(!running(), "turns: two passes run already");
  Turn one{first, first.first}, two{second, second.first};
  Fiber other([&] {
    second.work();
    end_piece(two);
    two.ended = true;
  });
  struct Running {  // also after an error
    explicit Running(InTurn& t) : turns(t) {}
    ~Running() { turns.other_ = nullptr, turns.in_other_ = false; }
    InTurn& turns;
  };
  const Running running(*this);
  first_ = &one, second_ = &two, piece_ = &piece, other_ = &other, began_ = monotonic_seconds();
  first.work();
  end_piece(one);
  one.ended = true, in_other_ = true;
  began_ = monotonic_seconds();
  if (!two.ended) other.resume();
}

void InTurn::end_piece(const Turn& turn) {
  if (*piece_) (*piece_)(turn.pass.name, turn.piece, began_, monotonic_seconds());
}

void InTurn::pass(Exchange exchange) {
  if (!running()) return;
  Turn &own = in_other_ ? *second_ : *first_, &other = in_other_ ? *first_ : *second_;
  end_piece(own);
  own.piece = piece_after(exchange);
  if (!other.ended) {
    in_other_ = !in_other_;
    began_ = monotonic_seconds();
    in_other_ ? other_->resume() : other_->yield();
    in_other_ = &own == second_;
    own.pass.resumed();
  }
  began_ = monotonic_seconds();
}

}  // namespace octet::parallel

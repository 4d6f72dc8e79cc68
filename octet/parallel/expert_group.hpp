#pragma once

#include <memory>

#include "octet/comm/communicator.hpp"
#include "octet/nn/expert_exchange.hpp"
#include "octet/parallel/expert_rounds.hpp"
#include "octet/parallel/turns.hpp"
#include "octet/parallel/wire.hpp"

namespace octet::parallel {

/// The ranks that divide the experts of each layer, and train on tokens of their own. A layer's exchanges, per micro-batch, of the v rows
/// of D values that leave this rank for others (ops/visits), J = min(K, E / n) choices each:
///
///   forward    8 J v bytes of choices, x to the experts, sums back
///   backward   x again, dy to the experts, 4 J v bytes of the weights' gradients, sums back
///
/// and choices and x once more where backward computes a block again. Rows are as many as tokens have chosen: the host reads their numbers,
/// of which each exchange of choices sends one per rank. Memory is that of the worst choice: all tokens of all ranks come here.
///
/// With a factor F of the rows at equal loads, memory is that of F times these. Ranks then gather tables of their loads, from which each
/// derives the same rounds (parallel/expert_rounds.hpp). Exchanges of several rounds do not wait beside the computation of another pass.
///
/// Sums travel in the type of activations. x and dy do, too, or as E4M3 codes with a power-of-two scale per 128 values.
class ExpertGroup final : public nn::ExpertExchange {
 public:
  /// The communicator and the turns outlive this. While two passes run in turn, the other one computes as soon as rows are on their way.
  ExpertGroup(comm::Communicator& ranks, ExpertWire wire, Turns& turns, double room = 0)
      : ExpertExchange(ranks.rank(), ranks.size()), ranks_(ranks), wire_(wire), turns_(turns), room_(room) {}

  Visit begin(Stream&, const Choices&) override;
  void enter(Stream&, const Choices&, int round, Visit&) override;
  void gather(Stream&, const Tensor& x, const Visit&, ops::Sink& rows) override;
  void combine(Stream&, const Tensor& rows, const Visit&, const Tensor& y, bool add) override;
  Tensor weights_here(Stream&, const Visit&, const Tensor& all) const override;
  void finish(Stream&, const Tensor& here, const Choices&, const Visit&, const Tensor& all) override;

 private:
  struct Parts {
    const Tensor &from, &to;
    std::vector<std::int64_t> sent, received;
  };
  void run(Stream&, const SideWork::Work&) const;
  void exchange(Stream&, std::initializer_list<Parts>, Turns::Exchange, const Leaving&) const;
  Round only_round(Stream&, const Choices&, const Leaving&);
  std::vector<std::int32_t> gather_tables(Stream&, const Choices&, const Tensor& visited, const ExpertRoom&);
  ExpertRoom room_for(const Choices& c) const { return {room_, members(), c.experts, c.chosen.shape[1]}; }
  std::int64_t divide(Stream&, const Choices&, Visit&);
  void receive(Stream&, const Choices&, Visit&);
  void send(Stream&, const Tensor& from, const Tensor& to, const Leaving&) const;
  void send_codes(Stream&, const Tensor& from, const Tensor& to, const Leaving&) const;
  void send_back(Stream&, const Tensor& from, const Tensor& to, const Leaving&) const;
  Tensor arriving(Stream&, const Leaving&, std::int64_t columns, DType, Region = Lifetime::scratch) const;

  comm::Communicator& ranks_;
  ExpertWire wire_;
  Turns& turns_;
  double room_;  // of the rows at equal loads; 0: of the worst choice
};

/// Whether rows travel as codes to a layer that reads an operand of this form: always, never, or where the layer reads codes of rows with
/// such scales, so that the error is that of its own quantizer.
bool travels_as_codes(ExpertWire, const ops::QuantizeSpec&, std::int64_t columns);

/// These ranks as an exchange; one rank as one that has all experts.
std::unique_ptr<nn::ExpertExchange> experts_of(comm::Communicator& ranks, ExpertWire, Turns& = apart(), double room = 0);

}  // namespace octet::parallel

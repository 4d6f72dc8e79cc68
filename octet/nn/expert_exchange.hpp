#pragma once

#include <algorithm>
#include <vector>

#include "octet/nn/index_range.hpp"
#include "octet/ops/expert_map/expert_map.hpp"
#include "octet/ops/quantize/sink.hpp"
#include "octet/tensor/cut.hpp"
#include "octet/tensor/side_work.hpp"

namespace octet::nn {

/// How the rows of tokens reach the experts that they chose, and how their sums come back. Each of n members has E / n neighbouring
/// experts, member m those from m E / n on, and tokens of its own:
///
///   forward    visit = begin(chosen, w)   x [T, D] -> gather -> rows of the experts here -> ... -> combine -> y [T, D]
///   backward   dy and x as x; dx as y; the gradient of w by finish()
///
/// A token visits a member once, whichever of its experts it chose: its row goes there once, and one sum comes back. All members make the
/// same calls in the same order.
///
/// Where memory is bounded, tokens that are too many for it come in rounds: neighbouring ones of each member, one round after the other in
/// the same memory. Every call but begin() is then that of the round that was entered last. Sources: Lepikhin et al. 2020, "GShard",
/// section 3.2; DeepSeek-AI 2024, section 3.2.2.
class ExpertExchange {
 public:
  /// Tokens that are exchanged at once.
  struct Round {
    IndexRange tokens;                  // of the own ones
    std::vector<std::int64_t> out, in;  // rows that go to, and come from, each member
    std::int64_t choices = 0;           // that come with them
  };
  /// The way of the rows that members send.
  struct Leaving {
    Tensor visited;            // i32 [T, C]: see ops::visited_members()
    ops::ExpertMap rows;       // of the tokens of `now`, by member
    Round now;                 // the round that was entered last
    bool alone = true;         // it is the only one
    std::int64_t room = 0;     // tokens that may come at once
    Tensor row, source;        // memory of rows.row and rows.source for all own tokens
    Tensor visiting, weights;  // memory of the map's rows and of the weights for `room` tokens
  };
  /// The choices whose experts are here: of n visiting tokens, J each.
  struct Visit {
    ops::ExpertMap map;    // their rows
    Tensor weights;        // f32 [n, J]
    Leaving leaving = {};  // empty of one member
    std::vector<Round> rounds = {};
    /// The first rounds whose rows stay as they are until backward: the only one, or none of several. Backward computes the others again.
    /// A plan does not know how many there are, so it has one of each kind.
    int kept = 1;

    int number() const { return std::max(1, int(rounds.size())); }
  };
  /// The own tokens' choices.
  struct Choices {
    Tensor chosen, weights;  // i32 and f32 [T, K]
    std::int64_t experts = 0, tile = 0;
    Region of_map, keep;  // the map's memory, and that of all else
  };

  virtual ~ExpertExchange() = default;
  int members() const { return members_; }
  /// The own ones of all experts, which are a multiple of the members.
  IndexRange own(std::int64_t experts) const { return {experts / members_ * member_, experts / members_}; }

  /// Has entered the first round.
  virtual Visit begin(Stream&, const Choices&) = 0;
  /// Makes the visit that of a round, which is in [0, visit.number()). Its map has as many rows as that of any other.
  virtual void enter(Stream&, const Choices&, int round, Visit& visit) = 0;
  /// rows: a sink of [visit.map.rows(), D], whose operands are those of ops::gather_rows() of x of all visiting tokens; plain values may be
  /// left out. x: [T, D].
  virtual void gather(Stream&, const Tensor& x, const Visit&, ops::Sink& rows) = 0;
  /// y [T, D] (+)= the sum over a token's choices of its rows, as ops::combine_rows(). Sums of several members' parts are rounded to y's
  /// type on their way.
  virtual void combine(Stream&, const Tensor& rows, const Visit&, const Tensor& y, bool add = false) = 0;
  /// Memory for the gradient of visit.weights, from which finish() gives each token its own: `all`, f32 [T, K].
  virtual Tensor weights_here(Stream&, const Visit&, const Tensor& all) const = 0;
  virtual void finish(Stream&, const Tensor& here, const Choices&, const Visit&, const Tensor& all) = 0;

  /// Where exchanges run while two passes take turns. It outlives this, or its use here.
  void set_beside(SideWork& s) { beside_ = &s; }
  void run_in_stream() { beside_ = &in_stream_; }

 protected:
  ExpertExchange(int member, int members) : member_(member), members_(members) {}
  SideWork& beside() const { return *beside_; }

 private:
  int member_, members_;
  SideWork in_stream_;
  SideWork* beside_ = &in_stream_;
};

/// One member, which has every expert: nothing is exchanged.
class AllExperts final : public ExpertExchange {
 public:
  AllExperts() : ExpertExchange(0, 1) {}
  Visit begin(Stream&, const Choices&) override;
  void enter(Stream&, const Choices&, int, Visit&) override {}
  void gather(Stream&, const Tensor& x, const Visit&, ops::Sink& rows) override;
  void combine(Stream&, const Tensor& rows, const Visit&, const Tensor& y, bool add) override;
  Tensor weights_here(Stream&, const Visit&, const Tensor& all) const override { return all; }
  void finish(Stream&, const Tensor&, const Choices&, const Visit&, const Tensor&) override {}
};
ExpertExchange& all_experts();

/// The cut of a member's part of a stack of matrices [experts * out, in].
Cut own_experts(const ExpertExchange&, std::int64_t experts, std::int64_t out, std::int64_t in);

}  // namespace octet::nn

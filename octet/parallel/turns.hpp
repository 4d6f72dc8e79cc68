#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "octet/base/fiber.hpp"

namespace octet::parallel {

/// Two passes of one model that compute in turn, such as the forward of a micro-batch and the backward of another: while an exchange of one
/// is under way, the other computes. Source: DeepSeek-AI 2024, section 3.2.1.
///
///   one     attention  dispatch~~~~~~~~~  experts   combine~~~~~~~~~
///   other                       attention  dispatch~~~~~~  experts    ...
///
/// This class does nothing: passes are apart, and an exchange is done before its pass computes on.
class Turns {
 public:
  /// A pass, with a stream of its own.
  struct Pass {
    std::string name;
    std::function<void()> work;
    std::function<void()> resumed = [] {};   // before it computes on
    std::string_view first = "computation";  // its first piece
  };
  /// A part of a pass between two turns. Rows of experts: "attention" from a combine to the next dispatch, else "experts". Rows of layers:
  /// "computation". Seconds of the monotonic clock.
  using Piece = std::function<void(const std::string& pass, std::string_view piece, double begin, double end)>;

  Turns() = default;
  virtual ~Turns() = default;
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Whether passes are to be given in pairs.
  virtual bool pairs() const { return false; }
  /// Whether all exchanges at which they take turns are of experts.
  virtual bool of_experts() const { return false; }
  /// Whether two passes run now, so that exchanges are begun and finished apart.
  virtual bool running() const { return false; }
  /// Both passes, to their ends. The first one begins.
  virtual void run(const Pass& first, const Pass& second, const Piece&) { first.work(), second.work(); }
  /// The pass that computes has begun an exchange, and would wait for it. The other one computes until it has begun one, too.
  enum class Exchange : std::uint8_t { dispatch, combine, rows };  // to experts, back from them, of a layer
  virtual void pass(Exchange) {}
};
/// One that does nothing.
Turns& apart();

/// Passes in turn. Where ranks have equal passes, all of them take the same turns.
class InTurn final : public Turns {
 public:
  explicit InTurn(bool of_experts) : of_experts_(of_experts) {}
  bool pairs() const override { return true; }
  bool of_experts() const override { return of_experts_; }
  bool running() const override { return other_ != nullptr; }
  void run(const Pass& first, const Pass& second, const Piece&) override;
  void pass(Exchange) override;

 private:
  struct Turn {
    const Pass& pass;
    std::string_view piece;  // that it computes
    bool ended = false;
  };
  void end_piece(const Turn&);

  Turn *first_ = nullptr, *second_ = nullptr;
  const Piece* piece_ = nullptr;
  Fiber* other_ = nullptr;  // of the second pass, while both run
  bool of_experts_, in_other_ = false;
  double began_ = 0;  // of the piece
};

}  // namespace octet::parallel

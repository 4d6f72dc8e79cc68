#include "octet/parallel/turns.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace octet::parallel {
namespace {

using enum Turns::Exchange;
using Words = std::vector<std::string>;

TEST(Turns, APassComputesWhileAnExchangeOfTheOtherIsUnderWay) {
  InTurn turns(true);
  Words order, pieces;
  const auto say = [&](const char* word) { order.emplace_back(word); };
  turns.run({.name = "a",
             .work =
                 [&] {
                   say("a1"), turns.pass(dispatch);
                   say("a2"), turns.pass(combine);
                   say("a3");
                 },
             .resumed = [&] { say("a again"); },
             .first = "attention"},
            {.name = "b",
             .work =
                 [&] {
                   say("b1"), turns.pass(dispatch);
                   say("b2"), turns.pass(dispatch);
                   say("b3"), turns.pass(combine);
                   say("b4");
                 },
             .resumed = [&] { say("b again"); },
             .first = "experts"},
            [&](const std::string& pass, std::string_view piece, double begin, double end) {
              EXPECT_LE(begin, end);
              pieces.push_back(pass + " " + std::string(piece));
            });
  EXPECT_EQ(order, (Words{"a1", "b1", "a again", "a2", "b again", "b2", "a again", "a3", "b again", "b3", "b4"}));
  EXPECT_EQ(pieces, (Words{"a attention", "b experts", "a experts", "b experts", "a attention", "b experts", "b attention"}));
  EXPECT_FALSE(turns.running());
}

TEST(Turns, AnErrorOfEitherPassEndsBoth) {
  InTurn turns(true);
  for (const bool of_first : {true, false}) {
    const auto pass = [&](bool fails) {
      return [&turns, fails] {
        turns.pass(dispatch);
        if (fails) throw std::runtime_error("torn");
        turns.pass(combine), turns.pass(dispatch);
      };
    };
    EXPECT_THROW(turns.run({.name = "a", .work = pass(of_first)}, {.name = "b", .work = pass(!of_first)}, {}), std::runtime_error);
    EXPECT_FALSE(turns.running());
  }
}

TEST(Turns, ApartDoNothing) {
  Words order;
  apart().run({.name = "a", .work = [&] { order.emplace_back("a"), apart().pass(dispatch), order.emplace_back("a"); }},
              {.name = "b", .work = [&] { order.emplace_back("b"); }}, {});
  EXPECT_EQ(order, (Words{"a", "a", "b"}));
  EXPECT_FALSE(apart().pairs());
}

}  // namespace
}  // namespace octet::parallel

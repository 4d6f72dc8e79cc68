#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/testing/octet.hpp"

// The rules of FP8 with ZeRO that examples/slurm/experimental-fp8-zero.sh prints.

namespace octet {
namespace {
using testing::Ended, testing::Scratch, testing::has;

// Of a model of one block on 4 ranks.
Ended rules_of(const Scratch& scratch, const char* recipes) {
  scratch.write("tiny.toml", testing::tiny_config("steps = 2\nbatch = 8\naccumulate = 2\n"));
  ::setenv("OCTET", OCTET_PROGRAM, 1), ::setenv("OCTET_RULES", "only", 1), ::setenv("OCTET_RECIPES", recipes, 1);
  ::setenv("OCTET_ARGUMENTS", "--set device=cpu", 1), ::setenv("SLURM_NTASKS", "4", 1);
  Ended ended =
      testing::run_child({"/bin/bash", OCTET_SOURCE_DIR "/examples/slurm/experimental-fp8-zero.sh", "tiny.toml"}, scratch.folder());
  for (const char* name : {"OCTET", "OCTET_RULES", "OCTET_RECIPES", "OCTET_ARGUMENTS", "SLURM_NTASKS"}) ::unsetenv(name);
  return ended;
}

// The lines below the heading of a case.
std::string said_of(const std::string& text, const std::string& heading) {
  const std::size_t at = text.find("\n" + heading + "\n");
  if (at == text.npos) return "";
  const std::size_t from = at + heading.size() + 2, to = text.find("\n\n", from);
  return text.substr(from, to - from);
}

TEST(Fp8ZeroExample, PrintsRefusalsAndFallbacksFromTheRulesOfTheProgram) {
  const Scratch scratch;
  const Ended ended = rules_of(scratch, "current rowwise");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string& out = ended.out;
  const auto says = [&](const std::string& heading, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_TRUE(has(said_of(out, heading), part)) << heading << " lacks " << part << "\n" << out;
  };
  says("ZeRO-1, current", {"weights sent between ranks: e4m3", "the codes that GEMMs read"});
  says("ZeRO-1, rowwise", {"weights sent between ranks: bf16", "the codes of the two orientations differ"});
  says("ZeRO-3, current", {"weight codes: on demand"});
  says("ZeRO-1, current, train.average=0.2", {"weights sent between ranks: bf16", "train.average"});
  says("ZeRO-3, current, train.average=0.2", {"weights sent between ranks: bf16", "train.average", "weight codes: on demand"});
  says("ZeRO-2, current, optim.gradients=e4m3_tensor", {"refused: ranks.zero = 2", "one scale for a whole tensor"});
  says("ZeRO-2, current, ranks.pipeline=2", {"refused: "});
  EXPECT_FALSE(has(out, "[octet/")) << "a broken contract is no rule\n" << out;
}

}  // namespace
}  // namespace octet

#include <gtest/gtest.h>

#include <cstdlib>

#include "octet/base/error.hpp"
#include "octet/models/registry.hpp"
#include "tests/testing/octet.hpp"

// Layouts that `octet plan` chooses for every size of a model. OCTET_EVERY_PLAN=1 makes a campaign of all numbers of GPUs, levels and
// recipes per size, in a few minutes; otherwise each size has one of them.

namespace octet {
namespace {
using testing::Ended, testing::has, testing::Scratch;

struct Asked {
  int gpus;
  const char *level, *recipe;
};

std::vector<Asked> all_asked() {
  std::vector<Asked> out;
  for (const int gpus : {1, 2, 8, 64, 512})
    for (const char* level : {"O0", "O1", "O2", "O3"})
      for (const char* recipe : {"", " --fp8 current"}) out.push_back({gpus, level, recipe});
  return out;
}

std::vector<std::string> sizes() {
  std::vector<std::string> out;
  for (const models::ModelFamily& family : models::model_families())
    if (family.sizes != nullptr)
      for (const models::ModelSize& size : family.sizes()) out.emplace_back(size.name);
  return out;
}

// A batch that any number of these GPUs can divide as data ranks.
std::string line_of(const std::string& size, const Asked& a) {
  return "plan --set model.size=" + size + " --set train.batch=512 --gpus " + std::to_string(a.gpus) + " --level " + a.level + a.recipe;
}

// Of the layouts that are trained, the best is written as a run, and its dry run is that of an engine on these ranks.
void expect_plans(const Scratch& scratch, const std::string& size, const Asked& a) {
  const auto ended_well = [&](const Ended& e, const std::string& line) {
    EXPECT_TRUE(e.code == 0 || e.code == 69) << "octet " << line << "\n" << e.code << ": " << e.err;
    return e.code == 0;
  };
  const std::string line = line_of(size, a), runnable = line + " --runnable --write job";
  for (const std::string& asked : {line, runnable}) {
    const Ended e = testing::run_octet(asked, scratch.folder());
    if (!ended_well(e, asked)) EXPECT_TRUE(has(e.err, "no layout fits")) << "octet " << asked << "\n" << e.err;
    else if (asked == runnable)
      ended_well(testing::run_octet("plan job/plan.toml", scratch.folder()), asked + "; octet plan job/plan.toml");
  }
}

TEST(PlansOfEverySize, AreLayoutsThatAnEngineAcceptsOrSayThatNoneFits) {
  const Scratch scratch;
  const std::vector<Asked> all = all_asked();
  const bool campaign = std::getenv("OCTET_EVERY_PLAN") != nullptr;
  std::size_t next = 0;
  for (const std::string& size : sizes())
    for (std::size_t i = 0; i < (campaign ? all.size() : 1); ++i) expect_plans(scratch, size, all[(7 * next++) % all.size()]);
  EXPECT_GT(next, 20u);
}

}  // namespace
}  // namespace octet

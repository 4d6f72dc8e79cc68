#include "octet/config/attributes.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/config/sample.test.hpp"

namespace octet::config {
namespace {

struct Falling {
  std::string kind = "cosine";
  double ratio = 0.1, decay = 0.2;
  void fields(FieldVisitor& v) {
    v.choice("kind", kind, "how it falls", {"cosine", "constant", "wsd"});
    v.field("ratio", ratio, "where it ends");
    v.field("decay", decay, "share of the end", {}, OnResume::may_change);
    v.idle("ratio", kind == "constant", "it does not fall");
    v.idle("decay", kind != "wsd", "only wsd reads it");
  }
};

struct Job {
  std::int64_t steps = 0, every = 50, seed = 1;
  double held_out = 0.1;
  Falling rate, other;
  void fields(FieldVisitor& v) {
    v.idle("every", held_out == 0, "nothing is held out");  // before its field
    v.field("steps", steps, "how long", {.at_least = 0}, OnResume::may_change);
    v.field("every", every, "between evaluations");
    v.field("seed", seed, "of everything");
    v.field("held_out", held_out, "share");
    v.section("rate", rate, "what falls", OnResume::may_change);
    v.section("other", other, "what else falls");
    v.idle("other.ratio", steps == 0, "there are no steps");
    v.idle("other.ratio", true, "a second reason");
  }
};

TEST(Attributes, AResumedRunMayChangeTheFieldsAndSectionsThatSaySo) {
  EXPECT_EQ(keys_that_may_change(Job{}), (std::vector<std::string>{"steps", "rate.kind", "rate.ratio", "rate.decay", "other.decay"}));
}

TEST(Attributes, AFieldIsIdleWhileItsConditionHoldsWithTheFirstReason) {
  Job job;
  const auto idle = [&] {
    std::string out;
    for (const IdleKey& k : idle_keys(job)) out += k.key + ": " + k.why + "\n";
    return out;
  };
  EXPECT_EQ(idle(), "rate.decay: only wsd reads it\nother.ratio: there are no steps\nother.decay: only wsd reads it\n");
  job.steps = 3, job.held_out = 0, job.rate.kind = "wsd", job.other.kind = "constant";
  EXPECT_EQ(idle(), "every: nothing is held out\nother.ratio: it does not fall\nother.decay: only wsd reads it\n")
      << "a section before its owner";
}

TEST(Attributes, OptionsWithoutEffectAreThoseOfAnotherValueThanTheDefaultWithTheirPlace) {
  Job job;
  EXPECT_TRUE(idle_options(job, Job{}, {}).empty());
  Origins origins = read_toml("[rate]\nratio = 0.5\ndecay = 0.5\n", "a.toml", job);
  EXPECT_EQ(idle_options(job, Job{}, origins), std::vector<std::string>{"a.toml:3:1: `rate.decay` has no effect: only wsd reads it"});
  EXPECT_EQ(idle_options(job, Job{}, {}), std::vector<std::string>{"`rate.decay` has no effect: only wsd reads it"});
  Job defaults;
  defaults.rate.decay = 0.5;
  EXPECT_TRUE(idle_options(job, defaults, origins).empty()) << "another program's defaults";
}

struct Misnamed {
  void fields(FieldVisitor& v) { v.idle("nothing", true, "there is none"); }
};
struct Unreasoned {
  bool a = false;
  void fields(FieldVisitor& v) { v.field("a", a, ""), v.idle("a", true, ""); }
};

TEST(Attributes, AReasonForNoFieldAndAFieldWithoutReasonBreakTheContract) {
  EXPECT_THROW(idle_keys(Misnamed{}), ContractError);
  EXPECT_THROW(idle_keys(Unreasoned{}), ContractError);
}

}  // namespace
}  // namespace octet::config

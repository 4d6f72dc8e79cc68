#include "octet/config/write.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>

#include "octet/config/read.hpp"
#include "octet/config/sample.test.hpp"

namespace octet::config {
namespace {

constexpr const char* default_toml = R"(steps = 100
offset = 0
factor = 1.0
fused = false
name = "run"
format = "hybrid"
keep = ["first", "last"]

[optim]
learning_rate = 0.0003
beta2 = 0.95

[optim.schedule]
kind = "cosine"
warmup = 10
)";

std::uint64_t bits(double x) {
  std::uint64_t out;
  std::memcpy(&out, &x, sizeof out);
  return out;
}

Sample again(const Sample& sample, Comments comments = Comments::none) {
  Sample copy;
  copy.keep = {"other"};
  read_toml(to_toml(sample, comments), "again", copy);
  return copy;
}

TEST(WriteToml, OwnKeysComeBeforeThoseOfSections) { EXPECT_EQ(to_toml(Sample{}), default_toml); }

TEST(WriteToml, CommentsCarryHelpAndType) {
  const std::string text = to_toml(Sample{}, Comments::help);
  EXPECT_NE(text.find("# optimizer steps (integer in [1, 1000])\nsteps = 100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n# the optimizer\n[optim]\n# peak learning rate (number > 0)\nlearning_rate = 0.0003\n"), std::string::npos)
      << text;
  EXPECT_EQ(to_toml(again(Sample{}, Comments::help)), default_toml);
}

TEST(WriteToml, EveryDoubleReadsBackWithTheSameBits) {
  const double special[] = {0.0,
                            -0.0,
                            1.0,
                            -1.0,
                            0.1,
                            1e-4,
                            9.999e-5,
                            1e15,
                            1e16,
                            123456789012345678.0,
                            1e23,
                            3e-8,
                            DBL_MAX,
                            DBL_MIN,
                            5e-324,
                            -DBL_MAX,
                            1.0 / 3,
                            2.2250738585072011e-308,
                            9007199254740993.0};
  std::vector<double> values(std::begin(special), std::end(special));
  std::mt19937_64 random(1);
  while (values.size() < 300) {
    const std::uint64_t word = random();
    double x;
    std::memcpy(&x, &word, sizeof x);
    if (x - x == 0) values.push_back(x);
  }
  for (const double x : values) {
    Sample sample;
    sample.factor = x;
    EXPECT_EQ(bits(again(sample).factor), bits(x)) << to_toml(sample);
  }
}

TEST(WriteToml, EveryTextReadsBack) {
  std::string all;
  for (int c = 1; c < 128; ++c) all += char(c);
  for (const auto& text : {all, std::string(), std::string("\"\\'''\"\"\""), std::string("ü€😀"), std::string("a\nb\r\n# c = 1")}) {
    Sample sample;
    sample.name = text;
    sample.keep = {text, "", text + text};
    EXPECT_EQ(again(sample).name, text);
    EXPECT_EQ(again(sample, Comments::help).keep, sample.keep);
  }
}

TEST(WriteToml, EveryIntegerAndChoiceReadsBack) {
  for (const std::int64_t x :
       {std::int64_t(0), std::int64_t(-1), std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    Sample sample;
    sample.offset = x;
    EXPECT_EQ(again(sample).offset, x);
  }
  for (const Decay kind : {Decay::none, Decay::cosine, Decay::linear}) {
    Sample sample;
    sample.optim.schedule.kind = kind;
    EXPECT_EQ(again(sample).optim.schedule.kind, kind);
  }
}

TEST(WriteJson, IsOneObjectWithNestedSections) {
  Sample sample;
  sample.name = "a\"\\\n\x01";
  sample.optim.learning_rate = 1e-8;
  EXPECT_EQ(to_json_text(sample), R"({
  "steps": 100,
  "offset": 0,
  "factor": 1.0,
  "fused": false,
  "name": "a\"\\\n\u0001",
  "format": "hybrid",
  "keep": ["first", "last"],
  "optim": {
    "learning_rate": 1e-8,
    "beta2": 0.95,
    "schedule": {
      "kind": "cosine",
      "warmup": 10
    }
  }
})");
}

TEST(Help, HasAHeadingPerSectionAndTheKeysThatBeginAsAsked) {
  EXPECT_EQ(help_text(Sample{}, "optim"), R"([optim]  the optimizer
optim.learning_rate = 0.0003  (number > 0)
    peak learning rate
optim.beta2 = 0.95  (number in [0, 1))
    decay of the second moment

[optim.schedule]  how the learning rate moves
optim.schedule.kind = "cosine"  (none | cosine | linear)
    shape of the decay
optim.schedule.warmup = 10  (integer >= 0)
    steps of warm-up
)");
  EXPECT_EQ(help_text(Sample{}, "optim.beta"), R"([optim]  the optimizer
optim.beta2 = 0.95  (number in [0, 1))
    decay of the second moment
)");
  EXPECT_TRUE(help_text(Sample{}).starts_with("steps = 100  (integer in [1, 1000])\n    optimizer steps\n"));
  EXPECT_EQ(help_text(Sample{}, "nothing"), "");
}

TEST(Differences, NameEachKeyWithBothValues) {
  Sample a, b;
  EXPECT_TRUE(differences(a, b).empty());
  b.optim.schedule.kind = Decay::none;
  b.factor = -0.0, a.factor = 0.0;
  b.keep.clear();
  const auto found = differences(a, b);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].key + ": " + found[0].a + " -> " + found[0].b, "factor: 0.0 -> -0.0");
  EXPECT_EQ(found[1].key + ": " + found[1].a + " -> " + found[1].b, "keep: [\"first\", \"last\"] -> []");
  EXPECT_EQ(found[2].key + ": " + found[2].a + " -> " + found[2].b, "optim.schedule.kind: \"cosine\" -> \"none\"");
}

TEST(Differences, BetweenTwoKindsOfConfigurationAreTheKeysOnlyOneHas) {
  const auto found = differences(SampleSchedule{}, SampleOptim{});
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[0].key + found[0].a + found[0].b, "kind\"cosine\"");
  EXPECT_EQ(found[2].key + found[2].a + found[2].b, "learning_rate0.0003");
}

struct Wrong {
  std::int64_t a = 0, b = 0;
  const char *first = "a", *second = "b";
  double at_least = 0;
  void fields(FieldVisitor& v) {
    v.field(first, a, "", {.at_least = at_least});
    v.field(second, b, "");
  }
};

std::string broken(Wrong wrong) {
  try {
    to_toml(wrong);
  } catch (const ContractError& e) {
    const std::string what = e.what();
    return what.substr(0, what.find("  ["));
  }
  return "no ContractError";
}

TEST(FieldList, AListThatBreaksItsOwnRulesIsABrokenContract) {
  EXPECT_EQ(broken({.second = "a"}), "config key `a` is in the list twice");
  EXPECT_EQ(broken({.first = "Upper"}), "config key `Upper`: a name must be of a-z, 0-9 and _");
  EXPECT_EQ(broken({.first = ""}), "config key ``: a name must be of a-z, 0-9 and _");
  EXPECT_EQ(broken({.at_least = 1}), "config key `a` must be an integer >= 1, but holds 0");
  Sample sample;
  sample.factor = NAN;
  EXPECT_THROW(to_toml(sample), ContractError);
  sample = {};
  sample.optim.schedule.kind = Decay(3);
  EXPECT_THROW(to_json_text(sample), ContractError);
}

}  // namespace
}  // namespace octet::config

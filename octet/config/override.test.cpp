#include <gtest/gtest.h>

#include "octet/base/text.hpp"
#include "octet/config/read.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"

namespace octet::config {
namespace {

Sample with(std::string_view assignment) {
  Sample sample;
  Origins origins;
  apply_override(sample, assignment, origins);
  EXPECT_EQ(origins.size(), 1u);
  return sample;
}

std::string refused(std::string_view assignment) {
  Sample sample;
  Origins origins;
  const std::string before = to_toml(sample);
  const std::string sentence = refusal_of([&] { apply_override(sample, assignment, origins); });
  EXPECT_EQ(to_toml(sample), before) << "a refused override changed the configuration: " << assignment;
  EXPECT_TRUE(origins.empty());
  return sentence;
}

TEST(Override, SetsEveryKindOfField) {
  EXPECT_EQ(with("steps=5").steps, 5);
  EXPECT_EQ(with(" steps = 1_000 ").steps, 1000);
  EXPECT_EQ(with("optim.learning_rate=1e-3").optim.learning_rate, 1e-3);
  EXPECT_EQ(with("optim.learning_rate=1").optim.learning_rate, 1.0);
  EXPECT_TRUE(with("fused=true").fused);
  EXPECT_EQ(with("optim.schedule.kind=linear").optim.schedule.kind, Decay::linear);
  EXPECT_EQ(with("format=\"e4m3\"").format, "e4m3");
}

TEST(Override, TextMayGoWithoutQuotes) {
  EXPECT_EQ(with("name=my run #3").name, "my run #3");
  EXPECT_EQ(with("name=a=b").name, "a=b");
  EXPECT_EQ(with("name=").name, "");
  EXPECT_EQ(with("name=5").name, "5");
  EXPECT_EQ(with("name='single'").name, "single");
  EXPECT_EQ(with("name=\"tab\\t\"").name, "tab\t");
}

TEST(Override, AListIsWrittenWithCommasOrAsToml) {
  using List = std::vector<std::string>;
  EXPECT_EQ(with("keep=a,b,c").keep, (List{"a", "b", "c"}));
  EXPECT_EQ(with("keep=a").keep, (List{"a"}));
  EXPECT_EQ(with("keep=").keep, List{});
  EXPECT_EQ(with("keep=[]").keep, List{});
  EXPECT_EQ(with("keep=[\"a,b\", 'c']").keep, (List{"a,b", "c"}));
  EXPECT_EQ(refused("keep=a,,b"), "--set keep=a,,b: `keep` must be a list of text, got a list with an empty element");
  EXPECT_EQ(refused("keep=a,"), "--set keep=a,: `keep` must be a list of text, got a list with an empty element");
  EXPECT_EQ(refused("keep=[a, b]"),
            "--set keep=[a, b]: `keep` must be a list of text, got a list that is not TOML (write a,b or [\"a\", \"b\"])");
  EXPECT_EQ(refused("keep=[1]"), "--set keep=[1]: `keep` must be a list of text, got a list with 1 in it");
}

TEST(Override, AnUnknownKeyIsRefusedWithTheNearestName) {
  EXPECT_EQ(refused("optim.lr=1"), "--set optim.lr=1: unknown key `optim.lr`; did you mean `optim.learning_rate`?");
  EXPECT_EQ(refused("setps=1"), "--set setps=1: unknown key `setps`; did you mean `steps`?");
}

TEST(Override, AnIllFormedKeyIsRefused) {
  EXPECT_EQ(refused("steps"), "--set steps: there is no '='; write section.key=value");
  EXPECT_EQ(refused(""), "--set : there is no '='; write section.key=value");
  EXPECT_EQ(refused("=5"), "--set =5: there is no key before '='; write section.key=value");
  for (const auto* text : {"optim..beta2=1", ".steps=1", "steps.=1", ".=1"}) {
    EXPECT_EQ(refused(text), std::string("--set ") + text + ": the key has an empty part between its dots; write section.key=value");
  }
}

TEST(Override, AWrongTypeOrRangeIsRefusedAsInAFile) {
  EXPECT_EQ(refused("steps=many"), "--set steps=many: `steps` must be an integer in [1, 1000], got \"many\"");
  EXPECT_EQ(refused("steps="), "--set steps=: `steps` must be an integer in [1, 1000], got \"\"");
  EXPECT_EQ(refused("steps=1.5"), "--set steps=1.5: `steps` must be an integer in [1, 1000], got 1.5");
  EXPECT_EQ(refused("steps=0"), "--set steps=0: `steps` must be an integer in [1, 1000], got 0");
  EXPECT_EQ(refused("factor=nan"), "--set factor=nan: `factor` must be a number, got nan, which is not finite");
  EXPECT_EQ(refused("fused=yes"), "--set fused=yes: `fused` must be true or false, got \"yes\"");
  EXPECT_EQ(refused("format=hybird"), "--set format=hybird: `format` must be one of hybrid, e4m3, got \"hybird\"; did you mean hybrid?");
  EXPECT_EQ(refused("name=\"open"), "--set name=\"open: `name` must be text, got a quoted text that is not TOML");
  EXPECT_EQ(refused("optim=3"), "--set optim=3: `optim` is a section, got \"3\"; set the keys in it, such as `optim.learning_rate`");
  EXPECT_TRUE(refused("optim={beta2=0.5}").starts_with("--set optim={beta2=0.5}: `optim` is a section"));
}

TEST(Override, OneOverrideCannotSetASecondKey) {
  EXPECT_EQ(refused("steps=5\noffset=3"), "--set steps=5\\x0aoffset=3: `steps` must be an integer in [1, 1000], got \"5\\noffset=3\"");
  EXPECT_TRUE(refused("steps=5\n[optim]").starts_with("--set steps=5\\x0a[optim]: `steps` must be"));
}

TEST(Override, HostileTextIsRefusedAndShownShort) {
  EXPECT_EQ(refused("name=\xff"), "--set name=\\xff: not UTF-8");
  EXPECT_LT(refused("steps=" + std::string(100'000, '[')).size(), 300u);
  EXPECT_LT(refused(format("{}=1", std::string(100'000, 'k'))).size(), 400u);
  EXPECT_EQ(refused(std::string(2'000'000, 'k')).substr(66), "...: longer than a whole configuration may be");
}

TEST(KeyText, SetsAKeyAndNamesItsPlace) {
  Sample sample;
  Origins origins;
  set_key_text(sample, "optim.learning_rate", "1e-3", "config", origins);
  set_key_text(sample, "name", "\"a = b\"", "config", origins);
  EXPECT_EQ(sample.optim.learning_rate, 1e-3);
  EXPECT_EQ(sample.name, "a = b");
  EXPECT_EQ(cite(origins, "name"), "config: `name`");
  const auto refusal = [&](const char* key, const char* text) {
    return refusal_of([&] { set_key_text(sample, key, text, "config", origins); });
  };
  EXPECT_EQ(refusal("stepss", "1"), "config: unknown key `stepss`; did you mean `steps`?");
  EXPECT_EQ(refusal("steps", "\"x\""), "config: `steps` must be an integer in [1, 1000], got \"x\"");
  EXPECT_EQ(refusal("", "1"), "config: the key has an empty part between its dots; write section.key=value");
}

}  // namespace
}  // namespace octet::config

#include "octet/config/read.hpp"

#include <gtest/gtest.h>

#include "octet/base/file.hpp"
#include "octet/config/nearest_key.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"

namespace octet::config {
namespace {

std::string refused(std::string_view text) {
  Sample sample;
  const std::string before = to_toml(sample);
  const std::string sentence = refusal_of([&] { read_toml(text, "run.toml", sample); });
  EXPECT_EQ(to_toml(sample), before) << "a refused text changed the configuration: " << text;
  return sentence;
}

const std::string how_toml_is_written = "; a section is headed [name], a key is name = value, a text is in quotes";

TEST(ReadToml, EveryKindOfFieldTakesItsValue) {
  Sample c;
  read_toml(R"(
    steps = 1_000
    offset = -9223372036854775808
    factor = 2.5e-3
    fused = true
    name = "ü \u0041"
    format = 'e4m3'
    keep = ["a", 'b, c',
            "d",]
    [optim]
    learning_rate = 1   # an integer stands for a number
    schedule.kind = "linear"
    schedule.warmup = 0x10
  )",
            "run.toml", c);
  EXPECT_EQ(c.steps, 1000);
  EXPECT_EQ(c.offset, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(c.factor, 2.5e-3);
  EXPECT_TRUE(c.fused);
  EXPECT_EQ(c.name, "ü A");
  EXPECT_EQ(c.format, "e4m3");
  EXPECT_EQ(c.keep, (std::vector<std::string>{"a", "b, c", "d"}));
  EXPECT_EQ(c.optim.learning_rate, 1.0);
  EXPECT_EQ(c.optim.schedule.kind, Decay::linear);
  EXPECT_EQ(c.optim.schedule.warmup, 16);
  EXPECT_EQ(c.optim.beta2, 0.95) << "a key that is not set keeps its default";
}

TEST(ReadToml, TheOriginOfEachKeyThatWasSetIsKnown) {
  Sample c;
  Origins origins = read_toml("steps = 5\n[optim]\n  beta2 = 0.5\n[optim.schedule]\n", "run.toml", c);
  EXPECT_EQ(origins, (Origins{{"steps", "run.toml:1:1"}, {"optim.beta2", "run.toml:3:3"}}));
  apply_override(c, "optim.beta2=0.6", origins);
  apply_override(c, "fused=true", origins);
  EXPECT_EQ(origins, (Origins{{"steps", "run.toml:1:1"}, {"optim.beta2", "--set"}, {"fused", "--set"}}));
  EXPECT_EQ(cite(origins, "steps"), "run.toml:1:1: `steps`");
  EXPECT_EQ(cite(origins, "factor"), "`factor`");
}

TEST(ReadToml, AnEmptyTextSetsNothing) {
  for (const auto* text : {"", "\n", "# only a comment", "[optim]\n"}) {
    Sample c;
    EXPECT_TRUE(read_toml(text, "run.toml", c).empty());
  }
}

TEST(ReadToml, AnUnknownKeyIsRefusedAtItsPlaceWithTheNearestName) {
  EXPECT_EQ(refused("steps = 1\n  stepss = 2"), "run.toml:2:3: unknown key `stepss`; did you mean `steps`?");
  EXPECT_EQ(refused("[optim]\nlr = 1"), "run.toml:2:1: unknown key `optim.lr`; did you mean `optim.learning_rate`?");
  EXPECT_EQ(refused("optim.learning-rate = 1"), "run.toml:1:7: unknown key `optim.learning-rate`; did you mean `optim.learning_rate`?");
  EXPECT_EQ(refused("optim.schedule.wramup = 1"),
            "run.toml:1:16: unknown key `optim.schedule.wramup`; did you mean `optim.schedule.warmup`?");
  EXPECT_EQ(refused("optim.warmup = 1"), "run.toml:1:7: unknown key `optim.warmup`; did you mean `optim.schedule.warmup`?");
  EXPECT_EQ(refused("beta2 = 0.5"), "run.toml:1:1: unknown key `beta2`; did you mean `optim.beta2`?");
  EXPECT_EQ(refused("\n[optimizer]\nbeta2 = 1"), "run.toml:2:2: unknown key `optimizer`; did you mean `optim`?");
  EXPECT_EQ(refused("optim.steps = 1"), "run.toml:1:7: unknown key `optim.steps`; did you mean `steps`?");
  EXPECT_EQ(refused("lr = 1"), "run.toml:1:1: unknown key `lr`; did you mean `optim.learning_rate`?");
  EXPECT_EQ(refused("optim.warmup_steps = 1"), "run.toml:1:7: unknown key `optim.warmup_steps`; did you mean `optim.schedule.warmup`?");
  EXPECT_EQ(refused("max_steps = 1"), "run.toml:1:1: unknown key `max_steps`; did you mean `steps`?");
  EXPECT_EQ(refused("optim.dim = 1"), "run.toml:1:7: unknown key `optim.dim`; `optim` has learning_rate, beta2, schedule");
  EXPECT_EQ(refused("zzz = 1"),
            "run.toml:1:1: unknown key `zzz`; the top level has steps, offset, factor, fused, name, format, keep, optim");
  EXPECT_EQ(refused("[optim]\nzzz = 1"), "run.toml:2:1: unknown key `optim.zzz`; `optim` has learning_rate, beta2, schedule");
}

TEST(ReadToml, AnOptionThatNamesAKeyFindsIt) {
  Sample c;
  const Section root = gather(Ref(c));
  for (const auto& [option, key] : {std::pair("learning-rate", "optim.learning_rate"),
                                    {"lr", "optim.learning_rate"},
                                    {"warmup-steps", "optim.schedule.warmup"},
                                    {"optim", "optim.learning_rate"},
                                    {"zzz", ""}})
    EXPECT_EQ(key_for_option(root, option), key) << option;
}

TEST(ReadToml, OfSeveralMistakesTheFirstInTheTextIsNamed) {
  EXPECT_TRUE(refused("zeta = 1\nalpha = 2").starts_with("run.toml:1:1: unknown key `zeta"));
  EXPECT_EQ(refused("fused = 1\nalpha = 2"), "run.toml:1:9: `fused` must be true or false, got 1");
}

TEST(ReadToml, AKeyOfAnEarlierVersionIsRefusedWithWhatToSetInstead) {
  EXPECT_EQ(refused("[optim]\nbeta = 0.9\n"), "run.toml:2:1: `optim.beta` was replaced; set `optim.beta2`");
}

TEST(ReadToml, AnUnknownKeyIsShownWithoutWhatCouldHarmATerminal) {
  EXPECT_TRUE(refused("\"optim.beta2\" = 1").starts_with("run.toml:1:1: unknown key `\"optim.beta2\"`;"));
  EXPECT_TRUE(refused("\"a\\u001b[31m\" = 1").starts_with("run.toml:1:1: unknown key `\"a\\u001b[31m\"`; the"));
  EXPECT_LT(refused(std::string(100'000, 'k') + " = 1").size(), 300u);
}

TEST(ReadToml, AWrongTypeSaysWhatWasWantedAndWhatCame) {
  EXPECT_EQ(refused("steps = 1.0"), "run.toml:1:9: `steps` must be an integer in [1, 1000], got 1.0");
  EXPECT_EQ(refused("steps = \"1\""), "run.toml:1:9: `steps` must be an integer in [1, 1000], got \"1\"");
  EXPECT_EQ(refused("steps = 1e2"), "run.toml:1:9: `steps` must be an integer in [1, 1000], got 100.0");
  EXPECT_EQ(refused("steps = true"), "run.toml:1:9: `steps` must be an integer in [1, 1000], got true");
  EXPECT_EQ(refused("factor = \"fast\""), "run.toml:1:10: `factor` must be a number, got \"fast\"");
  EXPECT_EQ(refused("factor = true"), "run.toml:1:10: `factor` must be a number, got true");
  EXPECT_EQ(refused("fused = 1"), "run.toml:1:9: `fused` must be true or false, got 1");
  EXPECT_EQ(refused("name = 1979-05-27"), "run.toml:1:8: `name` must be text, got a date");
  EXPECT_EQ(refused("name = 07:32:00"), "run.toml:1:8: `name` must be text, got a time");
  EXPECT_EQ(refused("name = 1979-05-27T07:32:00Z"), "run.toml:1:8: `name` must be text, got a date and time");
  EXPECT_EQ(refused("name = [\"a\"]"), "run.toml:1:8: `name` must be text, got [\"a\"]");
  EXPECT_EQ(refused("keep = \"a\""), "run.toml:1:8: `keep` must be a list of text, got \"a\"; write [\"a\"]");
  EXPECT_EQ(refused("keep = [\"a\", 2]"), "run.toml:1:8: `keep` must be a list of text, got a list with 2 in it");
  EXPECT_EQ(refused("keep = [[\"a\"]]"), "run.toml:1:8: `keep` must be a list of text, got a list with a list in it");
  EXPECT_EQ(refused("format = \"e4m\""), "run.toml:1:10: `format` must be one of hybrid, e4m3, got \"e4m\"; did you mean e4m3?");
  EXPECT_EQ(refused("format = 3"), "run.toml:1:10: `format` must be one of hybrid, e4m3, got 3");
  EXPECT_EQ(refused("optim.schedule.kind = \"step\""),
            "run.toml:1:23: `optim.schedule.kind` must be one of none, cosine, linear, got \"step\"");
}

TEST(ReadToml, ASectionAndAValueCannotStandForEachOther) {
  EXPECT_EQ(refused("optim = 3"), "run.toml:1:1: `optim` is a section, got 3; set the keys in it, such as `optim.learning_rate`");
  EXPECT_EQ(refused("[[optim]]\nbeta2 = 0.5"),
            "run.toml:1:3: `optim` is one section, got a list of sections; write [optim] once, not [[optim]]");
  EXPECT_EQ(refused("[steps]\nx = 1"), "run.toml:1:1: `steps` must be an integer in [1, 1000], got a section");
  EXPECT_EQ(refused("[[keep]]\nx = 1"), "run.toml:1:1: `keep` must be a list of text, got a list of sections");
}

TEST(ReadToml, AValueOutOfRangeSaysTheRange) {
  EXPECT_EQ(refused("steps = 0"), "run.toml:1:9: `steps` must be an integer in [1, 1000], got 0");
  EXPECT_EQ(refused("steps = 1001"), "run.toml:1:9: `steps` must be an integer in [1, 1000], got 1001");
  EXPECT_EQ(refused("[optim]\nlearning_rate = 0"), "run.toml:2:17: `optim.learning_rate` must be a number > 0, got 0");
  EXPECT_EQ(refused("[optim]\nbeta2 = 1.0"), "run.toml:2:9: `optim.beta2` must be a number in [0, 1), got 1.0");
  EXPECT_EQ(refused("[optim.schedule]\nwarmup = -1"), "run.toml:2:10: `optim.schedule.warmup` must be an integer >= 0, got -1");
  for (const auto* bound : {"steps = 1", "steps = 1000", "optim.beta2 = 0", "optim.beta2 = 0.9999999999999999"}) {
    EXPECT_EQ(refusal_of([&] {
                Sample c;
                read_toml(bound, "run.toml", c);
              }),
              "no ConfigError");
  }
}

TEST(ReadToml, NanAndInfinityAreRefused) {
  EXPECT_EQ(refused("factor = nan"), "run.toml:1:10: `factor` must be a number, got nan, which is not finite");
  EXPECT_EQ(refused("factor = -inf"), "run.toml:1:10: `factor` must be a number, got -inf, which is not finite");
  EXPECT_EQ(refused("factor = 1e999"),
            "run.toml:1:15: not TOML: floating-point: '1e999' could not be interpreted as a value" + how_toml_is_written);
  EXPECT_EQ(refused("offset = 9223372036854775808"),
            "run.toml:1:29: not TOML: decimal integer: '9223372036854775808' is not representable in 64 bits" + how_toml_is_written);
}

TEST(ReadToml, AKeyOrSectionSetTwiceIsRefused) {
  EXPECT_EQ(refused("steps = 1\nsteps = 2"), "run.toml:2:9: not TOML: 'steps' is there already; a key or a section may occur only once");
  EXPECT_EQ(refused("[optim]\n[optim]"), "run.toml:2:1: not TOML: 'optim' is there already; a key or a section may occur only once");
}

TEST(ReadToml, TextThatIsNotTomlIsRefusedAtItsPlace) {
  EXPECT_EQ(refused("steps = "), "run.toml:1:9: not TOML: key-value pair: encountered end-of-file" + how_toml_is_written);
  EXPECT_EQ(refused("steps: 5"), "run.toml:1:6: not TOML: key-value pair: expected '=', saw ':'" + how_toml_is_written);
  EXPECT_EQ(refused("\nname = \"open"), "run.toml:2:13: not TOML: a text in quotes does not end on its line" + how_toml_is_written);
}

TEST(ReadToml, TextThatBreaksTheAssumptionsOfTheParserIsRefused) {
  for (const auto* text : {"[[=", "[[[a]]]", "[&", "[[&"}) {
    EXPECT_TRUE(refused(text).starts_with("run.toml")) << refused(text);
  }
}

TEST(ReadToml, CharactersOfEveryLengthComeAsTheyWereWritten) {
  // One at each end of the sequences of one to four bytes, and those that Unicode counts as spaces and line ends.
  const std::string text =
      "a~\xC2\x80\u0085\u00A0\u00FF\u07FF\u0800\u1680\u2028\u3000\uD7FF\uE000\uFEFF\uFFFF\U00010000\U0001F600\U000FFFFF";
  for (const std::string quotes : {"'", "\"", "'''", "\"\"\""}) {
    Sample sample;
    read_toml("name = " + quotes + text + quotes + " # " + text + "\nkeep = [" + quotes + text + quotes + "]", "x.toml", sample);
    EXPECT_EQ(sample.name, text) << quotes;
    EXPECT_EQ(sample.keep, std::vector<std::string>{text}) << quotes;
  }
  Sample sample;
  read_toml("name = \"\\u00FF\\U0001F600\"", "x.toml", sample);
  EXPECT_EQ(sample.name, "\u00FF\U0001F600");
}

TEST(ReadToml, QuotesWithinAWordHideNoCharacterFromTheParser) {
  for (const std::string text :
       {"steps = 0'\u00FF'", "steps = 0='\u2027'", "keep = [0.'\u3001']", "steps = 0===ki'nd==.==\u00FF=\"\"\"\"\"\""}) {
    EXPECT_TRUE(refused(text).starts_with("run.toml:1:")) << refused(text);
  }
}

TEST(ReadToml, AFileIsReadAndNamedInMessages) {
  const std::string path = ::testing::TempDir() + "octet_config_read.toml";
  Sample c;
  write_file(path, "steps = 7\r\nfused = true\r\n");
  read_toml_file(path, c);
  EXPECT_EQ(c.steps, 7);
  write_file(path, "step = 7\n");
  EXPECT_EQ(refusal_of([&] { read_toml_file(path, c); }), path + ":1:1: unknown key `step`; did you mean `steps`?");
  write_file(path, std::string(max_toml_bytes + 1, '\n'));
  EXPECT_EQ(refusal_of([&] { read_toml_file(path, c); }),
            path + ": the file may have at most 1,048,576 bytes, it has 1,048,577; name a TOML file");
  EXPECT_THROW(read_toml_file(path + ".missing", c), IoError);
}

struct Renamed {
  std::int64_t rows = 1, cols = 1, size = 1;
  void fields(FieldVisitor& v) {
    v.field("size", size, "of both");
    v.field("rows", rows, "down"), v.field("cols", cols, "across");
    v.replaced("side", {"rows", "cols"});
  }
};
struct HasRenamed {
  Renamed grid;
  void fields(FieldVisitor& v) { v.section("grid", grid, "a grid"); }
};

TEST(ReadToml, AKeyThatWasReplacedIsReadFromTextsOfTheProgramAndElseRefusedWithAHint) {
  HasRenamed c;
  EXPECT_EQ(refusal_of([&] { read_toml("[grid]\nside = 4", "run.toml", c); }),
            "run.toml:2:1: `grid.side` was replaced; set `grid.rows` and `grid.cols`");
  Origins origins;
  EXPECT_EQ(refusal_of([&] { apply_override(c, "grid.side=4", origins); }),
            "--set grid.side=4: `grid.side` was replaced; set `grid.rows` and `grid.cols`");
  read_toml("[grid]\nside = 4\nsize = 2", "run.toml", c, Written::by_program);
  EXPECT_EQ(c.grid.rows, 4);
  EXPECT_EQ(c.grid.cols, 4);
  EXPECT_EQ(c.grid.size, 2);
  EXPECT_NE(
      refusal_of([&] { read_toml("[grid]\nside = true", "run.toml", c, Written::by_program); }).find("run.toml:2:8: `grid.rows` must be"),
      std::string::npos);
}

}  // namespace
}  // namespace octet::config

#include "octet/json/fields.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::json {
namespace {

Value parsed(std::string_view text) { return parse({.text = text, .file = "config.json"}); }

template <class Read>
std::string refusal(std::string_view text, Read read) {
  const Value file = parsed(text);
  return testing::error_of<DataError>([&] { read(Fields(file, "config.json")); });
}

TEST(JsonFields, GettersReturnTheValuesOfTheText) {
  const Value file = parsed(R"({"hidden_size": 768, "eps": 1e-05, "theta": 10000, "tie": true, "act": "silu",
    "archs": ["A", "B"], "ids": [1, 2], "head_dim": null, "rope": {"factor": 8.0, "inner": {"deep": -3}}, "ignored": [[{}]],
    "plan": [{"path": "a"}, {"path": "b"}], "amax": [1, null, -1e300, -3.4028235e38, 3.4028236e38]})");
  const Fields c(file, "config.json");
  EXPECT_EQ(c.integer("hidden_size", 1, 1000), 768);
  EXPECT_EQ(c.count("hidden_size"), 768);
  EXPECT_EQ(c.number("eps", 0, 1), 1e-5);
  EXPECT_EQ(c.number("theta", 1, 1e9), 10000.0);
  EXPECT_EQ(c.number_or_nan("theta"), 10000.0);
  EXPECT_TRUE(std::isnan(c.number_or_nan("head_dim")));
  EXPECT_TRUE(c.boolean("tie"));
  EXPECT_EQ(c.text("act"), "silu");
  EXPECT_EQ(c.texts("archs"), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(c.integers("ids", 0, 9), (std::vector<std::int64_t>{1, 2}));
  const auto amax = c.numbers_or_nan("amax");
  EXPECT_TRUE(amax[0] == 1 && std::isnan(amax[1]));
  EXPECT_EQ(amax[2], -INFINITY);
  EXPECT_EQ(amax[3], std::numeric_limits<float>::lowest()) << "its nine digits are more than it";
  EXPECT_EQ(amax[4], INFINITY);
  EXPECT_EQ(c.object("rope").number("factor", 1, 64), 8.0);
  EXPECT_EQ(c.object("rope").object("inner").integer("deep", -5, 5), -3);
  EXPECT_EQ(c.objects("plan")[1].text("path"), "b");
  EXPECT_TRUE(c.value("head_dim").is_null());
  EXPECT_FALSE(c.has("head_dim"));
  EXPECT_FALSE(c.has("absent"));
  EXPECT_EQ(c.integer_or("head_dim", 64, 1, 1024), 64);
  EXPECT_EQ(c.integer_or("hidden_size", 64, 1, 1024), 768);
  EXPECT_EQ(c.number_or("absent", 0.5, 0, 1), 0.5);
  EXPECT_TRUE(c.boolean_or("absent", true));
  EXPECT_EQ(c.text_or("absent", "gelu"), "gelu");
}

TEST(JsonFields, ARefusalNamesFileKeyWantedAndValue) {  // case C10
  const struct {
    const char *value, *shown;
  } cases[] = {{"0", "0"},
               {"-1", "-1"},
               {"2147483648", "2147483648"},
               {"1e9", "1000000000.0"},
               {"\"768\"", "the string \"768\""},
               {"null", "null"},
               {"7.5", "7.5"},
               {"true", "true"},
               {"[]", "an array of 0 values"},
               {"{}", "an object"},
               {"768.0", "768.0"},
               {"18446744073709551615", "1.8446744073709552e+19"}};
  for (const auto& c : cases)
    EXPECT_EQ(refusal(format("{\"hidden_size\": {}}", c.value), [](const Fields& f) { f.integer("hidden_size", 1, 65536); }),
              format("config.json: hidden_size must be an integer from 1 to 65536, got {}", c.shown));
}

TEST(JsonFields, EveryGetterRefusesAMissingKeyAnotherTypeAndAValueOutOfRange) {
  const struct {
    void (*read)(const Fields&);
    const char* message;
  } cases[] = {
      {[](const Fields& f) { f.integer("absent", 1, 9); }, "absent must be an integer from 1 to 9, it is missing"},
      {[](const Fields& f) { f.count("neg"); }, "neg must be an integer of at least 0, got -1"},
      {[](const Fields& f) { f.integer_or("s", 1, 1, 2); }, "s must be an integer from 1 to 2, got the string \"x\""},
      {[](const Fields& f) { f.number("s", 0, 1); }, "s must be a number from 0 to 1, got the string \"x\""},
      {[](const Fields& f) { f.number("n", 2, 3); }, "n must be a number from 2 to 3, got 1"},
      {[](const Fields& f) { f.number_or_nan("loss"); }, "loss must be a number or null, it is missing"},
      {[](const Fields& f) { f.number_or_nan("s"); }, "s must be a number or null, got the string \"x\""},
      {[](const Fields& f) { f.boolean_or("n", true); }, "n must be true or false, got 1"},
      {[](const Fields& f) { f.text_or("n", ""); }, "n must be a string, got 1"},
      {[](const Fields& f) { f.integers("n", 0); }, "n must be an array of integers of at least 0, got 1"},
      {[](const Fields& f) { f.integers("a", 0, 1); }, "a must be an array of integers from 0 to 1, it contains the string \"x\""},
      {[](const Fields& f) { f.numbers_or_nan("a"); }, "a must be an array of numbers or null, it contains the string \"x\""},
      {[](const Fields& f) { f.texts("a"); }, "a must be an array of strings, it contains 1"},
      {[](const Fields& f) { f.object("n"); }, "n must be an object, got 1"},
      {[](const Fields& f) { f.objects("a"); }, "a must be an array of objects, it contains 1"},
      {[](const Fields& f) { f.object("o").integer("k", 0, 1); }, "o.k must be an integer from 0 to 1, got the string \"v\""},
      {[](const Fields& f) { f.object("o").objects("l")[1].text("m"); }, "o.l[1].m must be a string, it is missing"},
      {[](const Fields& f) { f.value("absent"); }, "absent must be present, it is missing"},
      {[](const Fields& f) { f.refuse("n", "2"); }, "n must be 2, got 1"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(refusal(R"({"n": 1, "neg": -1, "s": "x", "a": [1, "x", 2.5], "o": {"k": "v", "l": [{}, {}]}})", c.read),
              std::string("config.json: ") + c.message);
  const Value list = Array{1};
  EXPECT_EQ(testing::error_of<DataError>([&] { Fields(list, "f"); }), "f: the root must be an object, got an array of 1 values");
}

}  // namespace
}  // namespace octet::json

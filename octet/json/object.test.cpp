#include "octet/json/object.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "octet/json/text.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::io {
namespace {
using testing::error_of, testing::has, testing::Scratch;

JsonObject parsed(std::string_view text) { return JsonObject::parse(text, "config.json"); }
std::string refusal(std::string_view text) {
  return error_of<DataError>([&] { parsed(text); });
}

TEST(JsonObject, getters_give_what_stands_in_the_text) {
  const JsonObject c = parsed(R"({"hidden_size": 768, "eps": 1e-05, "theta": 10000, "tie": true, "act": "silu",
    "archs": ["A", "B"], "ids": [1, 2], "head_dim": null, "rope": {"factor": 8.0, "inner": {"deep": -3}}, "ignored": [[{}]]})");
  EXPECT_EQ(c.integer("hidden_size", 1, 1000), 768);
  EXPECT_EQ(c.number("eps", 0, 1), 1e-5);
  EXPECT_EQ(c.number("theta", 1, 1e9), 10000.0);
  EXPECT_TRUE(c.boolean("tie"));
  EXPECT_EQ(c.text("act"), "silu");
  EXPECT_EQ(c.texts("archs"), (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(c.integers("ids", 0, 9), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(c.object("rope").number("factor", 1, 64), 8.0);
  EXPECT_EQ(c.object("rope").object("inner").integer("deep", -5, 5), -3);
  EXPECT_FALSE(c.has("head_dim"));
  EXPECT_FALSE(c.has("absent"));
  EXPECT_EQ(c.integer_or("head_dim", 64, 1, 1024), 64);
  EXPECT_EQ(c.integer_or("hidden_size", 64, 1, 1024), 768);
  EXPECT_EQ(c.number_or("absent", 0.5, 0, 1), 0.5);
  EXPECT_TRUE(c.boolean_or("absent", true));
  EXPECT_EQ(c.text_or("absent", "gelu"), "gelu");
}

TEST(JsonObject, a_value_of_the_wrong_kind_or_range_names_file_key_wish_and_value) {  // case C10
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
  for (const auto& c : cases) {
    const JsonObject config = parsed(format("{\"hidden_size\": {}}", c.value));
    EXPECT_EQ(error_of<DataError>([&] { config.integer("hidden_size", 1, 65536); }),
              format("config.json: hidden_size must be an integer from 1 to 65536, got {}", c.shown));
  }
  EXPECT_EQ(error_of<DataError>([&] { parsed("{}").integer("hidden_size", 1, 65536); }),
            "config.json: hidden_size must be an integer from 1 to 65536, it is missing");
}

TEST(JsonObject, every_getter_refuses_other_types_and_an_optional_one_too) {
  const JsonObject c = parsed(R"({"n": 1, "s": "x", "a": [1, "x", 2.5], "o": {"k": "v"}})");
  EXPECT_EQ(error_of<DataError>([&] { c.number("s", 0, 1); }), "config.json: s must be a number from 0 to 1, got the string \"x\"");
  EXPECT_EQ(error_of<DataError>([&] { c.number("n", 2, 3); }), "config.json: n must be a number from 2 to 3, got 1");
  EXPECT_EQ(error_of<DataError>([&] { c.boolean_or("n", true); }), "config.json: n must be true or false, got 1");
  EXPECT_EQ(error_of<DataError>([&] { c.text_or("n", ""); }), "config.json: n must be a string, got 1");
  EXPECT_EQ(error_of<DataError>([&] { c.integer_or("s", 1, 1, 2); }),
            "config.json: s must be an integer from 1 to 2, got the string \"x\"");
  EXPECT_EQ(error_of<DataError>([&] { c.integers("a", 0, 1); }),
            "config.json: a must be an array of integers from 0 to 1, it holds the string \"x\"");
  EXPECT_EQ(error_of<DataError>([&] { c.texts("a"); }), "config.json: a must be an array of strings, it holds 1");
  EXPECT_EQ(error_of<DataError>([&] { c.object("n"); }), "config.json: n must be an object, got 1");
  EXPECT_EQ(error_of<DataError>([&] { c.object("o").integer("k", 0, 1); }),
            "config.json: o.k must be an integer from 0 to 1, got the string \"v\"");
}

TEST(JsonObject, text_that_is_not_strict_json_names_the_place) {
  const struct {
    std::string text, part;
  } cases[] = {
      {"", "line 1, column 1: a JSON object must begin here"},
      {"[]", "a JSON object must begin here"},
      {"null", "a JSON object must begin here"},
      {"\xEF\xBB\xBF{}", "without byte order mark"},
      {std::string("\xFF\xFE{\0}\0", 6), "without byte order mark"},   // case C16
      {"{\"rope_theta\": NaN}", "line 1, column 16: not valid JSON"},  // case C14
      {"{\"rope_theta\": Infinity}", "not valid JSON"},
      {"{\"a\": 1e999}", "number overflow"},
      {"{\n  \"a\": 1,\n}", "line 3, column 1: not valid JSON"},
      {"{\"a\": 1} x", "not valid JSON"},
      {"{\"a\": 1 /* one */}", "not valid JSON"},
      {"{'a': 1}", "not valid JSON"},
      {"{\"a\": 01}", "not valid JSON"},
      {"{\"a\": \"\xFF\"}", "not valid JSON"},
      {"{\"a\": \"\\ud800\"}", "not valid JSON"},
      {std::string("{\"a\": 1}\0{\"a\"", 13), "a control character (\\x00) does not belong here"},
      {"{\"a\x1b[2J\": 1}", "a control character (\\x1b) does not belong here"},
      {"{\"a\": 1, \"b\": {\"x\": 1, \"x\": 2}}", "the key \"x\" stands twice in one object"},
      {"{\"a\": " + std::string(40, '[') + std::string(40, ']') + "}", "32 deep"},
      {"{\"a\": \"" + std::string(2'000'000, 'x') + "\"}", "may have 1,048,576 bytes"},
      {"{\"a\": 1" + std::string(2'000'000, '1') + "}", "may have 1,048,576 bytes"},
      {"{" + std::string(2'000'000, ' ') + "}", "may have 1,048,576 bytes"},
  };
  for (const auto& c : cases) {
    const std::string message = refusal(c.text);
    EXPECT_TRUE(message.starts_with("config.json: ") && message.find(c.part) != std::string::npos) << message << "\nwanted: " << c.part;
    EXPECT_LT(message.size(), 400u);
  }
}

TEST(JsonObject, a_text_cut_anywhere_is_refused) {
  const std::string whole = R"({"a": [1, 2.5, "x\u00e9"], "b": {"c": null, "d": true}})";
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "no error") << n;
  EXPECT_NO_THROW(parsed(whole));
}

TEST(JsonObject, a_text_of_very_many_values_is_refused_without_much_memory) {
  std::string text = "{\"a\": [0";
  for (int i = 0; i < 1'000'000; ++i) text += ",0";
  text += "]}";
  EXPECT_NE(refusal(text).find("at most 131,072 JSON values can be read"), std::string::npos);
}

TEST(JsonObject, a_huge_file_is_refused_by_its_size) {  // case C16
  const Scratch scratch;
  write_file(scratch.at("config.json"), "{}");
  std::filesystem::resize_file(scratch.at("config.json"), std::uintmax_t(1) << 30);
  const std::string message = error_of<DataError>([&] { JsonObject::load(scratch.at("config.json")); });
  EXPECT_NE(message.find("the file may have at most 16,777,216 bytes, it has 1,073,741,824"), std::string::npos) << message;
}

TEST(JsonObject, a_missing_file_is_the_systems_refusal) {
  const Scratch scratch;
  EXPECT_NE(error_of<IoError>([&] { JsonObject::load(scratch.at("config.json")); }).find("No such file"), std::string::npos);
}

TEST(JsonObject, what_is_saved_reads_back_in_order_and_looks_like_this) {
  const Scratch scratch;
  JsonObject rope;
  rope.set("rope_type", "llama3").set("factor", 8.0);
  JsonObject config;
  config.set("architectures", JsonArray{"LlamaForCausalLM"}).set("hidden_size", 768).set("rms_norm_eps", 1e-5).set("rope_scaling", rope);
  config.set("empty", JsonObject()).set("none", JsonValue()).set("tie", false).set("text", "a\"\\\n\x1b\xC3\xA9").set("theta", 10000.0);
  config.set("nested", JsonArray{JsonArray{1, 2}, JsonArray{}}).set("hidden_size", 1024);
  config.save(scratch.at("config.json"));
  EXPECT_EQ(read_file(scratch.at("config.json"), 10000), R"({
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 1024,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {
    "rope_type": "llama3",
    "factor": 8.0
  },
  "empty": {},
  "none": null,
  "tie": false,
  "text": "a\"\\\n\u001b)"
                                                         "\xC3\xA9"
                                                         R"(",
  "theta": 10000.0,
  "nested": [
    [1, 2],
    []
  ]
}
)");
  const JsonObject read = JsonObject::load(scratch.at("config.json"));
  EXPECT_EQ(read.keys(), config.keys());
  EXPECT_EQ(read.dump(), config.dump());
}

TEST(JsonObject, every_double_is_written_so_that_it_reads_back) {
  for (const double x : {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e22, 123456789.0, -2.5}) {
    JsonObject o;
    o.set("x", x);
    const double back = parsed(o.dump()).number("x", -std::numeric_limits<double>::max(), std::numeric_limits<double>::max());
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(x)) << o.dump();
  }
}

TEST(JsonObject, what_json_cannot_hold_is_not_written) {
  EXPECT_NE(error_of<ContractError>([] { JsonObject().set("x", std::numeric_limits<double>::quiet_NaN()).dump(); }).find("must be finite"),
            std::string::npos);
  EXPECT_NE(error_of<ContractError>([] { JsonObject().set("x", "\xFF").dump(); }).find("must be UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace octet::io

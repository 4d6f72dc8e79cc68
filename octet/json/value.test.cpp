#include "octet/json/value.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::json {
namespace {
using testing::error_of, testing::has, testing::Scratch;

Value parsed(std::string_view text, const Limits& limits = {}) { return parse({.text = text, .file = "config.json", .limits = limits}); }
std::string refusal(std::string_view text, const Limits& limits = {}) {
  return error_of<DataError>([&] { parsed(text, limits); });
}

TEST(JsonValue, BothLayoutsReadBackAsTheSameValue) {
  const Value x = Object{{"a", Array{1, 2.5, true, Value(), "t\"\n\\"}}, {"b", Object{{"c", -7}}}};
  EXPECT_EQ(x.dump(), R"({"a":[1,2.5,true,null,"t\"\n\\"],"b":{"c":-7}})");
  EXPECT_EQ(parsed(x.dump()).dump(), x.dump());
  EXPECT_EQ(parsed(x.dump(Layout::indented)).dump(), x.dump());
}

TEST(JsonValue, TheIndentedLayoutKeepsTheOrderOfMembers) {
  Value config = Object{{"architectures", Array{"LlamaForCausalLM"}}, {"hidden_size", 768}, {"rms_norm_eps", 1e-5}};
  config.set("rope_scaling", Object{{"rope_type", "llama3"}, {"factor", 8.0}});
  config.set("empty", Object()).set("none", {}).set("tie", false).set("text", "a\"\\\n\x1b\xC3\xA9").set("theta", 10000.0);
  config.set("nested", Array{Array{1, 2}, Array{}}).set("hidden_size", 1024).set("files", Array{Object{{"name", "a"}, {"bytes", 2}}});
  EXPECT_EQ(config.dump(Layout::indented), R"({
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
  ],
  "files": [
    {
      "name": "a",
      "bytes": 2
    }
  ]
})");
}

TEST(JsonValue, OnlyObjectsHaveMembers) {
  EXPECT_TRUE(has(error_of<ContractError>([] { Value(Array{1}).set("a", 1); }), "\"a\" is set in an array of 1 values"));
}

TEST(JsonValue, AFloatIsWrittenAsItsShortestDecimal) { EXPECT_EQ(Value(0.1f).dump(), "0.1"); }

TEST(JsonValue, EveryDoubleReadsBackWithTheSameBits) {
  for (const double x : {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e22, 1e16, 123456789.0, -2.5})
    for (const Layout layout : {Layout::line, Layout::indented}) {
      const std::string text = Value(Object{{"x", x}}).dump(layout);
      const Value object = parsed(text), *back = object.find("x");
      const double number = back->real() ? *back->real() : double(*back->integer());
      EXPECT_EQ(std::bit_cast<std::uint64_t>(number), std::bit_cast<std::uint64_t>(x)) << text;
      EXPECT_TRUE(back->real() || layout == Layout::line) << text;
    }
}

TEST(JsonValue, TheWriterChoosesToRefuseOrToReplaceWhatJsonCannotRepresent) {
  for (const Value& x : {Value(double(NAN)), Value(-double(INFINITY)), Value(float(INFINITY))}) {
    EXPECT_EQ(x.dump(Layout::line, Invalid::replace), "null");
    EXPECT_TRUE(has(error_of<ContractError>([&] { x.dump(); }), "must be finite"));
  }
  const Value broken =
      "a\xff"
      "b";
  EXPECT_EQ(broken.dump(Layout::line, Invalid::replace),
            "\"a\xEF\xBF\xBD"
            "b\"");
  EXPECT_TRUE(has(error_of<ContractError>([&] { broken.dump(); }), "must be UTF-8"));
}

TEST(JsonValue, TextThatIsNotStrictJsonNamesThePlace) {
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
      {"{} {}", "not valid JSON"},
      {"{\"a\": 1 /* one */}", "not valid JSON"},
      {"{'a': 1}", "not valid JSON"},
      {"{\"a\": 01}", "not valid JSON"},
      {"{\"a\": \"\xFF\"}", "not valid JSON"},
      {"{\"a\": \"\\ud800\"}", "not valid JSON"},
      {"{\"a\": \"b\nc\"}", "must be escaped"},
      {std::string("{\"a\": 1}\0{\"a\"", 13), "column 9: a NUL byte cannot be part of JSON"},
      {"{\"a\x1b[2J\": 1}", "column 4: not valid JSON"},
      {"{\"a\": 1, \"b\": {\"x\": 1, \"x\": 2}}", "the key \"x\" occurs twice in one object; remove one"},
  };
  for (const auto& c : cases) {
    const std::string message = refusal(c.text);
    EXPECT_TRUE(message.starts_with("config.json: ") && has(message, c.part)) << message << "\nwanted: " << c.part;
    EXPECT_LT(message.size(), 400u);
  }
}

TEST(JsonValue, APlaceIsALineAColumnOrAByte) {
  Source source{.text = "{\n1}", .file = "f"};
  EXPECT_TRUE(has(error_of<DataError>([&] { parse(source); }), "f: line 2, column 1: "));
  source.place = Place::column;
  EXPECT_TRUE(has(error_of<DataError>([&] { parse(source); }), "f: column 3: "));
  source.place = Place::byte, source.first_byte = 8;
  EXPECT_TRUE(has(error_of<DataError>([&] { parse(source); }), "f: byte 10: "));
}

TEST(JsonValue, ATextCutAnywhereIsRefused) {
  const std::string whole = R"({"a": [1, 2.5, "x\u00e9"], "b": {"c": null, "d": true}})";
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "no error") << n;
  EXPECT_NO_THROW(parsed(whole));
}

TEST(JsonValue, LimitsHoldBeforeTheTextCostsMemory) {
  const Limits large{.bytes = std::size_t(16) << 20};
  const std::string piece = "may have at most 1,048,576 bytes, this one has more";
  EXPECT_TRUE(has(refusal("{\"a\": " + std::string(40, '[') + std::string(40, ']') + "}"),
                  "line 1, column 38: objects and arrays may be nested 32"));
  EXPECT_TRUE(has(refusal("{\"a\": " + std::string(100000, '[')), "may be nested 32 deep"));
  EXPECT_TRUE(has(refusal("{\"a\": \"" + std::string(2'000'000, 'x') + "\"}", large), piece));
  EXPECT_TRUE(has(refusal("{\"a\": 1" + std::string(2'000'000, '1') + "}", large), piece));
  EXPECT_TRUE(has(refusal("{" + std::string(2'000'000, ' ') + "}", large), piece));
  EXPECT_EQ(refusal("{\"a\":[1,2,3]}", {.values = 4}), "config.json: the text may have at most 4 JSON values, it has more");
  EXPECT_EQ(refusal("{\"a\":[1,2]}", {.values = 4}), "no error");
  EXPECT_EQ(refusal("{}  \n", {.bytes = 4}), "config.json: the text may have at most 4 bytes, it has 5");
}

TEST(JsonValue, RepeatedKeysAreFoundInTimeThatDoesNotGrowWithTheSquare) {
  std::string many = "{\"0\":0";
  for (int i = 1; i < 100000; ++i) many += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(refusal(many + "}", {.bytes = std::size_t(4) << 20}), "no error");
  EXPECT_TRUE(has(refusal(many + ",\"7\":0}", {.bytes = std::size_t(4) << 20}), "the key \"7\" occurs twice"));
}

TEST(JsonValue, AHugeFileIsRefusedByItsSize) {  // case C16
  const Scratch scratch;
  write_file(scratch.at("config.json"), "{}");
  std::filesystem::resize_file(scratch.at("config.json"), std::uintmax_t(1) << 30);
  const std::string message = error_of<DataError>([&] { load(scratch.at("config.json")); });
  EXPECT_TRUE(has(message, "the file may have at most 1,048,576 bytes, it has 1,073,741,824")) << message;
}

TEST(JsonValue, AMissingFileIsTheSystemsRefusal) {
  const Scratch scratch;
  EXPECT_TRUE(has(error_of<IoError>([&] { load(scratch.at("config.json")); }), "No such file"));
}

}  // namespace
}  // namespace octet::json

#include "octet/json/value.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/base/error.hpp"
#include "octet/json/fields.hpp"
#include "tests/testing/scratch.hpp"

namespace octet {
namespace {

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  return testing::error_of<DataError>([&] { parse_json(text, "file:3", limits); });
}

TEST(Json, reads_what_it_wrote) {
  const Json x = Json::Object{{"a", Json::Array{1, 2.5, true, Json(), "t\"\n\\"}}, {"b", Json::Object{{"c", -7}}}};
  EXPECT_EQ(x.dump(), R"({"a":[1,2.5,true,null,"t\"\n\\"],"b":{"c":-7}})");
  EXPECT_EQ(parse_json(x.dump(), "x").dump(), x.dump());
  EXPECT_EQ(parse_json(x.dump(true), "x").dump(), x.dump());
}

TEST(Json, a_float_is_written_as_its_shortest_decimal) { EXPECT_EQ(Json(0.1f).dump(), "0.1"); }

TEST(Json, a_negative_zero_is_read_back_as_the_number_that_it_is) {
  const Json back = parse_json(Json(-0.0).dump(), "x");
  ASSERT_NE(back.real(), nullptr);
  EXPECT_TRUE(std::signbit(*back.real()));
}

TEST(Json, numbers_that_are_not_finite_become_null) {
  EXPECT_EQ(Json(NAN).dump(), "null");
  EXPECT_EQ(Json(-INFINITY).dump(), "null");
  EXPECT_EQ(Json(float(INFINITY)).dump(), "null");
}

TEST(Json, bytes_that_are_not_utf8_become_replacement_characters) {
  EXPECT_EQ(Json("a\xff"
                 "b")
                .dump(),
            "\"a\xEF\xBF\xBD"
            "b\"");
}

TEST(Json, hostile_text_is_refused_with_its_place) {
  EXPECT_EQ(refusal("{\"a\":"), "file:3: not JSON at byte 6");
  EXPECT_NE(refusal(""), "no error");
  EXPECT_NE(refusal("\"\xff\""), "no error");
  EXPECT_NE(refusal("NaN"), "no error");
  EXPECT_NE(refusal("{} {}"), "no error");
  EXPECT_EQ(refusal("[1e999]").substr(0, 8), "file:3: ");
  EXPECT_EQ(refusal(R"({"a":1,"b":2,"a":3})"), "file:3: the name \"a\" stands twice in one object");
}

TEST(Json, limits_hold_before_the_damage_is_done) {
  EXPECT_EQ(refusal(std::string(100000, '[')), "file:3: nested deeper than 12 levels");
  EXPECT_EQ(refusal("[1,2,3,4]", {.values = 3}), "file:3: more than 3 values");
  EXPECT_EQ(refusal("12345", {.bytes = 4}), "file:3: 5 bytes where at most 4 are read");
  std::string many = "{\"0\":0";
  for (int i = 1; i < 100000; ++i) many += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(refusal(many + "}"), "no error");
}

TEST(JsonFields, a_missing_or_mistyped_field_is_named) {
  const Json x = parse_json(R"({"n":1,"s":"t","neg":-1,"list":[1,"x"],"big":[1e300]})", "x");
  const JsonFields f(x, "run.json");
  EXPECT_EQ(testing::error_of<DataError>([&] { f.number("loss"); }), "run.json: loss: is missing");
  EXPECT_EQ(testing::error_of<DataError>([&] { f.number("s"); }), "run.json: s: wanted a number, got a text");
  EXPECT_EQ(testing::error_of<DataError>([&] { f.count("neg"); }), "run.json: neg: wanted at least 0, got -1");
  EXPECT_EQ(testing::error_of<DataError>([&] { f.numbers("list"); }), "run.json: list: wanted numbers, got a text");
  EXPECT_EQ(testing::error_of<DataError>([&] { f.object("n"); }), "run.json: n: wanted an object, got a whole number");
  EXPECT_TRUE(std::isinf(f.numbers("big")[0]));
}

}  // namespace
}  // namespace octet

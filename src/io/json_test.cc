// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace leadline {
namespace {

using Reference = nlohmann::ordered_json;

std::string problem(std::string_view text, size_t max_depth = 100) {
  try {
    parse_json(text, max_depth);
  } catch (const JsonError& error) {
    return error.what();
  }
  return "none";
}

TEST(Json, IsWrittenAsItIsBuilt) {
  Json json = {{"text", "a\"b"}, {"flag", true}, {"none", nullptr}, {"nested", {{"one", 1}, {"list", Json::array()}}}};
  json["items"].push_back(-3);
  json["items"].push_back(uint64_t{1} << 63);
  json["items"].push_back({{"x", 0.5}});
  json["names"] = std::vector<std::string>{"a", "b"};
  json["flag"] = false;
  EXPECT_EQ(json.dump(), R"({"text":"a\"b","flag":false,"none":null,"nested":{"one":1,"list":[]},)"
                         R"("items":[-3,9223372036854775808,{"x":0.5}],"names":["a","b"]})");
  EXPECT_EQ(Json({{"a", Json::array({1, 2})}, {"b", Json::object()}}).dump(2),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(Json, NumbersKeepTheirKind) {
  EXPECT_EQ(Json(2.0).dump(), "2.0");
  EXPECT_EQ(Json(2).dump(), "2");
  EXPECT_EQ(Json(1e300).dump(), "1e+300");
  EXPECT_EQ(Json(0.1F).dump(), "0.10000000149011612");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(-std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_TRUE(parse_json("-9223372036854775808").is_integer());
  EXPECT_EQ(parse_json("-9223372036854775808").integer(), INT64_MIN);
  EXPECT_TRUE(parse_json("18446744073709551615").is_integer());
  EXPECT_THROW(parse_json("18446744073709551615").integer(), JsonError);
  EXPECT_EQ(parse_json("18446744073709551616").number(), 0x1p64);
  EXPECT_FALSE(parse_json("18446744073709551616").is_integer());
  EXPECT_FALSE(parse_json("1.0").is_integer());
  EXPECT_EQ(parse_json("-0.0").dump(), "-0.0");
  EXPECT_EQ(parse_json("1e-400").number(), 0.0);
  EXPECT_EQ(parse_json("0." + std::string(400, '0') + "1").number(), 0.0);
  EXPECT_EQ(parse_json("0." + std::string(400, '0') + "1e401").number(), 1.0);
  EXPECT_EQ(parse_json("1e-99999999999999999999").number(), 0.0);
}

TEST(Json, TextIsRepairedAndEscaped) {
  EXPECT_EQ(Json("\x01\n\t\\ \x7F").dump(), R"("\u0001\n\t\\ \u007f")");
  EXPECT_EQ(Json("\xC3\xA4 \xF0\x9F\x98\x80").dump(), R"("\u00e4 \ud83d\ude00")");
  EXPECT_EQ(Json("\xC3\xA4 \xF0\x9F\x98\x80").dump(-1, false), "\"\xC3\xA4 \xF0\x9F\x98\x80\"");
  EXPECT_EQ(Json("a\xFF\xE2\x82").dump(), R"("a\ufffd\ufffd")");
  EXPECT_EQ(Json("a\xFF").dump(-1, false), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(Json("\xC0\x80").dump(), R"("\ufffd\ufffd")");  // overlong
  EXPECT_EQ(Json(std::string_view("\0", 1)).dump(), R"("\u0000")");
  EXPECT_EQ(parse_json(R"("\u00e4\ud83d\ude00\/\b")").text(), "\xC3\xA4\xF0\x9F\x98\x80/\b");
}

TEST(Json, GettersSayWhatTheyExpected) {
  const Json json = parse_json(R"({"a": [1, "x"], "b": {"c": true}})");
  EXPECT_EQ(json.at("a").at(0).integer(), 1);
  EXPECT_EQ(json.at("a").at(1).text(), "x");
  EXPECT_TRUE(json.at("b").at("c").boolean());
  EXPECT_EQ(json.find("d"), nullptr);
  EXPECT_EQ(json.size(), 2U);
  EXPECT_THROW(json.at("a").at(2), JsonError);
  EXPECT_THROW(json.at("a").texts(), JsonError);
  EXPECT_THROW(json.at("a").at("b"), JsonError);
  EXPECT_THROW(json.text(), JsonError);
  try {
    json.at("b").integer();
    FAIL();
  } catch (const JsonError& error) {
    EXPECT_STREQ(error.what(), R"(expected an integer, found {"c":true})");
  }
}

TEST(Json, OfRepeatedNamesTheLastCounts) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": 2, "b": 3, "c": 4, "b": 5})").dump(), R"({"b":5,"a":2,"c":4})");
}

TEST(Json, ProblemsHaveAPlace) {
  EXPECT_EQ(problem("[1,\n 2 3]"), "line 2, column 4: expected ',' or ']'");
  EXPECT_EQ(problem(""), "line 1, column 1: the text ends where a value is expected");
  EXPECT_EQ(problem("{\"a\" 1}"), "line 1, column 6: expected ':'");
  EXPECT_EQ(problem("[1e400]"), "line 1, column 2: a number is too large");
  EXPECT_EQ(problem("1e99999999999999999999"), "line 1, column 1: a number is too large");
  EXPECT_EQ(problem(std::string(400, '9')), "line 1, column 1: a number is too large");
  EXPECT_EQ(problem("[[[]]]", 2), "line 1, column 3: more than 2 levels of arrays and objects");
  EXPECT_EQ(problem("[[], [[]], {}]", 3), "none");
  EXPECT_EQ(problem(std::string(1'000'000, '[')), "line 1, column 101: more than 100 levels of arrays and objects");
}

TEST(Json, ManyMembersTakeNoQuadraticTime) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += "\"k" + std::to_string(i % 150'000) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  EXPECT_EQ(parse_json(text).size(), 150'000U);
}

/// Documents that another reader takes are taken, and mean the same; what it refuses is refused.
void expect_like_reference(const std::string& text) {
  const Reference reference = Reference::parse(text, nullptr, false);
  try {
    const Json json = parse_json(text);
    ASSERT_FALSE(reference.is_discarded()) << text;
    EXPECT_EQ(Reference::parse(json.dump()), reference) << text;
    EXPECT_EQ(Reference::parse(json.dump(3, false)), reference) << text;
  } catch (const JsonError& error) {
    EXPECT_TRUE(reference.is_discarded()) << text << ": " << error.what();
  }
}

TEST(Json, ReadsWhatOthersRead) {
  for (const char* text : {"null",
                           "nul",
                           "nulll",
                           "true",
                           " false\n",
                           "[1,]",
                           "[,1]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:1}",
                           "01",
                           "-",
                           "-0",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "1E-2",
                           "+1",
                           "0x1",
                           "NaN",
                           "Infinity",
                           "'a'",
                           "\"\t\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\\ud834\\udd1e\"",
                           "\"\xFF\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"",
                           "\"\xE2\x82\xAC\"",
                           "\"abc",
                           "[",
                           "]",
                           "{}{}",
                           "[1 2]",
                           "\xEF\xBB\xBF[1]",
                           "\"\\\"",
                           "\"\\\\\"",
                           "[1]\x01",
                           "\"\\u00\"",
                           "[-1.5e3, 12345678901234567890, 1e308, 123e-20]"}) {
    expect_like_reference(text);
  }
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same documents in every run
  const std::string seed = R"({"a": [1, -2.5e3, "x\u00e4\n", null, true], "b": {"c": {}, "d": []}, "a": "again"})";
  const std::string_view bytes = "{}[],:\"\\ue01-.Et n\xC3\xA4";
  for (int i = 0; i < 20'000; ++i) {
    std::string text = seed;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      switch (random() % 3) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1 + random() % 3);
      }
    }
    expect_like_reference(text);
  }
}

}  // namespace
}  // namespace leadline

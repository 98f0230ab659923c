// SPDX-License-Identifier: Apache-2.0
#include "io/flexbuffer_map.h"

#include <gtest/gtest.h>

#include "io/flexbuffer_map_builder.h"

namespace leadline {
namespace {

const std::vector<FlexEntry> kEntries = {
    {"count", int32_t{-7}}, {"flag", true}, {"ratio", 0.5F}, {"size", uint32_t{4000000000}}};

TEST(FlexMap, ReadsNumbersByName) {
  const auto map = FlexMap::parse(build_flex_map(kEntries));
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->size(), 4U);
  EXPECT_EQ(map->get_int("count", 0), -7);
  EXPECT_TRUE(map->get_bool("flag", false));
  EXPECT_EQ(map->get_float("ratio", 0.0F), 0.5F);
  EXPECT_EQ(map->get_int("ratio", 9), 0);
  EXPECT_EQ(map->get_int("size", 0), 2147483647);
  EXPECT_EQ(map->get_int("missing", 3), 3);
  EXPECT_FALSE(map->has("missing"));
}

TEST(FlexMap, ReadsABufferOfTheFormatsOwnWriter) {
  // {"foo": 13, "bar": 14}
  const uint8_t raw[] = {'f', 'o', 'o', 0, 'b', 'a', 'r', 0, 2, 5, 10, 2, 1, 2, 14, 13, 4, 4, 4, 36, 1};
  const auto map = FlexMap::parse(std::as_bytes(std::span(raw)));
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->get_int("foo", 0), 13);
  EXPECT_EQ(map->get_int("bar", 0), 14);
  // {"n": 1000, "s": "text", "x": 2.1, "y": 1.25 (indirect), "z": null}
  const uint8_t mixed[] = {
      110, 0,  120, 0, 115, 0, 4, 116, 101, 120, 116, 0, 121, 0, 0, 0, 0, 0, 160, 63, 122, 0,   5,   23,  20,  23,
      14,  7,  0,   0, 0,   0, 9, 0,   0,   0,   0,   0, 0,   0, 1, 0, 0, 0, 0,   0,  0,   0,   5,   0,   0,   0,
      0,   0,  0,   0, 232, 3, 0, 0,   0,   0,   0,   0, 57,  0, 0, 0, 0, 0, 0,   0,  205, 204, 204, 204, 204, 204,
      0,   64, 64,  0, 0,   0, 0, 0,   0,   0,   0,   0, 0,   0, 0, 0, 0, 0, 7,   20, 15,  34,  3,   45,  39,  1};
  const auto second = FlexMap::parse(std::as_bytes(std::span(mixed)));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->get_int("n", 0), 1000);
  EXPECT_EQ(second->get_float("x", 0.0F), 2.1F);
  EXPECT_EQ(second->get_float("y", 0.0F), 1.25F);
  EXPECT_EQ(second->get_text("s"), "text");
  EXPECT_FALSE(second->get_text("n").has_value());
  EXPECT_EQ(second->get_int("s", 5), 5);
  EXPECT_FALSE(second->has("z"));
}

// {"a": [1, -2, 300], "b": (0.5, 7, true) untyped, "c": (1, 2) of fixed length, "d": [] , "e": ["x"]}
const uint8_t kLists[] = {97, 0, 3, 0, 1,   0,  254, 255, 44, 1,  98,  0,  3,  0,  0,  0,  0,  0,  0,  63,
                          7,  0, 0, 0, 1,   0,  0,   0,   14, 6,  106, 99, 0,  0,  0,  0,  1,  0,  0,  0,
                          2,  0, 0, 0, 100, 0,  0,   101, 0,  1,  120, 0,  1,  3,  20, 5,  56, 47, 27, 15,
                          13, 5, 1, 5, 60,  49, 30,  20,  15, 45, 42,  66, 40, 40, 10, 36, 1};

TEST(FlexMap, ReadsListsOfEveryKind) {
  const auto map = FlexMap::parse(std::as_bytes(std::span(kLists)));
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->get_ints("a"), (std::vector<int32_t>{1, -2, 300}));
  EXPECT_EQ(map->get_ints("b"), (std::vector<int32_t>{0, 7, 1}));
  EXPECT_EQ(map->get_ints("c"), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(map->get_ints("d"), (std::vector<int32_t>{}));
  EXPECT_FALSE(map->get_ints("e").has_value());
  EXPECT_FALSE(map->get_ints("f").has_value());
  EXPECT_EQ(map->get_int("a", 4), 4);
}

TEST(FlexMap, EveryChangedByteOfListsIsSurvived) {
  for (size_t i = 0; i < std::size(kLists); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::vector<uint8_t> changed(std::begin(kLists), std::end(kLists));
      changed[i] = static_cast<uint8_t>(value);
      FlexMap::parse(std::as_bytes(std::span(changed)));
    }
  }
}

// Under the address sanitizer this also shows that nothing is read outside.
TEST(FlexMap, EveryTruncationAndEveryChangedByteIsSurvived) {
  const std::vector<std::byte> whole = build_flex_map(kEntries);
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    FlexMap::parse(part);
  }
  EXPECT_FALSE(FlexMap::parse({}).has_value());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::vector<std::byte> changed = whole;
      changed[i] = static_cast<std::byte>(value);
      FlexMap::parse(changed);
    }
  }
}

TEST(FlexMap, OtherRootsAreRefused) {
  const uint8_t vector_root[] = {1, 2, 2, 42, 1};
  EXPECT_FALSE(FlexMap::parse(std::as_bytes(std::span(vector_root))).has_value());
}

}  // namespace
}  // namespace leadline

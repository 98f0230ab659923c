// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/tensor_list.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace leadline::ops {
namespace {

/// Three places, the second of which is empty.
std::vector<std::byte> example() {
  ListHeader header;
  header.count = 3;
  header.element_shape.rank = 1;
  header.element_shape.dims[0] = -1;
  std::vector<std::byte> bytes(static_cast<size_t>(list_bytes(3, 8 + 16).value()));
  ListWriter writer(bytes.data(), header);
  const float first[] = {1};
  const float third[] = {2, 3, 4};
  std::memcpy(writer.put(0, {1}, 4), first, 4);
  std::memcpy(writer.put(2, {3}, 12), third, 12);
  return bytes;
}

TEST(TensorList, KeepsWhatWasPut) {
  const std::vector<std::byte> bytes = example();
  const ListView list(bytes);
  ASSERT_EQ(list.problem(), "");
  EXPECT_EQ(list.size(), 3);
  EXPECT_FALSE(list.element(1).present());
  const ListElement third = list.element(2);
  ASSERT_TRUE(third.present());
  EXPECT_EQ(third.shape.shape(), (Shape{3}));
  float values[3];
  std::memcpy(values, list.data(third), sizeof(values));
  EXPECT_EQ(values[2], 4);
}

TEST(TensorList, NoDamageIsReadOutsideItsBytes) {
  const std::vector<std::byte> bytes = example();
  constexpr size_t kRounding = 4;  // of the last element
  for (size_t size = 0; size < bytes.size() - kRounding; ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(ListView(cut).problem(), "") << size;
  }
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> changed = bytes;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    const ListView list(changed);
    if (!list.problem().empty()) continue;
    for (int64_t i = 0; i < list.size(); ++i) {
      const ListElement e = list.element(i);
      if (!e.present()) continue;
      ASSERT_GE(e.offset, 0);
      ASSERT_LE(e.offset + e.bytes, static_cast<int64_t>(changed.size()));
    }
  }
}

TEST(TensorList, ShapesMerge) {
  PartialShape any;
  const PartialShape known = PartialShape::of({2, 3});
  PartialShape part = known;
  part.dims[1] = -1;
  EXPECT_TRUE(PartialShape::merge(any, part)->fits({2, 9}));
  EXPECT_TRUE(PartialShape::merge(part, known)->fully_known());
  EXPECT_FALSE(PartialShape::merge(known, PartialShape::of({2, 4})).has_value());
  EXPECT_FALSE(PartialShape::merge(known, PartialShape::of({2})).has_value());
  EXPECT_EQ(part.to_string(), "[2, ?]");
}

}  // namespace
}  // namespace leadline::ops

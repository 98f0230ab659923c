// SPDX-License-Identifier: Apache-2.0
// Lookups against single loads, on every instruction set.
#include "kernels/elementwise/lookup8.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

TEST(Lookup8, EveryIndexFindsItsEntryAtEveryLength) {
  std::mt19937 random(1);
  const auto table = random_values<uint8_t>(256, 0, 255, random);
  for_each_target([&] {
    const Lookup8Row row = lookup8_row();
    for (int64_t count : {0, 1, 15, 63, 64, 127, 128, 129, 255, 256, 257, 1000}) {
      std::vector<uint8_t> values(static_cast<size_t>(count));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 7);  // 7 is odd: all 256 values
      const std::vector<uint8_t> in = values;
      row(table.data(), values.data(), values.data(), count);
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], table[in[i]]) << "of " << count << " at " << i;
    }
  });
}

}  // namespace
}  // namespace leadline::kernels

// SPDX-License-Identifier: Apache-2.0
// No large block is taken from the heap behind the budget's back while weights are packed.
#include <gtest/gtest.h>

#include <limits>

#include "leadline/interpreter.h"
#include "tests/cpp/sketch.h"
#include "tests/faults/fault_allocator.h"

namespace leadline::faults {
namespace {

constexpr int64_t kRows = 1024, kColumns = 2048;

/// A dense layer with weights of `type`, which take 1 MiB in 4 bits.
std::vector<std::byte> dense_model(DType type) {
  testing::Sketch s;
  const int x = s.input("x", DType::kFloat32, {1, kColumns});
  const auto bytes = static_cast<size_t>(kRows * kColumns * dtype_bits(type) / 8);
  const int w = s.constant_bytes("w", type, {kRows, kColumns}, std::vector<std::byte>(bytes, std::byte{0x31}));
  Quantization& quantization = s.subgraph().value(w).quantization;
  quantization.scale = {0.125F};
  quantization.zero_point = {0};
  s.outputs({s.compute("FULLY_CONNECTED", {x, w}, "y", DType::kFloat32, {1, kRows})});
  return s.file();
}

TEST(Uncharged, PackingWeightsTakesNoLargeBlockFromTheHeap) {
  for (const DType type : {DType::kInt8, DType::kInt4, DType::kInt2}) {
    const Model model = Model::from_bytes(dense_model(type));
    arm_allocator(std::numeric_limits<int64_t>::max(), Extent::kOnce);
    {
      Interpreter interpreter(model);
      interpreter.allocate();
      interpreter.invoke();
    }
    disarm_allocator();
    EXPECT_LT(largest_heap_block(), int64_t{256} << 10) << dtype_name(type);
  }
}

}  // namespace
}  // namespace leadline::faults

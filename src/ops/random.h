// SPDX-License-Identifier: Apache-2.0
// Attributes of RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL and STABLEHLO_RNG_BIT_GENERATOR.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct RandomAttributes : ir::AttributeSet<RandomAttributes> {
  int64_t seed = 0;
  int64_t seed2 = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("seed", seed);
    v.field("seed2", seed2);
  }
};

enum class RngAlgorithm : int8_t { kDefault = 0, kPhilox = 1, kThreefry = 2 };

struct RngBitGeneratorAttributes : ir::AttributeSet<RngBitGeneratorAttributes> {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  void fields(ir::FieldVisitor& v) { v.choice("algorithm", algorithm, 3); }
};

}  // namespace leadline::ops

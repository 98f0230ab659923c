// SPDX-License-Identifier: Apache-2.0
// Tried with LiteRT 2.3: a result declared FLOAT32 (of float ops INT32) has the type of this input after allocation.
// It matters to readers of files alone, which is why it is a list here and not a field of every row.
#include "ops/result_types.h"

#include <algorithm>
#include <array>

#include "ops/op_ids.h"

namespace leadline::ops {
namespace {

struct Source {
  ir::OpId id;
  int input;
};

constexpr std::array kSources = {
    Source{op::kAdd, 1},        Source{op::kSub, 1},        Source{op::kDiv, 1},      Source{op::kSquaredDifference, 1},
    Source{op::kMaximum, 0},    Source{op::kMinimum, 0},    Source{op::kFloorDiv, 0}, Source{op::kFloorMod, 0},
    Source{op::kPow, 0},        Source{op::kAddN, 0},       Source{op::kNeg, 0},      Source{op::kExp, 0},
    Source{op::kFloor, 0},      Source{op::kCeil, 0},       Source{op::kRound, 0},    Source{op::kZerosLike, 0},
    Source{op::kPrelu, 0},      Source{op::kExpandDims, 0}, Source{op::kGather, 0},   Source{op::kFill, 1},
    Source{op::kBitwiseXor, 0},
};

}  // namespace

int result_type_source(const ir::OpId& id) {
  const auto* found =
      std::find_if(kSources.begin(), kSources.end(), [&](const Source& source) { return source.id == id; });
  return found == kSources.end() ? -1 : found->input;
}

}  // namespace leadline::ops

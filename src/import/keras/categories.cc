// SPDX-License-Identifier: Apache-2.0
// Numbers to categories, categories to vectors; Masking.
#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"
#include "ops/bucketize.h"
#include "ops/one_hot.h"

namespace leadline::keras {
namespace {

/// Integers as rows of zeros and ones, summed up along axis 1 unless there is one per row.
int encode(Call& call, int x, int64_t depth, const std::string& mode, int weights = -1) {
  Emitter& e = call.e;
  require(depth > 0 && depth <= INT32_MAX, kBad, "the number of categories is {}, expected 1 to {}", depth, INT32_MAX);
  const bool one_per_row = mode == "one_hot";
  call.refuse_if(!one_per_row && mode != "multi_hot" && mode != "count",
                 fmt::format("has the output mode '{}', which is not known", printable(mode)));
  if (one_per_row && e.rank(x) > 1 && e.dims(x).back() == 1) x = e.squeeze(x, e.rank(x) - 1);
  ops::OneHotAttributes attributes;
  attributes.axis = -1;
  const int size = e.integer(static_cast<int32_t>(depth));
  const int hot = e.builder().node("ONE_HOT", {e.cast(x, DType::kInt32), size, e.scalar(1.0F), e.scalar(0.0F)},
                                   e.name("OneHot"), attributes, DType::kFloat32);
  if (one_per_row || e.rank(x) < 2) return hot;
  const int counted = weights < 0 ? hot : e.mul(hot, e.expand_dims(weights, e.rank(weights)));
  return e.reduce(mode == "count" ? "SUM" : "REDUCE_MAX", counted, {1}, false);
}

}  // namespace

Outputs category_encoding(Call& call) {
  const std::string mode = call.config.text("output_mode", "multi_hot");
  const int weights = call.inputs.size() > 1 ? call.e.cast(call.inputs[1], DType::kFloat32) : -1;
  call.refuse_if(weights >= 0 && mode != "count", "has weights of counts and does not count; use output_mode='count'");
  return {encode(call, call.x(), call.config.integer("num_tokens"), mode, weights)};
}

Outputs discretization(Call& call) {
  Emitter& e = call.e;
  const auto boundaries = call.config.find("bin_boundaries");
  call.refuse_if(!boundaries || !boundaries->is_list(), "has no bin_boundaries; adapt it before the model is saved");
  ops::BucketizeAttributes attributes;
  for (const double b : boundaries->numbers(1 << 20)) attributes.boundaries.push_back(static_cast<float>(b));
  const int x = e.cast(call.x(), DType::kFloat32);
  const int buckets = e.builder().node("BUCKETIZE", {x}, e.name("Bucketize"), attributes, DType::kInt32);
  const std::string mode = call.config.text("output_mode", "int");
  if (mode == "int") return {call.importer.is_keras_2() ? e.cast(buckets, DType::kInt64) : buckets};
  return {encode(call, buckets, static_cast<int64_t>(attributes.boundaries.size()) + 1, mode)};
}

/// Steps that have the mask's value everywhere become zeros, and do not count.
Outputs masking(Call& call) {
  Emitter& e = call.e;
  const int x = call.x();
  const int differs = e.compare("NOT_EQUAL", x, e.scalar_like(x, call.config.number("mask_value", 0.0)));
  const int any = e.reduce("REDUCE_ANY", differs, {e.rank(x) - 1}, true);
  const int result = e.mul(x, e.cast(any, e.dtype(x)));
  if (e.rank(x) == 3) call.importer.set_mask(result, e.reduce("REDUCE_ANY", differs, {2}, false));
  return {result};
}

}  // namespace leadline::keras

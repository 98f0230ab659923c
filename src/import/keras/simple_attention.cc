// SPDX-License-Identifier: Apache-2.0
// Attention and AdditiveAttention, and the masks of all attention.
#include "import/keras/attention.h"
#include "import/keras/importer.h"

namespace leadline::keras {
namespace {

/// Beyond this many elements a band is computed in every run.
constexpr int64_t kMaxBand = 1 << 22;

struct Tensors {
  int query;
  int value;
  int key;
  int query_mask;
  int value_mask;
};

Tensors attention_tensors(Call& call) {
  require(call.inputs.size() == 2 || call.inputs.size() == 3, kBad,
          "the layer is called with {} tensors, expected 2 or 3", call.inputs.size());
  Tensors t{call.input(0), call.input(1), call.inputs.size() > 2 ? call.inputs[2] : call.input(1), -1, -1};
  t.query_mask = call.importer.mask_of(t.query);
  t.value_mask = call.importer.mask_of(t.value);
  if (const Argument* given = call.arguments.find(SIZE_MAX, "mask"); given != nullptr && given->is_list) {
    const auto item = [&](size_t i) { return i < given->list.size() ? given->list[i].tensor : -1; };
    t.query_mask = item(0);
    t.value_mask = item(1);
  }
  return t;
}

Outputs finish(Call& call, int scores, const Tensors& t) {
  Emitter& e = call.e;
  int mask = t.value_mask >= 0 ? e.expand_dims(e.cast(t.value_mask, DType::kBool), 1) : -1;
  if (call_flag(call, "use_causal_mask") || call.config.boolean("causal", false)) {
    const int causal = band_mask(call, t.query, t.value, true, -1);
    mask = mask < 0 ? causal : e.compare("LOGICAL_AND", mask, causal);
  }
  if (mask >= 0) scores = masked_scores(e, scores, mask);
  const int weights = e.softmax(scores);
  int y = e.matmul(weights, t.value);
  if (t.query_mask >= 0) {
    y = e.mul(y, e.expand_dims(e.cast(t.query_mask, DType::kFloat32), 2));
    call.importer.set_mask(y, t.query_mask);
  }
  if (call_flag(call, "return_attention_scores")) return {y, weights};
  return {y};
}

int pairwise_sum(Emitter& e, int query, int key) { return e.add(e.expand_dims(query, 2), e.expand_dims(key, 1)); }

}  // namespace

bool call_flag(const Call& call, std::string_view name) {
  const Argument* found = call.arguments.find(SIZE_MAX, name);
  return found != nullptr && found->constant && found->constant->is_boolean() && found->constant->boolean();
}

int band_mask(Call& call, int query, int key, bool causal, int64_t window) {
  Emitter& e = call.e;
  const int64_t rows = e.dims(query)[1];
  const int64_t columns = e.dims(key)[1];
  if (rows < 0 || columns < 0 || rows > kMaxBand || columns > kMaxBand || rows * columns > kMaxBand) {
    const auto range = [&](int x, int axis) {
      const int limit = e.reshape(e.shape_part(x, 1, 2), {});
      const int steps = e.builder().node("RANGE", {e.integer(0), limit, e.integer(1)}, e.name("range"), DType::kInt32);
      return e.expand_dims(e.expand_dims(steps, 0), axis);
    };
    const int r = range(query, 2);
    const int c = range(key, 1);
    int mask = causal ? e.compare("GREATER_EQUAL", r, c) : -1;
    if (window >= 0) {
      const int near = e.compare("LESS", e.unary("ABS", e.sub(r, c)), e.scalar_like(r, static_cast<double>(window)));
      mask = mask < 0 ? near : e.compare("LOGICAL_AND", mask, near);
    }
    return mask;
  }
  std::vector<std::byte> sees(static_cast<size_t>(rows * columns), std::byte{0});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const bool near = window < 0 || std::abs(r - c) < window;
      if (near && (!causal || c <= r)) sees[static_cast<size_t>(r * columns + c)] = std::byte{1};
    }
  }
  return e.builder().constant(e.name("band"), DType::kBool, {1, rows, columns}, std::span<const std::byte>(sees));
}

int masked_scores(Emitter& e, int scores, int mask) {
  const int real = e.cast(mask, DType::kFloat32);
  return e.add(scores, e.mul(e.sub(real, e.scalar(1.0F)), e.scalar(1.0e9F)));
}

Outputs attention(Call& call) {
  Emitter& e = call.e;
  const Tensors t = attention_tensors(call);
  const bool use_scale = call.config.boolean("use_scale", false);
  const std::string mode = call.config.text("score_mode", "dot");
  if (mode == "dot") {
    int scores = e.matmul(t.query, t.key, false, true);
    if (use_scale) scores = e.mul(scores, call.constant(0, "scale", {}));
    return finish(call, scores, t);
  }
  call.refuse_if(mode != "concat", fmt::format("computes scores by '{}'; dot and concat are known", printable(mode)));
  int sum = pairwise_sum(e, t.query, t.key);
  if (use_scale) sum = e.mul(sum, call.constant(0, "scale", {}));
  const int scores = e.reduce("SUM", e.unary("TANH", sum), {3}, false);
  return finish(call, e.mul(scores, call.constant(use_scale ? 1 : 0, "concat_score_weight", {})), t);
}

Outputs additive_attention(Call& call) {
  Emitter& e = call.e;
  const Tensors t = attention_tensors(call);
  int sum = e.unary("TANH", pairwise_sum(e, t.query, t.key));
  if (call.config.boolean("use_scale", true)) sum = e.mul(sum, call.constant(0, "scale", {e.dims(t.query).back()}));
  return finish(call, e.reduce("SUM", sum, {3}, false), t);
}

}  // namespace leadline::keras

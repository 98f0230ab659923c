// SPDX-License-Identifier: Apache-2.0
// Attention layers.
#include <cmath>

#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

/// The layer of one projection inside an attention layer.
struct Projection {
  Layer layer;
  Arguments none;
};

/// x [batch, time, features] through a kernel [features, heads, size] to [batch, heads, time, size].
int to_heads(Call& call, int x, const char* part, const char* name, int64_t heads, int64_t size, bool bias) {
  Emitter& e = call.e;
  const Projection p{call.part(part, name), {}};
  Call inner(call.importer, e, p.layer, p.none);
  const int64_t features = e.dims(x).back();
  const int weights =
      inner.constant(0, fmt::format("{}/kernel", name), {features, heads, size}, {1, 2, 0}, {heads * size, features});
  const int offset =
      bias ? inner.constant(1, fmt::format("{}/bias", name), {heads, size}, {}, {heads * size}) : ir::kAbsent;
  const int flat = e.fully_connected(x, weights, offset);
  const int split = e.reshape_like(flat, {{x, 0}, {x, 1}, {-1, heads}, {-1, size}});
  return e.transpose(split, {0, 2, 1, 3});
}

/// [batch, heads, time, size] back to [batch, time, features].
int from_heads(Call& call, int x, int like, const char* name, int64_t heads, int64_t size, bool bias) {
  Emitter& e = call.e;
  const Projection p{call.part("output_dense", name), {}};
  Call inner(call.importer, e, p.layer, p.none);
  const Shape& kernel = inner.weight(0, "kernel", {heads, size, -1}).shape;
  const int64_t features = kernel[2];
  const int weights =
      inner.constant(0, fmt::format("{}/kernel", name), {heads, size, features}, {2, 0, 1}, {features, heads * size});
  const int offset = bias ? inner.constant(1, fmt::format("{}/bias", name), {features}) : ir::kAbsent;
  const int merged = e.reshape_like(e.transpose(x, {0, 2, 1, 3}), {{like, 0}, {like, 1}, {-1, heads * size}});
  return e.fully_connected(merged, weights, offset);
}

/// A mask that lets each query see what is not after it, for known lengths.
int causal(Call& call, int query, int key) {
  Emitter& e = call.e;
  const int64_t rows = e.dims(query)[1];
  const int64_t columns = e.dims(key)[1];
  call.refuse_if(rows < 0 || columns < 0 || rows > 8192 || columns > 8192,
                 "uses a causal mask with lengths that are unknown or beyond 8192");
  std::vector<std::byte> sees(static_cast<size_t>(rows * columns), std::byte{0});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c <= r && c < columns; ++c) sees[static_cast<size_t>(r * columns + c)] = std::byte{1};
  }
  return e.builder().constant(e.name("causal"), DType::kBool, {1, 1, rows, columns}, std::span<const std::byte>(sees));
}

/// Scores where a bool mask is false become very small, as small as Keras makes them.
int masked_scores(Emitter& e, int scores, int mask) {
  const int real = e.cast(mask, DType::kFloat32);
  return e.add(scores, e.mul(e.sub(real, e.scalar(1.0F)), e.scalar(1.0e9F)));
}

bool flag(const Call& call, std::string_view name) {
  const Argument* found = call.arguments.find(SIZE_MAX, name);
  return found != nullptr && found->constant && found->constant->is_boolean() && found->constant->boolean();
}

struct Heads {
  int query;
  int value;
  int key;
};

/// The tensors of a call in whatever way they were given.
Heads tensors_of(Call& call) {
  const auto get = [&](size_t position, std::string_view name) {
    const Argument* found = call.arguments.find(position, name);
    return found != nullptr && found->tensor >= 0 ? found->tensor : -1;
  };
  Heads h{get(0, "query"), get(1, "value"), get(2, "key")};
  require(h.query >= 0 && h.value >= 0, kBad, "the layer needs a query and a value");
  if (h.key < 0) h.key = h.value;
  for (const char* mask : {"query_mask", "value_mask", "key_mask"}) {
    call.refuse_if(get(SIZE_MAX, mask) >= 0, "is called with a mask of a sequence; give an attention_mask instead");
  }
  call.refuse_if(flag(call, "return_attention_scores"), "returns its scores, which is not converted");
  return h;
}

int attend(Call& call, const Heads& raw, int query, int key, int value, int64_t key_size) {
  Emitter& e = call.e;
  int scores = e.matmul(e.mul(query, 1.0 / std::sqrt(static_cast<double>(key_size))), key, false, true);
  int mask = -1;
  const auto also = [&](int other) { mask = mask < 0 ? other : e.compare("LOGICAL_AND", mask, other); };
  const auto wide = [&](int steps, int axis) {  // [batch, time] -> [batch, 1, time, 1] or [batch, 1, 1, time]
    return e.expand_dims(e.expand_dims(steps, 1), axis);
  };
  const Argument* given = call.arguments.find(SIZE_MAX, "attention_mask");
  if (given != nullptr && given->tensor >= 0) {
    const int whole = e.cast(given->tensor, DType::kBool);
    also(e.rank(whole) == 3 ? e.expand_dims(whole, 1) : whole);
  }
  if (const int m = call.importer.mask_of(raw.query); m >= 0) also(wide(m, 3));
  if (const int m = call.importer.mask_of(raw.value); m >= 0) also(wide(m, 2));
  if (const int m = call.importer.mask_of(raw.key); m >= 0 && raw.key != raw.value) also(wide(m, 2));
  if (flag(call, "use_causal_mask")) also(causal(call, raw.query, raw.value));
  if (mask >= 0) scores = masked_scores(e, scores, mask);
  return e.matmul(e.softmax(scores), value);
}

}  // namespace

Outputs multi_head_attention(Call& call) {
  Emitter& e = call.e;
  const Heads h = tensors_of(call);
  call.refuse_if(call.config.boolean("use_gate", false), "has a gate, which is not converted");
  call.refuse_if(call.config.has("sliding_window"), "has a sliding window, which is not converted");
  call.refuse_if(e.rank(h.query) != 3 || e.rank(h.value) != 3 || e.rank(h.key) != 3,
                 "has inputs of a rank other than 3, which is not converted");
  if (const auto axes = call.config.find("attention_axes")) {
    call.refuse_if(axes->integers() != std::vector<int64_t>{1}, "attends over axes other than 1");
  }
  const int64_t heads = call.config.integer("num_heads");
  const int64_t key_size = call.config.integer("key_dim");
  const int64_t value_size = call.config.integer("value_dim", key_size);
  require(heads > 0 && key_size > 0 && value_size > 0 && heads < 65536 && key_size < 65536 && value_size < 65536, kBad,
          "{} heads of {} and {}", heads, key_size, value_size);
  const bool bias = call.config.boolean("use_bias", true);
  const int query = to_heads(call, h.query, "query_dense", "query", heads, key_size, bias);
  const int key = to_heads(call, h.key, "key_dense", "key", heads, key_size, bias);
  const int value = to_heads(call, h.value, "value_dense", "value", heads, value_size, bias);
  const int result = attend(call, h, query, key, value, key_size);
  const int y = from_heads(call, result, h.query, "attention_output", heads, value_size, bias);
  call.importer.set_mask(y, call.importer.mask_of(h.query));
  return {y};
}

/// Several heads of queries share one of keys and values.
Outputs grouped_query_attention(Call& call) {
  Emitter& e = call.e;
  const Heads h = tensors_of(call);
  call.refuse_if(call.config.boolean("use_gate", false), "has a gate, which is not converted");
  call.refuse_if(call.config.has("sliding_window"), "has a sliding window, which is not converted");
  const int64_t size = call.config.integer("head_dim");
  const int64_t heads = call.config.integer("num_query_heads");
  const int64_t groups = call.config.integer("num_key_value_heads");
  require(size > 0 && heads > 0 && groups > 0 && heads % groups == 0 && heads < 65536 && size < 65536, kBad,
          "{} heads in {} groups", heads, groups);
  const bool bias = call.config.boolean("use_bias", true);
  const int query = to_heads(call, h.query, "query_dense", "query", heads, size, bias);
  const auto repeated = [&](int x, int like) {  // [batch, groups, time, size] -> [batch, heads, time, size]
    if (groups == heads) return x;
    const int tiled = e.tile(e.expand_dims(x, 2), {1, 1, static_cast<int32_t>(heads / groups), 1, 1});
    return e.reshape_like(tiled, {{like, 0}, {-1, heads}, {like, 1}, {-1, size}});
  };
  const int key = repeated(to_heads(call, h.key, "key_dense", "key", groups, size, bias), h.key);
  const int value = repeated(to_heads(call, h.value, "value_dense", "value", groups, size, bias), h.value);
  const int result = attend(call, h, query, key, value, size);
  return {from_heads(call, result, h.query, "attention_output", heads, size, bias)};
}

namespace {

Outputs finish_attention(Call& call, int scores, const Heads& h) {
  Emitter& e = call.e;
  if (flag(call, "use_causal_mask")) {
    scores = masked_scores(e, scores, e.squeeze(causal(call, h.query, h.value), 0));
  }
  return {e.matmul(e.softmax(scores), h.value)};
}

Heads listed_tensors(Call& call) {
  call.refuse_if(flag(call, "return_attention_scores"), "returns its scores, which is not converted");
  call.refuse_if(call.inputs.size() > 3, "is called with masks, which are not converted");
  return {call.input(0), call.input(1), call.inputs.size() > 2 ? call.inputs[2] : call.input(1)};
}

}  // namespace

Outputs attention(Call& call) {
  Emitter& e = call.e;
  const Heads h = listed_tensors(call);
  const std::string mode = call.config.text("score_mode", "dot");
  call.refuse_if(mode != "dot", "computes scores by concatenation, which is not converted; use score_mode='dot'");
  int scores = e.matmul(h.query, h.key, false, true);
  if (call.config.boolean("use_scale", false)) scores = e.mul(scores, call.constant(0, "scale", {}));
  return finish_attention(call, scores, h);
}

Outputs additive_attention(Call& call) {
  Emitter& e = call.e;
  const Heads h = listed_tensors(call);
  int sum = e.unary("TANH", e.add(e.expand_dims(h.query, 2), e.expand_dims(h.key, 1)));
  if (call.config.boolean("use_scale", true)) sum = e.mul(sum, call.constant(0, "scale", {e.dims(h.query).back()}));
  return finish_attention(call, e.reduce("SUM", sum, {3}, false), h);
}

}  // namespace leadline::keras

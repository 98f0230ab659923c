// SPDX-License-Identifier: Apache-2.0
// MultiHeadAttention and GroupedQueryAttention.
#include "import/keras/attention.h"

#include <algorithm>
#include <cmath>

#include "core/join.h"
#include "import/einsum.h"
#include "import/keras/importer.h"

namespace leadline::keras {
namespace {

struct Heads {
  int query;
  int value;
  int key;
};

/// x [..., features] through a kernel [features, heads, size] to [..., heads, size].
int project(Call& call, int x, const char* part, const char* name, int64_t heads, int64_t size, bool bias) {
  Emitter& e = call.e;
  const Layer layer = call.part(part, name);
  const Arguments none;
  Call inner(call.importer, e, layer, none);
  const int64_t features = e.dims(x).back();
  const int weights =
      inner.constant(0, fmt::format("{}/kernel", name), {features, heads, size}, {1, 2, 0}, {heads * size, features});
  const int offset =
      bias ? inner.constant(1, fmt::format("{}/bias", name), {heads, size}, {}, {heads * size}) : ir::kAbsent;
  const int flat = e.fully_connected(x, weights, offset);
  std::vector<Emitter::Size> sizes;
  for (int axis = 0; axis + 1 < e.rank(x); ++axis) sizes.emplace_back(x, axis);
  sizes.insert(sizes.end(), {{-1, heads}, {-1, size}});
  return e.reshape_like(flat, sizes);
}

/// [batch, heads, time, size] for inputs of rank 3.
int to_heads(Call& call, int x, const char* part, const char* name, int64_t heads, int64_t size, bool bias) {
  return call.e.transpose(project(call, x, part, name, heads, size, bias), {0, 2, 1, 3});
}

/// [..., heads, size] to [..., features]. `like` has the sizes of the axes in front.
int from_heads(Call& call, int x, int like, int64_t heads, int64_t size, bool bias) {
  Emitter& e = call.e;
  const char* name = "attention_output";
  const Layer layer = call.part("output_dense", name);
  const Arguments none;
  Call inner(call.importer, e, layer, none);
  const Shape& shape = inner.weight(0, "kernel", Dims(inner.weight_rank(0), -1)).shape;
  require(shape.rank() >= 3, kBad, "the output's kernel has rank {}, expected 3 or more", shape.rank());
  Dims kernel = {heads, size};
  std::vector<int> order;
  int64_t features = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) {
    kernel.push_back(shape[axis]);
    order.push_back(axis);
    features *= shape[axis];
  }
  order.insert(order.end(), {0, 1});
  const int weights = inner.constant(0, fmt::format("{}/kernel", name), kernel, order, {features, heads * size});
  const Dims made(kernel.begin() + 2, kernel.end());
  const int offset = bias ? inner.constant(1, fmt::format("{}/bias", name), made, {}, {features}) : ir::kAbsent;
  std::vector<Emitter::Size> sizes;
  for (int axis = 0; axis + 1 < e.rank(like); ++axis) sizes.emplace_back(like, axis);
  std::vector<Emitter::Size> wide = sizes;
  sizes.emplace_back(-1, heads * size);
  const int y = e.fully_connected(e.reshape_like(x, sizes), weights, offset);
  if (made.size() == 1) return y;
  for (const int64_t n : made) wide.emplace_back(-1, n);
  return e.reshape_like(y, wide);
}

/// The tensors of a call in whatever way they were given.
Heads heads_of(Call& call) {
  const auto get = [&](size_t position, std::string_view name) {
    const Argument* found = call.arguments.find(position, name);
    return found != nullptr && found->tensor >= 0 ? found->tensor : -1;
  };
  Heads h{get(0, "query"), get(1, "value"), get(2, "key")};
  require(h.query >= 0 && h.value >= 0, kBad, "the layer needs a query and a value");
  if (h.key < 0) h.key = h.value;
  return h;
}

/// All masks of a call as one [batch or 1, heads or 1, query or 1, key or 1], or -1.
int whole_mask(Call& call, const Heads& h) {
  Emitter& e = call.e;
  int mask = -1;
  const auto also = [&](int other) { mask = mask < 0 ? other : e.compare("LOGICAL_AND", mask, other); };
  const auto steps = [&](std::string_view name, int tensor) {
    const Argument* given = call.arguments.find(SIZE_MAX, name);
    return given != nullptr && given->tensor >= 0 ? e.cast(given->tensor, DType::kBool) : call.importer.mask_of(tensor);
  };
  const auto wide = [&](int m, int axis) {  // [batch, time] -> [batch, 1, time, 1] or [batch, 1, 1, time]
    return e.expand_dims(e.expand_dims(m, 1), axis);
  };
  const Argument* given = call.arguments.find(SIZE_MAX, "attention_mask");
  if (given != nullptr && given->tensor >= 0) {
    int whole = e.cast(given->tensor, DType::kBool);
    if (e.rank(whole) == 2) whole = e.expand_dims(whole, 0);
    also(e.rank(whole) == 3 ? e.expand_dims(whole, 1) : whole);
  }
  // MultiHeadAttention looks at the mask that belongs to the query, not at the one it is called with.
  const bool own = call.layer.class_name == "MultiHeadAttention";
  if (const int m = own ? call.importer.mask_of(h.query) : steps("query_mask", h.query); m >= 0) also(wide(m, 3));
  if (const int m = steps("value_mask", h.value); m >= 0) also(wide(m, 2));
  if (const int m = steps("key_mask", h.key); m >= 0 && h.key != h.value) also(wide(m, 2));
  const int64_t window = call.config.integer("sliding_window", -1);
  const bool causal = call_flag(call, "use_causal_mask");
  if (causal || window >= 0) also(e.expand_dims(band_mask(call, h.query, h.value, causal, window), 0));
  return mask;
}

struct Attended {
  int values;
  int scores;
};

Attended attend(Call& call, const Heads& raw, int query, int key, int value, int64_t key_size) {
  Emitter& e = call.e;
  int scores = e.matmul(e.mul(query, 1.0 / std::sqrt(static_cast<double>(key_size))), key, false, true);
  const int mask = whole_mask(call, raw);
  if (mask >= 0) scores = masked_scores(e, scores, mask);
  scores = e.softmax(scores);
  const bool shown = call_flag(call, "return_attention_scores");
  if (mask >= 0 && shown) scores = e.mul(scores, e.cast(mask, DType::kFloat32));  // zeros where nothing may be seen
  return {e.matmul(scores, value), scores};
}

int gated(Call& call, int x, int query, int64_t heads, int64_t size, bool bias, bool use_gate) {
  if (!use_gate) return x;
  return call.e.mul(x, call.e.unary("LOGISTIC", project(call, query, "gate_dense", "gate", heads, size, bias)));
}

/// Attention over any axes: letters are axes, those that are attended over differ between query and key.
Attended attend_over(Call& call, const std::vector<int32_t>& axes, int query, int key, int value, int64_t key_size) {
  Emitter& e = call.e;
  std::string q;
  std::string k;
  std::string batch;
  std::string rows;
  std::string columns;
  for (int axis = 0; axis + 2 < e.rank(query); ++axis) {
    const auto own = static_cast<char>('a' + axis);
    const auto other = static_cast<char>('A' + axis);
    const bool attends = std::find(axes.begin(), axes.end(), axis) != axes.end();
    q += own;
    k += attends ? other : own;
    (attends ? rows : batch) += own;
    if (attends) columns += other;
  }
  const std::string sheet = batch + "0" + rows + columns;
  int scores = importing::einsum(call.e, q + "01," + k + "01->" + sheet,
                                 {e.mul(query, 1.0 / std::sqrt(static_cast<double>(key_size))), key});
  const int like = scores;
  if (columns.size() > 1) {
    std::vector<Emitter::Size> flat;
    const size_t front = sheet.size() - columns.size();
    int64_t product = 1;
    for (size_t i = 0; i < front; ++i) flat.emplace_back(like, static_cast<int64_t>(i));
    for (size_t i = front; i < sheet.size(); ++i) {
      call.refuse_if(e.dims(like)[i] < 0, "attends over axes of unknown size, which is not converted; fix their sizes");
      product *= e.dims(like)[i];
    }
    flat.emplace_back(-1, product);
    std::vector<Emitter::Size> whole;
    for (size_t i = 0; i < sheet.size(); ++i) whole.emplace_back(like, static_cast<int64_t>(i));
    scores = e.reshape_like(e.softmax(e.reshape_like(scores, flat)), whole);
  } else {
    scores = e.softmax(scores);
  }
  return {importing::einsum(call.e, sheet + "," + k + "01->" + q + "01", {scores, value}), scores};
}

Outputs results_of(Call& call, int y, const Attended& a, int query) {
  call.importer.set_mask(y, call.importer.mask_of(query));
  if (call_flag(call, "return_attention_scores")) return {y, a.scores};
  return {y};
}

}  // namespace

Outputs multi_head_attention(Call& call) {
  Emitter& e = call.e;
  const Heads h = heads_of(call);
  const int rank = e.rank(h.query);
  require(rank >= 3 && e.rank(h.value) == rank && e.rank(h.key) == rank, kBad,
          "query, value and key have ranks {}, {} and {}", rank, e.rank(h.value), e.rank(h.key));
  std::vector<int64_t> listed;
  if (const auto axes = call.config.find("attention_axes")) {
    listed = axes->integers();
  } else {
    for (int axis = 1; axis + 1 < rank; ++axis) listed.push_back(axis);
  }
  const std::vector<int32_t> axes = e.axes(h.query, listed);
  require(!axes.empty() && axes.back() + 1 < rank && axes.front() > 0, kBad,
          "the attention's axes are [{}], expected some between the batch and the last of {} axes", join(axes, ", "),
          rank);
  const int64_t heads = call.config.integer("num_heads");
  const int64_t key_size = call.config.integer("key_dim");
  const int64_t value_size = call.config.integer("value_dim", key_size);
  require(heads > 0 && key_size > 0 && value_size > 0 && heads < 65536 && key_size < 65536 && value_size < 65536, kBad,
          "{} heads of {} and {}", heads, key_size, value_size);
  const bool bias = call.config.boolean("use_bias", true);
  const bool use_gate = call.config.boolean("use_gate", false);
  const auto in_place = rank == 3 ? to_heads : project;
  const int query = in_place(call, h.query, "query_dense", "query", heads, key_size, bias);
  const int key = in_place(call, h.key, "key_dense", "key", heads, key_size, bias);
  const int value = in_place(call, h.value, "value_dense", "value", heads, value_size, bias);
  Attended a{};
  if (rank == 3) {
    a = attend(call, h, query, key, value, key_size);
    a.values = e.transpose(a.values, {0, 2, 1, 3});
  } else {
    for (const char* name : {"attention_mask", "query_mask", "value_mask", "key_mask"}) {
      const Argument* given = call.arguments.find(SIZE_MAX, name);
      call.refuse_if(given != nullptr && given->tensor >= 0,
                     "has a mask and inputs of more than 3 axes, which is not converted; attend over axis 1 of 3");
    }
    call.refuse_if(call_flag(call, "use_causal_mask") || call.config.has("sliding_window"),
                   "has a causal mask and inputs of more than 3 axes, which is not converted");
    a = attend_over(call, axes, query, key, value, key_size);
  }
  const int weighed = gated(call, a.values, h.query, heads, value_size, bias, use_gate);
  Outputs results = results_of(call, from_heads(call, weighed, h.query, heads, value_size, bias), a, h.query);
  // Keras 3 takes the masks from the tensors that were attended to: layers that are called with them later see none.
  if (!call.importer.is_keras_2()) {
    for (const int attended : {h.query, h.key, h.value}) call.importer.drop_mask(attended);
  }
  return results;
}

/// Several heads of queries share one of keys and values.
Outputs grouped_query_attention(Call& call) {
  Emitter& e = call.e;
  const Heads h = heads_of(call);
  const int64_t size = call.config.integer("head_dim");
  const int64_t heads = call.config.integer("num_query_heads");
  const int64_t groups = call.config.integer("num_key_value_heads");
  require(size > 0 && heads > 0 && groups > 0 && heads % groups == 0 && heads < 65536 && size < 65536, kBad,
          "{} heads in {} groups", heads, groups);
  require(e.rank(h.query) == 3 && e.rank(h.value) == 3 && e.rank(h.key) == 3, kBad, "the inputs need rank 3");
  const bool bias = call.config.boolean("use_bias", true);
  const int query = to_heads(call, h.query, "query_dense", "query", heads, size, bias);
  const auto repeated = [&](int x, int like) {  // [batch, groups, time, size] -> [batch, heads, time, size]
    if (groups == heads) return x;
    const int tiled = e.tile(e.expand_dims(x, 2), {1, 1, static_cast<int32_t>(heads / groups), 1, 1});
    return e.reshape_like(tiled, {{like, 0}, {-1, heads}, {like, 1}, {-1, size}});
  };
  const int key = repeated(to_heads(call, h.key, "key_dense", "key", groups, size, bias), h.key);
  const int value = repeated(to_heads(call, h.value, "value_dense", "value", groups, size, bias), h.value);
  Attended a = attend(call, h, query, key, value, size);
  a.values = e.transpose(a.values, {0, 2, 1, 3});
  const int weighed = gated(call, a.values, h.query, heads, size, bias, call.config.boolean("use_gate", false));
  return results_of(call, from_heads(call, weighed, h.query, heads, size, bias), a, h.query);
}

}  // namespace leadline::keras

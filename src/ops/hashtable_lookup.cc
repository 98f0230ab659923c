// SPDX-License-Identifier: Apache-2.0
// HASHTABLE_LOOKUP: rows of a table by sorted int32 keys; a missing key becomes zeros, or an empty string.
#include <algorithm>

#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace hashtable_lookup {
namespace {

enum Input { kLookup = 0, kKeys = 1, kValues = 2 };
enum Output { kResult = 0, kHits = 1 };

/// Row of `key` in `keys`, or -1. Halves as bsearch does, so that of equal keys the same one is found.
int64_t find_key(std::span<const int32_t> keys, int32_t key) {
  size_t low = 0;
  size_t high = keys.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (keys[middle] == key) return static_cast<int64_t>(middle);
    if (key < keys[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return -1;
}

void infer_hashtable_lookup(InferContext& c) {
  for (const int i : {kLookup, kKeys}) {
    c.require_input_type(i, {DType::kInt32});
    c.require(c.input(i).shape.rank() == 1, "input {} '{}' has shape {}, expected rank 1", i, c.input(i).value->name,
              c.input(i).shape.to_string());
  }
  c.require_output_type(kHits, {DType::kUInt8});
  const Operand& values = c.input(kValues);
  const int64_t lookups = c.input(kLookup).shape[0];
  require_movable(c, values, {.strings = true});
  require_same_type(c, values, c.output(kResult));
  const bool strings = values.dtype() == DType::kString;
  c.require(values.shape.rank() >= 1 && (!strings || values.shape.rank() == 1),
            "the values have shape {}, expected rank 1{}", values.shape.to_string(), strings ? "" : " or more");
  c.require(values.shape[0] == c.input(kKeys).shape[0], "there are {} keys, expected {}, one for each value",
            c.input(kKeys).shape[0], values.shape[0]);
  std::vector<int64_t> dims(values.shape.begin(), values.shape.end());
  dims[0] = lookups;
  c.set_output_shape(kResult, checked_shape(c, dims));
  c.set_output_shape(kHits, {lookups});
  if (!strings) return;
  for (const int i : {kLookup, kKeys, kValues}) {
    if (!c.known(i)) return c.defer();
  }
  const StringTensorReader texts = known_strings(c, kValues);
  int64_t characters = 0;
  const std::span<const int32_t> lookup = c.input(kLookup).values<int32_t>();
  for_items(lookups, 64, [&](int64_t i) {
    const int64_t row = find_key(c.input(kKeys).values<int32_t>(), lookup[static_cast<size_t>(i)]);
    if (row >= 0) characters += static_cast<int64_t>(texts[row].size());
  });
  set_string_bytes(c, kResult, lookups, characters);
}

void run_hashtable_lookup(RunContext& run) {
  const TensorView& lookup = run.input(kLookup);
  const TensorView& values = run.input(kValues);
  const TensorView& out = run.output(kResult);
  const std::span<const int32_t> keys(run.input(kKeys).as<int32_t>(), static_cast<size_t>(run.input(kKeys).elements()));
  const int64_t lookups = lookup.elements();
  auto* hits = run.output(kHits).mutable_as<uint8_t>();
  const auto find = [&](int64_t i) {
    const int64_t row = find_key(keys, lookup.as<int32_t>()[i]);
    hits[i] = row >= 0 ? 1 : 0;
    return row;
  };
  if (values.dtype == DType::kString) {
    const StringTensorReader texts = run_strings(run, values);
    StringTensorWriter writer({out.data, static_cast<size_t>(out.bytes)}, lookups);
    for_items(lookups, 64, [&](int64_t i) {
      const int64_t row = find(i);
      writer.add(row >= 0 ? texts[row] : std::string_view());
    });
    return;
  }
  const int64_t row_bytes = lookups > 0 ? out.bytes / lookups : 0;
  for_items(lookups, 64 + kByteCost * static_cast<double>(row_bytes), [&](int64_t i) {
    const int64_t row = find(i);
    if (row_bytes == 0) return;
    std::byte* to = out.data + i * row_bytes;
    if (row >= 0) {
      copy_bytes(to, values.data + row * row_bytes, row_bytes);
    } else {
      fill_bytes(to, std::byte{0}, row_bytes);
    }
  });
}

std::unique_ptr<Kernel> prepare_hashtable_lookup(PrepareContext&) { return make_kernel(run_hashtable_lookup); }

}  // namespace
}  // namespace hashtable_lookup

void register_hashtable_lookup(Registry& registry) {
  using namespace hashtable_lookup;
  registry.add({.id = op::kHashtableLookup,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .min_outputs = 2,
                .max_outputs = 2,
                .infer = infer_hashtable_lookup,
                .prepare = prepare_hashtable_lookup,
                .types = "any"});
}

}  // namespace leadline::ops

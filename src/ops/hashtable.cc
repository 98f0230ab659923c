// SPDX-License-Identifier: Apache-2.0
// HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND, HASHTABLE_SIZE: named tables that outlive a run, int64 to string or
// string to int64. The first import fills a table; later ones change nothing.
#include "ops/hashtable.h"

#include <cstring>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace hashtable {
namespace {

enum Input { kHandle = 0, kKeys = 1, kValues = 2, kDefault = 2 };

void check_handle(const OpContext& c) {
  c.require_input_type(kHandle, {DType::kResource});
  c.require(c.input(kHandle).shape == Shape{1}, "the table '{}' has shape {}, expected one resource",
            c.input(kHandle).value->name, c.input(kHandle).shape.to_string());
}

void check_types(const OpContext& c, const Operand& keys, const Operand& values) {
  if (is_table_type(keys.dtype(), values.dtype())) return;
  c.fail(ErrorCode::kUnsupported, "tables from {} to {} are not supported, only int64 to string and string to int64",
         dtype_name(keys.dtype()), dtype_name(values.dtype()));
}

/// The table that the first input names, while running.
int32_t table_id(const RunContext& run) {
  const int32_t id = *run.input(kHandle).as<int32_t>();
  run.require(run.host().resources().is_table(id), "its resource is not a table of this model");
  return id;
}

void check_table_types(const RunContext& run, int32_t id, DType key, DType value) {
  const Resources& resources = run.host().resources();
  run.require(resources.table_key(id) == key && resources.table_value(id) == value,
              "the table maps {} to {}, the tensors are {} and {}", dtype_name(resources.table_key(id)),
              dtype_name(resources.table_value(id)), dtype_name(key), dtype_name(value));
}

// HASHTABLE

void infer_table(InferContext& c) {
  const auto& a = c.attributes<HashtableAttributes>();
  c.require_output_type(0, {DType::kResource});
  if (!is_table_type(a.key_dtype, a.value_dtype)) {
    c.fail(ErrorCode::kUnsupported, "tables from {} to {} are not supported, only int64 to string and string to int64",
           dtype_name(a.key_dtype), dtype_name(a.value_dtype));
  }
  c.set_output_shape(0, {1});
}

std::unique_ptr<Kernel> prepare_table(PrepareContext& c) {
  const auto& a = c.attributes<HashtableAttributes>();
  const int32_t id = c.host().resources().table_handle(a.table_id, a.key_dtype, a.value_dtype);
  return make_kernel([id](RunContext& run) { std::memcpy(run.output(0).data, &id, sizeof(id)); });
}

// HASHTABLE_IMPORT

void infer_import(InferContext& c) {
  check_handle(c);
  check_types(c, c.input(kKeys), c.input(kValues));
  c.require(c.input(kKeys).shape == c.input(kValues).shape, "the keys have shape {}, expected that of the values, {}",
            c.input(kKeys).shape.to_string(), c.input(kValues).shape.to_string());
}

std::unique_ptr<Kernel> prepare_import(PrepareContext& c) {
  const Operand& keys = c.input(kKeys);
  const Operand& values = c.input(kValues);
  Resources& resources = c.host().resources();
  // What is known now is planned now; a table made of computed tensors takes its memory when they are imported.
  if (c.input(kHandle).known && keys.known && values.known) {
    const int32_t id = c.input(kHandle).values<int32_t>()[0];
    const auto bytes = LookupTable::memory_bytes(keys.shape.elements(), keys.bytes, values.bytes);
    c.require(bytes.has_value(), "a table of {} keys is too large", keys.shape.elements());
    if (resources.is_table(id)) resources.reserve(id, resources.table_value(id), keys.shape, *bytes);
  }
  return make_kernel([](RunContext& run) {
    const int32_t id = table_id(run);
    const TensorView& from = run.input(kKeys);
    const TensorView& to = run.input(kValues);
    check_table_types(run, id, from.dtype, to.dtype);
    run_strings(run, from.dtype == DType::kString ? from : to);
    run.host().resources().import_table(id, from, to);
  });
}

// HASHTABLE_FIND

/// The text for every int64 key in order: of its row, or the default.
template <typename Use>
void for_each_text(const LookupTable& table, std::span<const int64_t> keys, std::string_view fallback, const Use& use) {
  for_items(static_cast<int64_t>(keys.size()), 64, [&](int64_t i) {
    const int64_t row = table.find(keys[static_cast<size_t>(i)]);
    use(row >= 0 ? table.text(row) : fallback);
  });
}

void infer_find(InferContext& c) {
  check_handle(c);
  check_types(c, c.input(kKeys), c.output(0));
  require_same_type(c, c.input(kDefault), c.output(0));
  c.require(c.input(kDefault).shape.elements() >= 1, "there is no default value");
  c.set_output_shape(0, c.input(kKeys).shape);
  if (c.output(0).dtype() != DType::kString) return;
  for (const int i : {kHandle, kKeys, kDefault}) {
    if (!c.known(i)) return c.defer();
  }
  Resources& resources = c.host().resources();
  const int32_t id = c.input(kHandle).values<int32_t>()[0];
  c.require(resources.is_table(id), "its resource is not a table of this model");
  c.require(resources.table_key(id) == DType::kInt64, "the table has string keys, the key is int64");
  const LookupTable* table = resources.table(id);
  if (table == nullptr) return c.defer_for_state("nothing was imported into the table");
  int64_t characters = 0;
  for_each_text(*table, c.input(kKeys).values<int64_t>(), known_strings(c, kDefault)[0],
                [&](std::string_view text) { characters += static_cast<int64_t>(text.size()); });
  set_string_bytes(c, 0, c.input(kKeys).shape.elements(), characters);
}

void find_texts(const RunContext& run, const LookupTable& table) {
  const TensorView& keys = run.input(kKeys);
  const TensorView& out = run.output(0);
  const std::span<const int64_t> numbers(keys.as<int64_t>(), static_cast<size_t>(keys.elements()));
  const std::string_view fallback = run_strings(run, run.input(kDefault))[0];
  int64_t characters = 0;
  for_each_text(table, numbers, fallback,
                [&](std::string_view text) { characters += static_cast<int64_t>(text.size()); });
  run.require(string_tensor_bytes(keys.elements(), characters) == out.bytes,
              "the table was filled again since its strings were measured");
  StringTensorWriter writer({out.data, static_cast<size_t>(out.bytes)}, keys.elements());
  for_each_text(table, numbers, fallback, [&](std::string_view text) { writer.add(text); });
}

void run_find(RunContext& run) {
  const int32_t id = table_id(run);
  const TensorView& keys = run.input(kKeys);
  const TensorView& out = run.output(0);
  check_table_types(run, id, keys.dtype, out.dtype);
  const LookupTable* table = run.host().resources().table(id);
  run.require(table != nullptr, "nothing was imported into the table");
  if (out.dtype == DType::kString) return find_texts(run, *table);
  const StringTensorReader texts = run_strings(run, keys);
  const int64_t fallback = *run.input(kDefault).as<int64_t>();
  for_items(texts.size(), 64, [&](int64_t i) {
    const int64_t row = table->find(texts[i]);
    out.mutable_as<int64_t>()[i] = row >= 0 ? table->number(row) : fallback;
  });
}

std::unique_ptr<Kernel> prepare_find(PrepareContext&) { return make_kernel(run_find); }

// HASHTABLE_SIZE

void infer_size(InferContext& c) {
  check_handle(c);
  c.require_output_type(0, {DType::kInt64});
  c.set_output_shape(0, {1});
}

std::unique_ptr<Kernel> prepare_size(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const LookupTable* table = run.host().resources().table(table_id(run));
    *run.output(0).mutable_as<int64_t>() = table != nullptr ? table->size() : 0;
  });
}

}  // namespace
}  // namespace hashtable

void register_hashtable(Registry& registry) {
  using namespace hashtable;
  registry.add({.id = op::kHashtable,
                .options = builtin_options(107),
                .make_attributes = make_attributes<HashtableAttributes>,
                .infer = infer_table,
                .prepare = prepare_table,
                .types = "resource"});
  registry.add({.id = op::kHashtableFind,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = builtin_options(108),
                .infer = infer_find,
                .prepare = prepare_find,
                .pure = false,
                .types = "i64 to string, string to i64"});
  registry.add({.id = op::kHashtableImport,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .min_outputs = 0,
                .max_outputs = 0,
                .options = builtin_options(109),
                .infer = infer_import,
                .prepare = prepare_import,
                .pure = false,
                .types = "i64 to string, string to i64"});
  registry.add({.id = op::kHashtableSize,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(110),
                .infer = infer_size,
                .prepare = prepare_size,
                .pure = false,
                .types = "resource"});
}

}  // namespace leadline::ops

// SPDX-License-Identifier: Apache-2.0
// Tables of keys and values: those of the .tflite format where it has them (int64 to string, string to int64), filled
// once by a subgraph of its own; small ones of other types are compared key by key.
#include "import/saved_model/op_functions.h"
#include "ops/arg_min_max.h"
#include "ops/control_flow.h"
#include "ops/hashtable.h"

namespace leadline::saved_model {
namespace {

constexpr int64_t kMaxCompared = 4096;

/// The table whose handle is an input.
const FlatTable& table_of(const OpCall& call) {
  require(!call.node.inputs.empty(), kBad, "it has no table");
  const ValueRef& ref = call.node.inputs[0];
  const bool made_here = ref.kind == ValueRef::Kind::kNode;
  const int table = made_here ? call.function.nodes[static_cast<size_t>(ref.index)].table : -1;
  call.refuse_if(table < 0, "uses a table that changes, or that is not known before running");
  return call.importer.model().tables[static_cast<size_t>(table)];
}

/// Every key against all of the table: [..., 1] == [n].
int compare_keys(OpCall& call, const FlatTable& table) {
  Emitter& e = call.e;
  const int keys = call.importer.constant(table.keys);
  const int values = call.importer.constant(table.values);
  call.refuse_if(e.rank(keys) != 1 || e.rank(values) != 1 || e.dims(keys)[0] < 1 || e.dims(keys)[0] > kMaxCompared,
                 fmt::format("looks up in a table of more than {} keys, or none, which is only converted from int64 to "
                             "string and from string to int64",
                             kMaxCompared));
  const int x = call.in(1);
  const int same = e.compare("EQUAL", e.expand_dims(x, e.rank(x)), keys);
  const int32_t last = e.rank(same) - 1;
  ops::ArgMinMaxAttributes attributes;
  attributes.output_type = DType::kInt32;
  const int place = e.builder().node("ARG_MAX", {e.cast(same, DType::kFloat32), e.integer(last)}, call.name(),
                                     attributes, attributes.output_type);
  return e.select(e.reduce("REDUCE_ANY", same, {last}, false), e.gather(values, place, 0), call.in(2));
}

}  // namespace

bool is_format_table(const FlatTable& table) {
  return (table.key == TfType::kInt64 && table.value == TfType::kString) ||
         (table.key == TfType::kString && table.value == TfType::kInt64);
}

Outputs hash_table(OpCall& call) {
  require(call.node.table >= 0, kBad, "it is not a table of the model");
  const FlatTable& table = call.importer.model().tables[static_cast<size_t>(call.node.table)];
  call.refuse_if(table.keys < 0 || table.values < 0,
                 "is a table whose contents are not constant or not saved with the model; fill it with "
                 "tf.lookup.KeyValueTensorInitializer or TextFileInitializer");
  call.refuse_if(
      !is_format_table(table) && table.key == TfType::kString,
      fmt::format("is a table from string to {}, which is not converted; use int64", tf_type_name(table.value)));
  if (!is_format_table(table)) return {call.importer.constant(table.keys)};  // stands for it; nothing reads it
  return {call.importer.table_handle(call.node.table)};
}

Outputs table_find(OpCall& call) {
  const FlatTable& table = table_of(call);
  if (!is_format_table(table)) return {compare_keys(call, table)};
  const int keys = call.in(1);
  return {call.sized("HASHTABLE_FIND", {call.in(0), keys, call.in(2)}, call.e.dtype(call.in(2)), call.e.dims(keys),
                     nullptr, call.builder().samples(keys))};
}

Outputs table_size(OpCall& call) {
  const FlatTable& table = table_of(call);
  call.refuse_if(!is_format_table(table),
                 "is the size of a table, which is converted from int64 to string and from "
                 "string to int64 only");
  // One number, and TensorFlow's has no axes.
  return {call.e.reshape(call.builder().node("HASHTABLE_SIZE", {call.in()}, call.name(), DType::kInt64), {})};
}

int Importer::table_handle(int table) {
  const FlatTable& flat = model_.tables[static_cast<size_t>(table)];
  ops::HashtableAttributes attributes;
  attributes.table_id = table;
  attributes.key_dtype = *to_dtype(flat.key);
  attributes.value_dtype = *to_dtype(flat.value);
  return builder_.node("HASHTABLE", {}, emitter_.name("HashTable"),
                       std::make_shared<ops::HashtableAttributes>(attributes), DType::kResource);
}

bool Importer::keeps_state(const FlatFunction& function) const {
  for (const FlatNode& node : function.nodes) {
    if (node.variable >= 0) return true;
    if (node.table >= 0 && is_format_table(model_.tables[static_cast<size_t>(node.table)])) return true;
    for (const int inside : node.functions)
      if (keeps_state(model_.functions[static_cast<size_t>(inside)])) return true;
  }
  return false;
}

void Importer::fill_state() {
  if (fill_subgraph_ < 0) {
    const auto outer = std::exchange(constants_, {});
    fill_subgraph_ = builder_.begin_subgraph("NoOp");
    for (size_t i = 0; i < model_.tables.size(); ++i) {
      const FlatTable& table = model_.tables[i];
      if (!is_format_table(table) || table.keys < 0 || table.values < 0) continue;
      ops::NodeSpec import;
      import.op = "HASHTABLE_IMPORT";
      import.inputs = {table_handle(static_cast<int>(i)), constant(table.keys), constant(table.values)};
      builder_.add(std::move(import));
    }
    fill_variables();
    builder_.end_subgraph({});
    constants_ = outer;
  }
  ops::CallOnceAttributes attributes;
  attributes.init_subgraph = fill_subgraph_;
  ops::NodeSpec once;
  once.op = "CALL_ONCE";
  once.attributes = std::make_shared<ops::CallOnceAttributes>(attributes);
  builder_.add(std::move(once));
}

}  // namespace leadline::saved_model

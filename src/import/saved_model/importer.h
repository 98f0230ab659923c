// SPDX-License-Identifier: Apache-2.0
// Turns flat functions into subgraphs: keeps what each TensorFlow tensor became, and asks the table of ops
// (op_table.cc) how each node is expressed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/emitter.h"
#include "import/saved_model/saved_model.h"
#include "ops/graph_builder.h"

namespace leadline::saved_model {

using importing::Emitter;
using ops::Dims;

class Importer {
 public:
  /// With `allow_custom_ops`, ops without a conversion become custom ops.
  explicit Importer(const FlatModel& model, bool allow_custom_ops = false)
      : model_(model), emitter_(builder_), allow_custom_ops_(allow_custom_ops) {}

  std::shared_ptr<ir::Graph> import();

  const FlatModel& model() const { return model_; }
  /// A function written out in the open subgraph. Returns its outputs.
  std::vector<int> call(const FlatFunction& function, const std::vector<int>& inputs);

  /// What the outputs of a body are, seen from outside.
  struct Body {
    int subgraph = 0;
    std::vector<Dims> dims;
    std::vector<DType> dtypes;
    std::vector<ops::SizeSamples> samples;
    std::vector<std::optional<DType>> blank;  // types of the elements of blank lists
  };
  /// A subgraph with inputs like `arguments`, values of the open subgraph; `dims` are their sizes inside.
  /// `emit` returns the outputs.
  template <typename Emit>
  Body body(const std::string& name, const std::vector<int>& arguments, const std::vector<Dims>& dims, Emit emit);
  /// A constant of the model in the open subgraph.
  int constant(int index);
  /// The handle of a table of the model, in the open subgraph.
  int table_handle(int table);
  /// Makes the body of a loop or branch once more: throws when that happens too often.
  void count_trial();

  /// A list of tensors is one tensor [length, ...]. A blank list has no elements of known shape yet: its value, of the
  /// open subgraph, is its length. Returns the type of its elements, or nothing when `value` is not a blank list.
  std::optional<DType> blank_list(int value) const;
  void mark_blank(int value, DType element) { blank_lists_[value] = element; }

 private:
  void run_node(const FlatFunction& function, size_t index, std::vector<std::vector<int>>& made,
                const std::vector<int>& inputs);
  int value_of(const ValueRef& ref, const std::vector<std::vector<int>>& made, const std::vector<int>& inputs);
  bool uses_tables(const FlatFunction& function) const;
  /// The node that fills all tables before anything is looked up.
  void fill_tables();
  ops::SignatureNames signature(const std::string& key, const FlatFunction& function, ops::SignatureNames& outputs);

  const FlatModel& model_;
  ops::GraphBuilder builder_;
  Emitter emitter_;
  std::unordered_map<int, int> constants_;      // of the open subgraph: number in the model, value
  std::unordered_map<int, DType> blank_lists_;  // of the open subgraph
  int depth_ = 0;
  int trials_ = 0;
  int fill_subgraph_ = -1;  // fills tables, once there is one
  bool allow_custom_ops_ = false;
  bool located_ = false;  // the error on its way says where it happened
};

template <typename Emit>
Importer::Body Importer::body(const std::string& name, const std::vector<int>& arguments, const std::vector<Dims>& dims,
                              Emit emit) {
  std::vector<ops::SizeSamples> samples;
  std::vector<DType> types;
  for (const int v : arguments) {
    samples.push_back(builder_.samples(v));
    types.push_back(builder_.value(v).dtype);
  }
  const std::unordered_map<int, int> outer = std::exchange(constants_, {});
  const std::unordered_map<int, DType> outer_blank = std::exchange(blank_lists_, {});
  Body result;
  result.subgraph = builder_.begin_subgraph(name);
  std::vector<int> inputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    inputs.push_back(builder_.input(fmt::format("arg{}", i), types[i], dims[i], samples[i]));
    const auto blank = outer_blank.find(arguments[i]);
    if (blank != outer_blank.end()) mark_blank(inputs.back(), blank->second);
  }
  const std::vector<int> outputs = emit(inputs);
  for (const int v : outputs) {
    result.dims.push_back(builder_.dims(v));
    result.dtypes.push_back(builder_.value(v).dtype);
    result.samples.push_back(builder_.samples(v));
    result.blank.push_back(blank_list(v));
  }
  builder_.end_subgraph(outputs);
  constants_ = outer;
  blank_lists_ = outer_blank;
  return result;
}

}  // namespace leadline::saved_model

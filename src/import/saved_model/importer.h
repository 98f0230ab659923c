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
#include "import/saved_model/import.h"
#include "import/saved_model/saved_model.h"
#include "ops/graph_builder.h"

namespace leadline::saved_model {

using importing::Emitter;
using ops::Dims;

class OpCall;

class Importer {
 public:
  explicit Importer(const FlatModel& model, ForeignOps foreign = {}, PlainInterface interface = {},
                    ops::SizeChoices sizes = {})
      : model_(model), interface_(std::move(interface)), emitter_(builder_), foreign_(foreign) {
    builder_.choose_sizes(std::move(sizes));
  }

  std::shared_ptr<ir::Graph> import();

  const FlatModel& model() const { return model_; }
  /// Which sizes a failed import() stumbled over.
  const std::optional<ops::SizeConflict>& conflict() const { return builder_.conflict(); }
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
  /// The handle of a table of the model, in the open subgraph; and of a variable, by the number of its saved value.
  int table_handle(int table);
  int variable_handle(int constant);
  /// Makes the body of a loop or branch once more: throws when that happens too often.
  void count_trial();

  /// A list of tensors is one tensor [length, ...]. A blank list has no elements of known shape yet: its value, of the
  /// open subgraph, is its length. Returns the type of its elements, or nothing when `value` is not a blank list.
  std::optional<DType> blank_list(int value) const;
  void mark_blank(int value, DType element) { blank_lists_[value] = element; }

  /// A complex tensor that is kept as its real and its imaginary part. It has a number below kAbsent, which no value of
  /// a graph has, and is good in the open subgraph alone.
  int make_pair(int real, int imaginary);
  bool is_pair(int value) const { return value <= kFirstPair; }
  std::pair<int, int> pair(int value) const { return pairs_[static_cast<size_t>(kFirstPair - value)]; }

 private:
  void run_node(const FlatFunction& function, size_t index, std::vector<std::vector<int>>& made,
                const std::vector<int>& inputs);
  int value_of(const ValueRef& ref, const std::vector<std::vector<int>>& made, const std::vector<int>& inputs);
  /// Whether it has tables or variables, which have to be filled.
  bool keeps_state(const FlatFunction& function) const;
  /// The node that fills all tables and variables before anything reads them.
  void fill_state();
  void fill_variables();
  ops::SignatureNames signature(const std::string& key, const FlatFunction& function, ops::SignatureNames& outputs);
  void name_results(const FlatNode& node, const std::vector<int>& results, int first_new);
  void name_outputs(const FlatFunction& function, const std::vector<int>& values);

  static constexpr int kFirstPair = -1000;
  std::vector<int> emit(OpCall& call);
  std::vector<int> emit_or_keep(OpCall& call);

  const FlatModel& model_;
  PlainInterface interface_;
  ops::GraphBuilder builder_;
  Emitter emitter_;
  std::unordered_map<int, int> constants_;      // of the open subgraph: number in the model, value
  std::unordered_map<int, DType> blank_lists_;  // of the open subgraph
  std::vector<std::pair<int, int>> pairs_;      // of complex tensors
  int depth_ = 0;
  int trials_ = 0;
  int fill_subgraph_ = -1;  // fills tables and variables, once there is one
  ForeignOps foreign_;
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

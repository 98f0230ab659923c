// SPDX-License-Identifier: Apache-2.0
// Turns flat functions into subgraphs: keeps what each TensorFlow tensor became, and asks the table of ops
// (op_table.cc) how each node is expressed.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/keras/emitter.h"
#include "import/saved_model/saved_model.h"
#include "ops/graph_builder.h"

namespace leadline::saved_model {

using keras::Emitter;
using ops::Dims;

class Importer {
 public:
  explicit Importer(const FlatModel& model) : model_(model), emitter_(builder_) {}

  std::shared_ptr<ir::Graph> import();

  const FlatModel& model() const { return model_; }
  /// A function written out in the open subgraph. Gives its outputs.
  std::vector<int> call(const FlatFunction& function, const std::vector<int>& inputs);

  /// What the outputs of a body are, seen from outside.
  struct Body {
    int subgraph = 0;
    std::vector<Dims> dims;
    std::vector<DType> dtypes;
  };
  /// A subgraph with inputs like `arguments`, values of the open subgraph; `dims` are their sizes inside.
  /// `emit` gives the outputs.
  template <typename Emit>
  Body body(const std::string& name, const std::vector<int>& arguments, const std::vector<Dims>& dims, Emit emit);

 private:
  void run_node(const FlatFunction& function, size_t index, std::vector<std::vector<int>>& made,
                const std::vector<int>& inputs);
  int value_of(const ValueRef& ref, const std::vector<std::vector<int>>& made, const std::vector<int>& inputs);
  int constant(int index);
  ops::SignatureNames signature(const std::string& key, const FlatFunction& function, ops::SignatureNames& outputs);

  const FlatModel& model_;
  ops::GraphBuilder builder_;
  Emitter emitter_;
  std::unordered_map<int, int> constants_;  // of the open subgraph: number in the model, value
  int depth_ = 0;
  bool located_ = false;  // the error on its way says where it happened
};

template <typename Emit>
Importer::Body Importer::body(const std::string& name, const std::vector<int>& arguments, const std::vector<Dims>& dims,
                              Emit emit) {
  std::vector<ops::GraphBuilder::Samples> samples;
  std::vector<DType> types;
  for (const int v : arguments) {
    samples.push_back(builder_.samples(v));
    types.push_back(builder_.value(v).dtype);
  }
  const std::unordered_map<int, int> outer = std::exchange(constants_, {});
  Body result;
  result.subgraph = builder_.begin_subgraph(name);
  std::vector<int> inputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    inputs.push_back(builder_.input(fmt::format("arg{}", i), types[i], dims[i], samples[i]));
  }
  const std::vector<int> outputs = emit(inputs);
  for (const int v : outputs) {
    result.dims.push_back(builder_.dims(v));
    result.dtypes.push_back(builder_.value(v).dtype);
  }
  builder_.end_subgraph(outputs);
  constants_ = outer;
  return result;
}

}  // namespace leadline::saved_model

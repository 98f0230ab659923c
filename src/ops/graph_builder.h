// SPDX-License-Identifier: Apache-2.0
// Builds graphs in code: for importers, passes and tests.
//
//   GraphBuilder b;
//   const int x = b.input("x", DType::kFloat32, {-1, 4});  // any number of rows
//   const int y = b.node("RELU", {x}, "y");
//   auto graph = b.finish({y});
//
// Unknown dimensions: every node is inferred with several sizes for each of them (ops/size_samples.h). A dimension that
// comes out different is unknown (-1 in dims()); the file says 1 in its shape and -1 in its signature. A check that
// fails for some of the sizes rules those out, as the model would when it runs; it is an error when it leaves no two
// sizes for a dimension.
#pragma once

#include <array>
#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "ir/graph.h"
#include "ops/inference.h"
#include "ops/registry.h"
#include "ops/size_samples.h"
#include "ops/size_search.h"

namespace leadline::ops {

struct NodeOutput {
  std::string name;
  DType dtype = DType::kFloat32;
  Quantization quantization = {};
  std::optional<Dims> dims = {};            // taken only when they depend on data; without them such a node is refused
  std::optional<SizeSamples> samples = {};  // to take with them where dims has -1
};

/// The oldest version of the op that LiteRT knows. It runs every version with the newest kernel; of one op it has
/// forgotten the first.
int oldest_version(const ir::OpId& op);

struct NodeSpec {
  std::string op;  // builtin or custom
  std::vector<int> inputs;
  std::vector<NodeOutput> outputs;
  std::shared_ptr<const ir::Attributes> attributes = nullptr;  // null: the op's defaults
  int version = 0;                                             // 0: oldest_version()
  std::vector<std::byte> custom_options = {};
  bool custom = false;  // a custom op, even when a builtin one is called the same
};

/// Names of a signature, each with a value of subgraph 0.
using SignatureNames = std::vector<std::pair<std::string, int>>;

/// Subgraphs that grow node by node. Every node is validated and its output shapes inferred as it is added; results
/// that are small and the same in every run become constants, and their node vanishes. Calls that throw change nothing.
class GraphBuilder {
 public:
  GraphBuilder();

  /// Sizes to take for unknown ones of inputs that are added from now on, instead of the usual ones.
  void choose_sizes(SizeChoices choices) { choices_ = std::move(choices); }
  /// Why the last call failed, when the sizes of inputs may be the reason.
  const std::optional<SizeConflict>& conflict() const { return conflict_; }

  /// A graph input of the current subgraph.
  int input(const std::string& name, DType dtype, const Dims& dims, Quantization quantization = {});
  /// The same with an unknown number of axes.
  int unranked_input(const std::string& name, DType dtype);
  /// The sizes that stand for unknown ones of a value while shapes are inferred.
  SizeSamples samples(int index);
  /// An input of a body that takes a value with these samples of the subgraph around it. Where `dims` has -1 they agree
  /// with those of other inputs as the values do.
  int input(const std::string& name, DType dtype, const Dims& dims, const SizeSamples& samples);
  /// State that is zero before the first run and kept between runs.
  int variable(const std::string& name, DType dtype, const Dims& dims, Quantization quantization = {});
  /// A constant; the bytes are copied.
  int constant(const std::string& name, DType dtype, const Dims& dims, std::span<const std::byte> bytes,
               Quantization quantization = {});
  template <typename T>
  int constant(const std::string& name, DType dtype, const Dims& dims, const std::vector<T>& values,
               Quantization quantization = {}) {
    return constant(name, dtype, dims, std::as_bytes(std::span(values)), std::move(quantization));
  }
  /// A constant that is read when the file is written; small ones are read now.
  int constant(const std::string& name, DType dtype, const Dims& dims, std::shared_ptr<const ir::ConstantSource> source,
               Quantization quantization = {});

  /// Adds a node and returns its outputs. Throws what the op's validation finds.
  std::vector<int> add(NodeSpec spec);
  /// Adds op `op` with one output called `name`, of the type of its first input unless `dtype` says otherwise.
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name);
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name, DType dtype);
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name,
           std::shared_ptr<const ir::Attributes> attributes, DType dtype, Quantization quantization = {});
  template <std::derived_from<ir::Attributes> A>
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name, A attributes) {
    return node(op, inputs, name, std::make_shared<A>(std::move(attributes)), first_type(inputs));
  }
  template <std::derived_from<ir::Attributes> A>
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name, A attributes, DType dtype) {
    return node(op, inputs, name, std::make_shared<A>(std::move(attributes)), dtype);
  }

  /// Opens a subgraph for a body of WHILE or IF; calls go to it until end_subgraph(). Returns its index. Bodies nest.
  int begin_subgraph(const std::string& name);
  void end_subgraph(const std::vector<int>& outputs);
  /// Takes back the subgraphs from number `first` on, which must be closed.
  void drop_subgraphs(int first);

  /// Another name for a value of the current subgraph; with a number where it is taken.
  void rename(int index, const std::string& name);

  /// Values of the current subgraph.
  int value_count() const { return static_cast<int>(subgraph().values.size()); }
  bool is_input(int index) const;
  const ir::Value& value(int index) const { return subgraph().value(index); }
  /// Whether the number of its axes is known.
  bool has_rank(int index) const;
  /// Its sizes, -1 where they are not known; throws when the rank is unknown.
  Dims dims(int index) const;
  /// The bytes of a constant that is in memory (given or computed), or nothing.
  std::optional<std::span<const std::byte>> known(int index) const;
  /// The same as numbers, for int32 and int64.
  std::optional<std::vector<int64_t>> known_ints(int index) const;

  /// While it lives, errors begin with what it names; scopes nest as "outer/inner".
  class [[nodiscard]] Scope {
   public:
    Scope(GraphBuilder& builder, std::string what) : builder_(builder) { builder_.scopes_.push_back(std::move(what)); }
    ~Scope() { builder_.scopes_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GraphBuilder& builder_;
  };
  Scope scope(std::string what) { return Scope(*this, std::move(what)); }

  /// The verified graph, with signature serving_default whose names are the tensors'. The builder is done afterwards.
  std::shared_ptr<ir::Graph> finish(const std::vector<int>& outputs);
  /// The same with other names in the signature; `inputs` may be given in any order.
  std::shared_ptr<ir::Graph> finish(const SignatureNames& inputs, const SignatureNames& outputs,
                                    const std::string& key = "serving_default");

 private:
  struct State {  // of one subgraph
    std::array<std::unique_ptr<Inference>, kSizeSamples> samples;
    std::array<bool, kSizeSamples> possible = {};     // samples whose sizes no check has ruled out
    bool differ = false;                              // until a size is unknown, the first sample stands for all
    bool is_body = false;                             // its inputs have the sizes of values elsewhere
    bool unranked = false;                            // samples may have different ranks
    std::vector<std::pair<int, int>> unknown_inputs;  // value and axis
    struct Free {
      int value = 0;
      int axis = 0;
      int place = 0;  // of the value among choices
    };
    std::vector<Free> free;  // sizes that depend on data
    std::unordered_map<std::string, int> names;
  };

  ir::Subgraph& subgraph() { return graph_->subgraphs[static_cast<size_t>(current_.back())]; }
  const ir::Subgraph& subgraph() const { return graph_->subgraphs[static_cast<size_t>(current_.back())]; }
  State& state() { return states_[static_cast<size_t>(current_.back())]; }
  DType first_type(const std::vector<int>& inputs) const;
  void check_index(int value) const;
  static void check_dims(const std::string& name, const Dims& dims, bool may_be_unknown);
  void new_subgraph(const std::string& name);
  std::string unique_name(const std::string& name);
  int add_value(const std::string& name, DType dtype, Quantization quantization);
  int add_input(const std::string& name, DType dtype, const Dims& dims, Quantization quantization, size_t apart);
  void set_dims(int index, const Dims& dims);
  void make_constant(int index, std::vector<std::byte> bytes);
  std::vector<size_t> samples_in_use();
  void tell_samples_apart(const Dims& dims);
  void set_sample_shapes(int index, const SizeSamples& shapes);
  bool infer_sample(const NodeSpec& spec, int node, size_t sample);
  void note_free_sizes(const NodeSpec& spec, int node);
  void infer_last_node(const NodeSpec& spec);
  /// The samples in `failed` do not count from now on; throws `error` when no two sizes are left for an input.
  void rule_out(const std::vector<size_t>& failed, const std::exception_ptr& error);
  void note_conflict();
  std::optional<SampledSize> products(int index);
  void settle_shape(int index);
  bool is_threshold(const ir::Node& node) const;
  bool fold_last_node();
  void roll_back(size_t values, size_t nodes);
  /// Calls body(); the scopes stand before what it throws.
  template <typename Body>
  auto in_context(Body&& body) {
    if (scopes_.empty()) return body();
    try {
      return body();
    } catch (const Error& error) {
      throw_in_context(error);
    }
  }
  [[noreturn]] void throw_in_context(const Error& error) const;

  std::shared_ptr<ir::Graph> graph_;
  std::vector<State> states_;
  std::vector<int> current_;  // subgraphs that are open, the innermost last
  std::vector<std::string> scopes_;
  SizeChoices choices_;
  std::optional<SizeConflict> conflict_;
};

}  // namespace leadline::ops

// SPDX-License-Identifier: Apache-2.0
// What an op is: one row that says how to validate it, infer its shapes and run it.
//
// Life of a node:
//   infer()   validates types, shapes, attributes and known operands, and sets the output shapes. It is
//             called when all input shapes are known. If it needs the data of an input that is computed at
//             run time it calls defer(), and is called again while running, when every input has data.
//   prepare() chooses the kernel for these shapes, computes its parameters, and asks for scratch and packed
//             memory. It allocates nothing that grows with the model.
//   Kernel::pack() fills the packed memory once; Kernel::run() computes the outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/stored_function.h"
#include "core/tensor.h"
#include "core/thread_pool.h"
#include "ir/attributes.h"
#include "ir/graph.h"
#include "ops/op_ids.h"

namespace leadline::ops {

class Resources;
class UserNode;
struct ConvWindow;
struct OpDef;

/// An input or output before the run. `data` is set when the contents are known already: constants,
/// results folded while planning, and every input while a deferred node is inferred at run time.
struct Operand {
  const ir::Value* value = nullptr;  // null: absent optional operand
  Shape shape;
  const std::byte* data = nullptr;
  int64_t bytes = 0;   // of `data`
  bool known = false;  // data is valid (a known empty tensor may have null data)

  bool present() const noexcept { return value != nullptr; }
  DType dtype() const noexcept { return value->dtype; }
  const Quantization& quantization() const noexcept { return value->quantization; }
  template <typename T>
  std::span<const T> values() const noexcept {
    return {reinterpret_cast<const T*>(data), static_cast<size_t>(bytes) / sizeof(T)};
  }
};

/// A subgraph that a control-flow node calls, one instance per calling node. Not thread-safe.
class Callee {
 public:
  virtual ~Callee() = default;
  /// Plans for inputs of these shapes. True when the output shapes do not depend on data: then output_shape() and
  /// workspace_bytes() are valid. Cheap when the shapes are those of the last call.
  virtual bool plan(std::span<const Shape> inputs) = 0;
  virtual int output_count() const = 0;
  virtual const Shape& output_shape(int i) const = 0;
  /// Memory that run() needs from its caller after a successful plan().
  virtual int64_t workspace_bytes() const = 0;
  /// Copies the inputs, runs, and returns views of the outputs. They stay valid until the next run() or plan(), and do
  /// not overlap the copied inputs, so they may be the next run's inputs. Without a workspace the callee takes memory
  /// of its own from the budget; it must, when plan() returned false.
  virtual std::span<const TensorView> run(std::span<const TensorView> inputs, std::byte* workspace) = 0;
  /// The outputs of the last run(); empty after forget_results() or plan() for other shapes.
  virtual std::span<const TensorView> results() const = 0;
  virtual void forget_results() = 0;
  /// Number of inputs the subgraph has, and the type of each; the same for outputs.
  virtual int input_count() const = 0;
  virtual DType input_type(int i) const = 0;
  virtual DType output_type(int i) const = 0;
};

/// What control-flow and resource ops may ask of the code that runs them.
class Host {
 public:
  virtual ~Host() = default;
  /// The instance of `subgraph` that belongs to node `node_index`; made on first use.
  virtual Callee& callee(int node_index, int subgraph) = 0;
  /// What subgraph `index` of the model says: for ops that recognise the computation they are given.
  virtual const ir::Subgraph& subgraph(int index) const = 0;
  virtual Resources& resources() = 0;
  /// Throws Error(kCancelled) when the run used up its rounds. Call once per loop round.
  virtual void checkpoint() = 0;

  /// The row that stands for a node: of an op a user registered, else of the registry. Null: unknown.
  virtual const OpDef* find(const ir::Node& node) const;
  /// The object of a node whose op a user registered; made on first use.
  virtual UserNode& user_node(int node_index);
  /// Keeps all memory that kernels of the running interpreter see alive for as long as the result. With `leave` the
  /// interpreter takes other memory from its next call on.
  virtual std::shared_ptr<const void> hold_memory(bool leave);
};

/// What infer and prepare know about the node.
class OpContext {
 public:
  /// `node` stands for node `node_index` of the subgraph where passes changed it; null: they did not.
  OpContext(const ir::Subgraph& subgraph, int node_index, std::span<const Operand> inputs, std::span<Operand> outputs,
            Host& host, const ir::Node* node = nullptr)
      : subgraph_(subgraph),
        node_index_(node_index),
        node_(node != nullptr ? *node : subgraph.nodes[static_cast<size_t>(node_index)]),
        inputs_(inputs),
        outputs_(outputs),
        host_(host) {}

  const ir::Node& node() const { return node_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  /// True when input `i` is given and not marked absent.
  bool has_input(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)].present(); }
  const Operand& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const Operand& output(int i) const { return outputs_[static_cast<size_t>(i)]; }
  const ir::Value& intermediate(int i) const { return subgraph_.value(node().intermediates[static_cast<size_t>(i)]); }
  /// Another tensor of the subgraph by its index, such as the scales of a tensor that is quantized in blocks.
  const ir::Value& value(int index) const { return subgraph_.value(index); }
  /// The node's attributes; A is the struct of the op's row.
  template <typename A>
  const A& attributes() const {
    return ir::attributes_as<A>(node());
  }
  const ir::Subgraph& subgraph() const { return subgraph_; }
  int node_index() const { return node_index_; }
  Host& host() const { return host_; }
  Callee& callee(int subgraph) const { return host_.callee(node_index_, subgraph); }

  /// Throws with "CONV_2D #17 'block3/conv': " in front.
  template <typename... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    throw_error(code, format, fmt::make_format_args(args...));
  }
  /// Throws Error(kInvalidModel) unless `ok`.
  template <typename... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok) [[unlikely]]
      throw_error(ErrorCode::kInvalidModel, format, fmt::make_format_args(args...));
  }
  /// Throws Error(kUnsupported) that names the types unless input/output `i` has one of `allowed`.
  void require_input_type(int i, std::initializer_list<DType> allowed) const;
  void require_output_type(int i, std::initializer_list<DType> allowed) const;
  /// Throws unless input `i` has this type and is quantized per tensor (scale and zero point present).
  void require_quantized(const Operand& operand, const char* what) const;

 protected:
  [[noreturn]] void throw_error(ErrorCode code, fmt::string_view format, fmt::format_args args) const;

  const ir::Subgraph& subgraph_;
  int node_index_;
  const ir::Node& node_;
  std::span<const Operand> inputs_;
  std::span<Operand> outputs_;
  Host& host_;
};

class InferContext : public OpContext {
 public:
  using OpContext::OpContext;
  void set_output_shape(int i, const Shape& shape);
  /// Bytes of a string output (a TFLite string buffer); needs deferral to run time as a rule.
  void set_output_bytes(int i, int64_t bytes);
  /// The output shapes need data that is not known yet; infer is called again at run time. Legal only
  /// while some input is not known.
  void defer() { deferred_ = true; }
  /// The same for state that nodes before this one make: legal also with all inputs known. Should they not make it, the
  /// run fails with `missing`.
  void defer_for_state(std::string missing) {
    deferred_ = true;
    missing_ = std::move(missing);
  }
  /// True when the data of input `i` can be read now.
  bool known(int i) const { return input(i).known; }

  bool deferred() const { return deferred_; }
  const std::string& missing() const { return missing_; }

 private:
  bool deferred_ = false;
  std::string missing_;
};

/// A tensor whose bytes are a contiguous part of another's: they may be the same memory.
struct TensorPart {
  bool joins = false;  // an input inside output 0; else an output inside an input
  int inner = 0;       // number of the input (joins) or output that is the part
  int outer = 0;       // of the output (joins: 0) or input that has it
  int64_t offset = 0;  // in bytes
};

class PrepareContext : public OpContext {
 public:
  PrepareContext(const OpContext& context, int threads, bool winograd = true)
      : OpContext(context), threads_(threads), winograd_(winograd) {}
  /// Threads the kernel will have.
  int threads() const { return threads_; }
  /// Float convolutions may be computed by Winograd's method: see InterpreterOptions.
  bool winograd() const { return winograd_; }
  /// Asks for workspace that is the kernel's alone while it runs. Contents are not kept between runs.
  void request_scratch(int64_t bytes) { scratch_bytes_ = bytes; }
  /// Asks for memory whose contents are kept between runs, zero at first: see RunContext::persistent().
  void request_persistent(int64_t bytes) { persistent_bytes_ = bytes; }
  /// Asks for memory that pack() fills once and that is kept. `layout` identifies one of several packings of a node.
  void request_packed(int64_t bytes, std::string_view layout) {
    packed_bytes_ = bytes;
    packed_layout_ = layout;
  }
  /// The kernel reads constant input `i` only from its packed form: its file pages may be dropped.
  void replaces_input(int i) { replaced_inputs_.push_back(i); }

  /// Input `i` becomes the bytes of output 0 from `offset` on, as it is: it may be computed there right away. The
  /// kernel copies it only when it is elsewhere.
  void input_is_part_of_output(int i, int64_t offset) { parts_.push_back({true, i, 0, offset}); }
  /// Output `i` is the bytes of input `from` from `offset` on. The kernel copies them only when it is elsewhere.
  void output_is_slice_of(int i, int from, int64_t offset) { parts_.push_back({false, i, from, offset}); }

  int64_t scratch_bytes() const { return scratch_bytes_; }
  int64_t persistent_bytes() const { return persistent_bytes_; }
  int64_t packed_bytes() const { return packed_bytes_; }
  const std::string& packed_layout() const { return packed_layout_; }
  const std::vector<int>& replaced_inputs() const { return replaced_inputs_; }
  const std::vector<TensorPart>& parts() const { return parts_; }

 private:
  int threads_;
  bool winograd_;
  int64_t scratch_bytes_ = 0;
  int64_t persistent_bytes_ = 0;
  int64_t packed_bytes_ = 0;
  std::string packed_layout_;
  std::vector<int> replaced_inputs_;
  std::vector<TensorPart> parts_;
};

/// What a kernel gets for one run.
class RunContext {
 public:
  RunContext(const ir::Subgraph& subgraph, int node_index, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, std::byte* scratch, const std::byte* packed, ThreadPool& pool,
             Host& host, const ir::Node* node = nullptr)
      : subgraph_(subgraph),
        node_index_(node_index),
        node_(node != nullptr ? *node : subgraph.nodes[static_cast<size_t>(node_index)]),
        inputs_(inputs),
        outputs_(outputs),
        scratch_(scratch),
        packed_(packed),
        pool_(pool),
        host_(host) {}

  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)].quantization != nullptr; }
  const TensorView& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const TensorView& output(int i) const { return outputs_[static_cast<size_t>(i)]; }
  std::byte* scratch() const { return scratch_; }
  template <typename T>
  T* scratch_as() const {
    return reinterpret_cast<T*>(scratch_);
  }
  const std::byte* packed() const { return packed_; }
  std::byte* persistent() const { return persistent_; }
  void set_persistent(std::byte* memory) { persistent_ = memory; }
  ThreadPool& pool() const { return pool_; }
  Host& host() const { return host_; }
  Callee& callee(int subgraph) const { return host_.callee(node_index_, subgraph); }
  std::span<const TensorView> inputs() const { return inputs_; }
  std::span<const TensorView> outputs() const { return outputs_; }
  std::string_view input_name(int i) const { return name_of(node().inputs[static_cast<size_t>(i)]); }
  std::string_view output_name(int i) const { return name_of(node().outputs[static_cast<size_t>(i)]); }

  /// For checks of data (indices, divisors), made before the loop: throws Error(kRuntime) naming the node.
  template <typename... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok) [[unlikely]]
      throw_error(format, fmt::make_format_args(args...));
  }

 private:
  [[noreturn]] void throw_error(fmt::string_view format, fmt::format_args args) const;
  const ir::Node& node() const { return node_; }
  std::string_view name_of(int value) const { return subgraph_.value(value).name; }

  const ir::Subgraph& subgraph_;
  int node_index_;
  const ir::Node& node_;
  std::span<const TensorView> inputs_;
  std::span<const TensorView> outputs_;
  std::byte* scratch_;
  const std::byte* packed_;
  std::byte* persistent_ = nullptr;
  ThreadPool& pool_;
  Host& host_;
};

/// The executable form of a node. Small: what grows with the model lives in packed memory.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Fills the packed memory (64-byte aligned, zeroed). Called at most once, before the first run.
  virtual void pack(std::byte* /*packed*/) {}
  virtual void run(RunContext& context) = 0;
};

/// A kernel that is a callable.
std::unique_ptr<Kernel> make_kernel(StoredFunction<RunContext&> run);
/// One with something to pack.
std::unique_ptr<Kernel> make_kernel(StoredFunction<std::byte*> pack, StoredFunction<RunContext&> run);

/// How an op's result may share memory with its first inputs. Kernels must be right either way.
enum class Sharing : uint8_t {
  kNone,     ///< outputs have memory of their own
  kInPlace,  ///< output 0 may overwrite an input of the same size: element i of the output depends only on
             ///< element i of that input (and of other inputs)
  kView,     ///< output 0 is input 0 with another shape; run() copies only when the pointers differ
};

/// Which of the format's two unions of option tables, and the member's number in it.
struct OptionsTable {
  enum class Union : uint8_t { kNone, kBuiltinOptions, kBuiltinOptions2 };
  Union table = Union::kNone;
  int member = 0;
  constexpr bool any() const { return table != Union::kNone; }
};
constexpr OptionsTable builtin_options(int member) { return {OptionsTable::Union::kBuiltinOptions, member}; }
constexpr OptionsTable builtin_options_2(int member) { return {OptionsTable::Union::kBuiltinOptions2, member}; }

/// A set of inputs by their numbers, as bits: `input_set({1, 2, {5, 8}})` are 1, 2 and 5 to 8.
struct InputRange {
  constexpr InputRange(int only) : first(only), last(only) {}
  constexpr InputRange(int from, int to) : first(from), last(to) {}
  int first, last;
};
constexpr uint64_t input_set(std::initializer_list<InputRange> ranges) {
  uint64_t bits = 0;
  for (const InputRange& range : ranges) {
    for (int i = range.first; i <= range.last; ++i) bits |= uint64_t{1} << i;
  }
  return bits;
}

/// A set of fused activations, as bits.
using ActivationSet = uint8_t;
constexpr ActivationSet activation_set(std::initializer_list<ir::Activation> activations) {
  ActivationSet bits = 0;
  for (ir::Activation a : activations) bits |= static_cast<ActivationSet>(1U << static_cast<unsigned>(a));
  return bits;
}
/// What LiteRT's kernels with a fused activation have in common.
inline constexpr ActivationSet kFusesRelus =
    activation_set({ir::Activation::kRelu, ir::Activation::kReluN1To1, ir::Activation::kRelu6});

/// Kinds of ops that multiply activations with weights and sum up.
enum class ContractionKind : uint8_t {
  kNone,
  kConvolution,  ///< also grouped
  kDepthwise,    ///< an output channel reads one input channel
  kTransposed,   ///< an element of the input adds to several of the output
  kDense,        ///< FULLY_CONNECTED
  kMatmul,       ///< of two activations; one may be constant
};

/// Which inputs of a contraction are what, and the axes of its weights.
struct ContractionOperands {
  ContractionKind kind = ContractionKind::kNone;
  int activations = 0;
  int weights = 1;
  int bias = 2;             // -1: the op takes none
  int rank = 4;             // of the weights; 0: any
  int output_axis = 0;      // of the weights: output channels, each with a scale where there are several
  int input_axis = 3;       // of the weights: input channels
  bool needs_bias = false;  // LiteRT refuses the op without
  /// Where it depends on attributes: the output axis of weights of this rank.
  int (*find_output_axis)(const ir::Attributes& attributes, int rank) = nullptr;

  constexpr explicit operator bool() const { return kind != ContractionKind::kNone; }
  /// The weights are trained constants as a rule, and symmetric as integers.
  constexpr bool has_weights() const { return kind != ContractionKind::kNone && kind != ContractionKind::kMatmul; }
};

/// Products that a contraction computes for operands of these shapes; 0 when they do not fit it.
int64_t multiply_accumulates(const ContractionOperands& operands, const Shape& activations, const Shape& weights,
                             const Shape& output);

/// Parameters that an op's integer kernels insist on for a result; a scale of 0: any.
struct FixedParameters {
  float scale = 0.0F;
  int zero_point = 0;
};

/// What post-training quantization may do with an op. The default: it computes in float. Rows take their rule from the
/// functions of ops/quantization_rules.h; which inputs are weights and bias is in OpDef::contraction.
struct QuantizationRule {
  enum Form : uint8_t {
    kInt8 = 1,        // int8 activations, int8 weights
    kInt16 = 2,       // int16 activations, int8 weights
    kHybrid = 4,      // float activations, int8 weights, quantized while running
    kWeightOnly = 8,  // float activations, weights through DEQUANTIZE: any op with weights
  };
  /// The first version of the op that has a form; 0: there is none, or it is not known.
  struct Versions {
    int int8 = 0;
    int int16 = 0;
    int hybrid = 0;              // with one scale for all weights
    int hybrid_per_channel = 0;  // 0: the same
  };
  struct FixedOutputs {
    FixedParameters int8;
    FixedParameters int16;
  };
  uint8_t forms = 0;            // which of these its kernels have
  Versions versions;            // by form
  int symmetric_input = -1;     // an input besides weights that has zero point 0 when it is constant
  uint64_t hybrid_weights = 0;  // bit i: constant input i is weights of the hybrid form; 0: those of the contraction
  int table = -1;               // the input whose rows are the result's: as a constant it may be integers by itself
  bool same_scale = false;      // inputs that take part and all outputs have the same parameters
  FixedOutputs output;          // parameters that results have to have
};

/// One op: everything the rest of Leadline asks about it.
struct OpDef {
  ir::OpId id;
  int max_version = 1;
  int min_inputs = 0;
  int max_inputs = 0;       // -1: any number
  int required_inputs = 0;  // this many of the first may not be absent
  int min_outputs = 1;
  int max_outputs = 1;  // -1: any number
  OptionsTable options = {};
  std::unique_ptr<ir::Attributes> (*make_attributes)() = nullptr;  // null: what `slots` says
  std::string_view slots = {};                                     // for ops without a struct: see SlotAttributes
  void (*infer)(InferContext&) = nullptr;                          // null: known by name only, cannot run
  std::unique_ptr<Kernel> (*prepare)(PrepareContext&) = nullptr;
  Sharing sharing = Sharing::kNone;
  bool pure = true;                       // same inputs, same outputs, no state: may be folded
  bool elementwise = false;               // element i of the result depends on element i of the inputs alone
  bool reshapes = false;                  // output 0 has the elements of input 0 in their order
  bool reads_shapes_only = false;         // the result depends on the inputs' shapes, not on their data (SHAPE)
  bool dequantizes_f16 = false;           // output 0 is float16 input 0 as float32 (DEQUANTIZE)
  uint64_t half_inputs = 0;               // bit i: a float32 input i may be given as a float16 constant instead
  bool densifies = false;                 // output 0 is sparse constant 0, which is dense when an op sees it (DENSIFY)
  std::optional<DType> result_type = {};  // of all outputs, whatever the inputs are
  ContractionOperands contraction = {};
  ConvWindow* (*window)(ir::Attributes&) = nullptr;  // of a convolution over images: strides, dilations, padding
  ActivationSet fuses = 0;                           // what the op can apply to its result
  std::optional<ir::Activation> activation = {};     // the fused activation that does what the op does
  QuantizationRule quantize = {};
  std::string_view types = {};   // for docs: "f32 i8 u8 i16x8 hybrid"
  std::string_view fast = {};    // for docs: which of them have kernels tuned for the CPU
  std::string_view reason = {};  // for docs: why an op without infer does not run

  std::string_view name() const { return id.name(); }
  /// As integers: the input that has zero point 0 when it is constant, its axis with a scale for each slice, and the
  /// input whose scale is that of the activations times that of the weights; -1: none.
  int symmetric_input() const { return contraction.has_weights() ? contraction.weights : quantize.symmetric_input; }
  int symmetric_axis() const { return contraction.has_weights() ? contraction.output_axis : -1; }
  int bias_input() const { return contraction.has_weights() ? contraction.bias : -1; }
  /// A layer with an int8 form whose every result is a sum over all weights of its channel: what equalization and the
  /// correction of biases are about.
  bool is_integer_layer() const {
    return contraction.has_weights() && contraction.kind != ContractionKind::kTransposed &&
           (quantize.forms & QuantizationRule::kInt8) != 0;
  }
};

template <typename A>
std::unique_ptr<ir::Attributes> make_attributes() {
  return std::make_unique<A>();
}

/// Default attributes of the op.
std::unique_ptr<ir::Attributes> new_attributes(const OpDef& op);

}  // namespace leadline::ops

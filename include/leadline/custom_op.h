// SPDX-License-Identifier: Apache-2.0
// Ops of your own: give a custom op of a model an implementation.
//
//   class Scale : public leadline::CustomOp {
//    public:
//     explicit Scale(const leadline::OpNode& node) : factor_(node.options.number("factor", 1.0)) {}
//     void infer(leadline::InferCall& call) override { call.set_output_shape(0, call.input(0).shape); }
//     void run(leadline::RunCall& call) override {
//       const auto x = call.input(0).values<float>();
//       const auto y = call.output(0).memory<float>();
//       for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(factor_) * x[i];
//     }
//    private:
//     double factor_;
//   };
//   leadline::register_op<Scale>("Scale");
//
// Which implementation runs: registrations are process-wide. An Interpreter looks its custom ops up once, when it is
// made, and keeps what it found for its life; models may be loaded before or after. Registering a name again replaces
// it, and unregistering takes it away, for interpreters made from then on. A registered op comes before Leadline's own
// custom op of that name; builtin ops (ADD, CONV_2D) cannot be replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "leadline/error.h"
#include "leadline/types.h"

namespace leadline {

struct OptionValue;
using OptionList = std::vector<OptionValue>;
using OptionMap = std::map<std::string, OptionValue, std::less<>>;

/// A value of a FlexBuffers document: null, a flag, a number, a text (or blob), a list or a map.
struct OptionValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, OptionList, OptionMap> value;
};

/// Reads a FlexBuffers document; nothing when the bytes are none. Never reads outside `bytes`.
std::optional<OptionValue> decode_options(std::span<const std::byte> bytes);

/// The custom options of a node: bytes that mean what the op's author says. By convention they are a FlexBuffers map,
/// which the named functions read.
class OpOptions {
 public:
  explicit OpOptions(std::span<const std::byte> bytes = {}) : bytes_(bytes) {}

  std::span<const std::byte> bytes() const { return bytes_; }
  /// The bytes as a FlexBuffers map; empty when they are not such a map. Decoded on first use.
  const OptionMap& map() const;
  /// The option called `name`, or `fallback` where there is none. Throws Error(kInvalidModel) when it is of another
  /// kind; numbers and flags stand for each other.
  double number(std::string_view name, double fallback) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, const std::string& fallback) const;

 private:
  std::span<const std::byte> bytes_;
  mutable std::optional<OptionMap> map_;
};

/// The node an op object is made for. Valid as long as the object.
struct OpNode {
  std::string op;    ///< the custom name
  int index = 0;     ///< number in its subgraph
  std::string name;  ///< of its first output
  int version = 1;
  OpOptions options;
};

/// An operand; valid during the call only.
struct OpTensor {
  bool present = false;  ///< false: an optional input that is absent; nothing else is set then
  std::string_view name;
  DType dtype = DType::kFloat32;
  Shape shape;  ///< of an output in infer(): as the file has it
  std::span<const float> scales;
  std::span<const int64_t> zero_points;
  int quantized_dimension = 0;
  bool known = false;  ///< `data` can be read: always in run(), in infer() for constants and when shapes need data
  std::span<const std::byte> data;

  /// The data as elements of type T; integers of one byte may stand for any type. Throws Error(kInvalidArgument) when
  /// the tensor's type is another, or its data not known yet.
  template <typename T>
  std::span<const T> values() const {
    check_elements(sizeof(T), std::is_floating_point_v<T>);
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  /// The data of a string tensor.
  std::vector<std::string_view> strings() const;

 protected:
  void check_elements(size_t bytes, bool floating) const;
};

/// An output in run().
struct OpOutput : OpTensor {
  std::byte* address = nullptr;

  /// The memory to fill; initially its contents are undefined.
  template <typename T>
  std::span<T> memory() const {
    check_elements(sizeof(T), std::is_floating_point_v<T>);
    return {reinterpret_cast<T*>(address), data.size() / sizeof(T)};
  }
  /// Writes a string tensor. Throws Error(kInvalidArgument) unless these take the bytes that infer() announced.
  void write_strings(std::span<const std::string> strings) const;
};

/// Bytes that a string tensor with these elements takes: for InferCall::set_output_bytes().
int64_t string_tensor_size(std::span<const std::string> strings);

/// What infer() and run() have in common.
class OpCall {
 public:
  const OpNode& node() const { return node_; }
  const OpOptions& options() const { return node_.options; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return output_count_; }
  /// True when input `i` is there and not marked absent.
  bool has_input(int i) const;
  /// Throws Error(kInvalidModel) when the node has no input `i`, or it is absent.
  const OpTensor& input(int i) const;
  /// Throws Error(kInvalidModel) with `message` unless `ok`.
  void require(bool ok, const std::string& message) const;
  /// Keeps the memory of every operand alive for as long as the result: for views that another language may hold on to.
  /// Their contents change with later runs. With `leave` the interpreter takes other memory from its next call on, and
  /// its inputs have to be set again; the call must end with an exception then.
  std::shared_ptr<const void> hold_memory(bool leave) const { return hold_memory_(leave); }

  using HoldMemory = std::function<std::shared_ptr<const void>(bool leave)>;

 protected:
  OpCall(const OpNode& node, std::vector<OpTensor> inputs, int output_count, HoldMemory hold_memory);
  ~OpCall() = default;

 private:
  const OpNode& node_;
  std::vector<OpTensor> inputs_;
  int output_count_;
  HoldMemory hold_memory_;
};

/// infer(): checks the operands and says what the run takes.
class InferCall : public OpCall {
 public:
  InferCall(const OpNode& node, std::vector<OpTensor> inputs, std::vector<OpTensor> outputs, HoldMemory hold_memory);

  /// Type, quantization and name of output `i` in the file. Throws Error(kInvalidModel) when there is none.
  const OpTensor& output(int i) const;
  /// Every output needs a shape, unless the call ends with defer().
  void set_output_shape(int i, const Shape& shape);
  /// String outputs only: see string_tensor_size().
  void set_output_bytes(int i, int64_t bytes);
  /// The shapes depend on data that is not known yet: infer() is called again during the run, when all inputs are.
  void defer() { deferred_ = true; }
  /// Workspace for one run(), a piece of the arena; aligned to 64 bytes, contents undefined.
  void request_scratch(int64_t bytes);
  /// Memory whose contents stay from run to run, zero at first and after Interpreter::reset_variables().
  void request_persistent(int64_t bytes);

  const std::vector<std::optional<Shape>>& shapes() const { return shapes_; }
  const std::vector<int64_t>& string_bytes() const { return string_bytes_; }
  bool deferred() const { return deferred_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  int64_t persistent_bytes() const { return kept_bytes_; }

 private:
  std::vector<OpTensor> outputs_;
  std::vector<std::optional<Shape>> shapes_;
  std::vector<int64_t> string_bytes_;
  bool deferred_ = false;
  int64_t scratch_bytes_ = 0;
  int64_t kept_bytes_ = 0;
};

/// run(): computes the outputs.
class RunCall : public OpCall {
 public:
  RunCall(const OpNode& node, std::vector<OpTensor> inputs, std::vector<OpOutput> outputs, std::span<std::byte> scratch,
          std::span<std::byte> kept, HoldMemory hold_memory);

  /// Throws Error(kInvalidModel) when the node has no output `i`.
  const OpOutput& output(int i) const;
  /// The memory that infer() asked for, of exactly the size it asked for.
  std::span<std::byte> scratch() const { return scratch_; }
  std::span<std::byte> kept() const { return kept_; }

 private:
  std::vector<OpOutput> outputs_;
  std::span<std::byte> scratch_;
  std::span<std::byte> kept_;
};

/// The implementation of one node. An object is made for each node when an interpreter plans, and again when it plans
/// for other input shapes; its members are the place for state between runs, as far as that state is small (large
/// state belongs into request_persistent(), where the plan counts it). Calls to one object never overlap.
///
/// Outputs and scratch are pieces of the planned memory: the plan lists them and the budget limits them. What an op
/// allocates by itself is not counted.
///
/// Any function may throw: the exception ends the call of the interpreter as an Error that begins with the node's name
/// and keeps the code of an Error (kRuntime for other exceptions), with the original nested in it
/// (std::nested_exception). The interpreter can be used again. An op must not call the interpreter that is running it.
class CustomOp {
 public:
  virtual ~CustomOp() = default;
  virtual void infer(InferCall& call) = 0;
  virtual void run(RunCall& call) = 0;
  /// Interpreter::reset_variables(): back to the state before the first run.
  virtual void reset() {}
};

using CustomOpFactory = std::function<std::unique_ptr<CustomOp>(const OpNode& node)>;

/// Registers (or replaces) the implementation of custom op `name`. Thread-safe. Throws Error(kInvalidArgument) for an
/// empty name or factory.
void register_op(const std::string& name, CustomOpFactory factory);
/// The same for a class with a constructor that takes a const OpNode&, or nothing.
template <typename Op>
void register_op(const std::string& name) {
  register_op(name, [](const OpNode& node) -> std::unique_ptr<CustomOp> {
    if constexpr (std::is_constructible_v<Op, const OpNode&>) {
      return std::make_unique<Op>(node);
    } else {
      static_cast<void>(node);
      return std::make_unique<Op>();
    }
  });
}
/// False when nothing was registered under this name. Thread-safe.
bool unregister_op(std::string_view name);
/// Names of all registered ops, sorted. Thread-safe.
std::vector<std::string> registered_ops();

}  // namespace leadline

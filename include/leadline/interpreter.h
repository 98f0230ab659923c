// SPDX-License-Identifier: Apache-2.0
// Runs a Model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/devices.h"
#include "leadline/interpreter_options.h"
#include "leadline/model.h"
#include "leadline/observer.h"
#include "leadline/plan.h"
#include "leadline/progress.h"
#include "leadline/tensor_memory.h"
#include "leadline/types.h"

namespace leadline {
namespace runtime {
class Executable;
}

/// One run-time instance of a model. Calls from several threads take turns; different interpreters run in parallel.
/// An op or observer that calls the interpreter it is called by gets Error(kInvalidArgument).
///
///   const Model model = Model::load("model.tflite");
///   Interpreter interpreter(model);
///   std::cout << interpreter.plan().to_text();  // nothing large is allocated yet
///   std::ranges::copy(image, interpreter.input<float>(0).begin());
///   interpreter.invoke();
///   for (float score : interpreter.output<float>("scores")) std::cout << score << "\n";
class Interpreter {
 public:
  /// Plans, unless the file leaves sizes of inputs open; allocates nothing that grows with the model. Throws
  /// Error(kUnsupported) listing the ops that cannot run and what to do about them, or what an op's validation finds.
  /// Custom ops are those registered now (custom_op.h).
  explicit Interpreter(const Model& model, InterpreterOptions options = {});
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  const Model& model() const;
  const InterpreterOptions& options() const;
  /// Where the model runs, and why that is not the device of the options where it is not.
  const DeviceChoice& device() const;

  /// The plan for the current input shapes. Complete from the start unless shapes depend on data; then it grows while
  /// invoke() learns them.
  /// Where the file leaves sizes of inputs open, they count as the file's placeholders (1, as a rule) until
  /// resize_input() says them; when the model cannot be planned with those, Error(kInvalidArgument) says which inputs
  /// need a shape. Making the interpreter, tensor_info() and resize_input() never fail for that reason.
  Plan plan() const;
  /// The plan of an interpreter whose inputs have these shapes, by tensor number, and otherwise the current ones. This
  /// interpreter stays as it is.
  Plan plan(const std::map<int, Shape>& shapes) const;
  /// Inputs whose sizes the file leaves open and resize_input() has not said.
  std::vector<int> unsized_inputs() const;

  /// Takes the planned memory and packs the weights. Throws BudgetError, and takes nothing, when the plan does not fit.
  /// Called by invoke() when it was not called before. Calling it again without a change does nothing.
  void allocate();

  /// Sets the shape of input tensor `index` (its index in the file); the plan is made again when it is needed, or found
  /// among those of recent shapes, which are kept within the budget. `strict`: only dimensions that
  /// the model marks as unknown may change. Throws Error(kInvalidArgument).
  void resize_input(int index, const Shape& shape, bool strict = false);

  /// The elements of an input, to be filled before invoke(), and of an output, to be read after it. `key` is a position
  /// (0: the first) or a name: of the signature that the interpreter runs, else of the tensor. T is the type of the
  /// elements, std::byte any (element_type). Takes the planned memory, if that was not done; what it is stays valid
  /// until the next resize_input(), bind(), unbind(), or add_observer(). An output whose shape depends on data is there
  /// after invoke(). Throws Error(kInvalidArgument) that says what was expected: another type, an input that does not
  /// exist or is bound to read-only memory; for strings see set_tensor().
  template <typename T>
  std::span<T> input(const TensorKey& key) {
    return input_memory(key, element_type<T>()).template memory<T>();
  }
  template <typename T>
  std::span<const T> output(const TensorKey& key) const {
    return output_memory(key, element_type<T>()).template values<T>();
  }

  /// Numbers of the input and output tensors in the file: what the functions below call `index`.
  const std::vector<int>& inputs() const;
  const std::vector<int>& outputs() const;
  /// The number of one of them. Throws Error(kInvalidArgument) when there is none.
  int input_index(const TensorKey& key) const;
  int output_index(const TensorKey& key) const;
  /// Throws Error(kInvalidArgument) when there is no such tensor.
  TensorInfo tensor_info(int index) const;
  int tensor_count() const;

  /// Copies `bytes` into input or variable tensor `index`. Throws Error(kInvalidArgument) when the size differs.
  /// For string inputs `bytes` is a string buffer as the format lays it out. A bound input is written by its owner.
  void set_tensor(int index, std::span<const std::byte> bytes);

  /// From the next run on, input, output or variable `index` lives in `memory` of the caller: inputs are read where
  /// they are, outputs written where they are wanted, without copies. Such memory is not charged and not part of
  /// plan().peak_bytes; bound before allocate(), the tensor never takes memory of the interpreter. Binding other memory
  /// before every run is cheap: nothing is planned again.
  ///  - Type, shape and size must be the tensor's, the address a multiple of an element's size, at most 8 (nothing is
  ///    copied to make it one). An output whose shape depends on data is checked when it is known, by invoke().
  ///  - Inputs are only read and may be `read_only`. Outputs, and constants that are outputs, are written by invoke();
  ///    a variable begins with the contents of `memory`. What is written may overlap no other tensor's memory; invoke()
  ///    checks it.
  ///  - `memory.owner` is held until the tensor is bound to something else, unbound, or the interpreter ends. Without
  ///    an owner the caller keeps the memory that long.
  ///  - After resize_input() the next allocate() or invoke() throws until what does not fit is bound again or unbound.
  /// Throws Error(kInvalidArgument), and leaves the tensor as it was; Error(kUnsupported) for strings.
  void bind(int index, TensorMemory memory);
  /// The tensor gets memory of the interpreter again, zeros at first. Does nothing when it is not bound.
  void unbind(int index);

  /// Memory of an input, output, constant, variable or preserved tensor, for reading (and for writing inputs). Any
  /// other tensor is computed from what the inputs hold now, by a second run up to its node, and is a copy:
  /// plan().recompute_bytes says what that takes. Throws BudgetError when that does not fit, and
  /// Error(kInvalidArgument) when the model has state, which a second run would change, and says what to do.
  TensorMemory tensor(int index) const;

  /// Runs once. Throws BudgetError when data-dependent shapes do not fit, Error(kRuntime) for data an op cannot take.
  /// `check` may end the run by throwing, a WorkLimit too. After an exception the interpreter can be used again.
  void invoke(const RunCheck& check = {});

  /// Sets all variables to their initial state.
  void reset_variables();

  /// Highest count of bytes charged for this interpreter and its model, file included; equals plan().peak_bytes after a
  /// run.
  int64_t counted_peak_bytes() const;
  /// Bytes charged now for this interpreter alone, without its model's. Does not wait for a run.
  int64_t memory_bytes() const;

  /// Observers are called in the order they were added; not owned, must outlive the interpreter or be removed.
  void add_observer(Observer* observer);
  void remove_observer(Observer* observer);

  /// Time per node, summed over the runs since profiling was switched on.
  void enable_profile(bool enabled);
  std::vector<NodeProfile> profile() const;

  /// For Leadline's own code: what this is a handle of. Not part of the API.
  explicit Interpreter(std::shared_ptr<runtime::Executable> executable);
  const std::shared_ptr<runtime::Executable>& executable() const { return executable_; }

 private:
  TensorMemory input_memory(const TensorKey& key, std::optional<DType> type);
  TensorMemory output_memory(const TensorKey& key, std::optional<DType> type) const;

  DeviceChoice device_;
  Model model_;
  std::shared_ptr<runtime::Executable> executable_;
};

}  // namespace leadline

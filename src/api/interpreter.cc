// SPDX-License-Identifier: Apache-2.0
#include "leadline/interpreter.h"

#include <utility>

#include "core/boundary.h"
#include "runtime/executable.h"

namespace leadline {
namespace {

std::shared_ptr<runtime::Executable> make_executable(const Model& model, InterpreterOptions options) {
  const runtime::Executable* shared =
      options.shares_state_with == nullptr ? nullptr : options.shares_state_with->executable().get();
  return std::make_shared<runtime::Executable>(model.loaded(), std::move(options), shared);
}

}  // namespace

Interpreter::Interpreter(const Model& model, InterpreterOptions options) try
    : device_(choose_device(options.device, options.on_missing)),
      model_(model),
      executable_(make_executable(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}

Interpreter::Interpreter(std::shared_ptr<runtime::Executable> executable)
    : model_(executable->model()), executable_(std::move(executable)) {}

Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

const Model& Interpreter::model() const { return model_; }
const InterpreterOptions& Interpreter::options() const { return executable_->options(); }
const DeviceChoice& Interpreter::device() const { return device_; }
const std::vector<int>& Interpreter::inputs() const { return executable_->subgraph().inputs; }
const std::vector<int>& Interpreter::outputs() const { return executable_->subgraph().outputs; }
int Interpreter::tensor_count() const { return static_cast<int>(executable_->subgraph().values.size()); }

int Interpreter::input_index(const TensorKey& key) const try { return executable_->input_index(key); } catch (...) {
  rethrow_as_error();
}

int Interpreter::output_index(const TensorKey& key) const try { return executable_->output_index(key); } catch (...) {
  rethrow_as_error();
}

TensorMemory Interpreter::input_memory(const TensorKey& key, std::optional<DType> type) try {
  return executable_->input(key, type);
} catch (...) {
  rethrow_as_error();
}

TensorMemory Interpreter::output_memory(const TensorKey& key, std::optional<DType> type) const try {
  return executable_->output(key, type);
} catch (...) {
  rethrow_as_error();
}

Plan Interpreter::plan() const try { return executable_->plan(); } catch (...) {
  rethrow_as_error();
}

Plan Interpreter::plan(const std::map<int, Shape>& shapes) const try {
  return executable_->plan_for(shapes);
} catch (...) {
  rethrow_as_error();
}

std::vector<int> Interpreter::unsized_inputs() const try { return executable_->unsized_inputs(); } catch (...) {
  rethrow_as_error();
}

void Interpreter::allocate() try { executable_->allocate(); } catch (...) {
  rethrow_as_error();
}

void Interpreter::resize_input(int index, const Shape& shape, bool strict) try {
  executable_->resize_input(index, shape, strict);
} catch (...) {
  rethrow_as_error();
}

TensorInfo Interpreter::tensor_info(int index) const try { return executable_->tensor_info(index); } catch (...) {
  rethrow_as_error();
}

void Interpreter::set_tensor(int index, std::span<const std::byte> bytes) try {
  executable_->set_tensor(index, bytes);
} catch (...) {
  rethrow_as_error();
}

TensorMemory Interpreter::tensor(int index) const try { return executable_->tensor(index); } catch (...) {
  rethrow_as_error();
}

void Interpreter::bind(int index, TensorMemory memory) try {
  executable_->bind(index, std::move(memory));
} catch (...) {
  rethrow_as_error();
}

void Interpreter::unbind(int index) try { executable_->unbind(index); } catch (...) {
  rethrow_as_error();
}

void Interpreter::invoke(const RunCheck& check) try { executable_->invoke(check); } catch (...) {
  rethrow_as_error();
}

void Interpreter::reset_variables() try { executable_->reset_variables(); } catch (...) {
  rethrow_as_error();
}

int64_t Interpreter::memory_bytes() const { return executable_->memory_bytes(); }
int64_t Interpreter::counted_peak_bytes() const { return executable_->counted_peak_bytes(); }

void Interpreter::add_observer(Observer* observer) try { executable_->add_observer(observer); } catch (...) {
  rethrow_as_error();
}

void Interpreter::remove_observer(Observer* observer) try { executable_->remove_observer(observer); } catch (...) {
  rethrow_as_error();
}

void Interpreter::enable_profile(bool enabled) try { executable_->enable_profile(enabled); } catch (...) {
  rethrow_as_error();
}

std::vector<NodeProfile> Interpreter::profile() const try { return executable_->profile(); } catch (...) {
  rethrow_as_error();
}

}  // namespace leadline

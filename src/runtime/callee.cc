// SPDX-License-Identifier: Apache-2.0
#include "runtime/callee.h"

#include <algorithm>

#include "core/error.h"
#include "core/work.h"

namespace leadline::runtime {
namespace {

/// Arenas of the last run, which may hold the inputs of this one: released when those are copied.
class LastRun {
 public:
  explicit LastRun(Accounts& accounts) : accounts_(accounts) {}
  ~LastRun() { give_back(); }
  LastRun(const LastRun&) = delete;
  LastRun& operator=(const LastRun&) = delete;

  void keep(std::vector<std::shared_ptr<Buffer>> arenas) { arenas_ = std::move(arenas); }
  void give_back() {
    for (auto& arena : arenas_) accounts_.give_back(arena, MemoryCategory::kArena);
  }

 private:
  Accounts& accounts_;
  std::vector<std::shared_ptr<Buffer>> arenas_;
};

}  // namespace

bool CalledSubgraph::plan(std::span<const Shape> inputs) {
  require(inputs.size() == subgraph().inputs.size(), ErrorCode::kInvalidModel,
          "subgraph {} is called with {} inputs, it has {}", runner_.outline().subgraph_index(), inputs.size(),
          subgraph().inputs.size());
  if (!runner_.is_planned_for(inputs)) {
    results_.clear();
    runner_.start(inputs, std::vector<int64_t>(inputs.size(), 0));
  }
  for (int i = 0; i < input_count(); ++i) {
    if (dtype_bits(input_type(i)) == 0) return false;  // strings: the size is in the data
  }
  return runner_.plan().segments.size() == 1 && runner_.plan().complete;
}

const Shape& CalledSubgraph::output_shape(int i) const {
  return runner_.plan().value(subgraph().outputs[static_cast<size_t>(i)]).shape;
}

int64_t CalledSubgraph::workspace_bytes() const { return runner_.plan().segments[0].arena_bytes; }

DType CalledSubgraph::input_type(int i) const {
  return subgraph().value(subgraph().inputs[static_cast<size_t>(i)]).dtype;
}

DType CalledSubgraph::output_type(int i) const {
  return subgraph().value(subgraph().outputs[static_cast<size_t>(i)]).dtype;
}

std::span<const TensorView> CalledSubgraph::run(std::span<const TensorView> inputs, std::byte* workspace) {
  std::vector<Shape> shapes;
  std::vector<int64_t> string_bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    shapes.push_back(inputs[i].shape);
    string_bytes.push_back(dtype_bits(input_type(static_cast<int>(i))) == 0 ? inputs[i].bytes : 0);
  }
  std::swap(results_, last_results_);
  results_.clear();
  LastRun last_run(environment_.accounts);
  if (runner_.is_planned_for(shapes, string_bytes)) {
    last_run.keep(runner_.detach_arenas(1));
  } else {
    last_run.keep(runner_.detach_arenas(0));
    runner_.start(shapes, string_bytes);
  }
  runner_.allocate();
  runner_.begin_call(workspace);
  copy_inputs(inputs);
  last_run.give_back();
  runner_.run_segments();
  copy_outputs();
  return results_;
}

void CalledSubgraph::copy_inputs(std::span<const TensorView> inputs) {
  Bindings& bindings = runner_.bindings();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int v = subgraph().inputs[i];
    const plan::PlannedValue& planned = runner_.plan().value(v);
    std::byte* address = bindings.address(v);
    if (planned.storage == Storage::kArena && planned.bytes > 0 && address != inputs[i].data) {
      copy_bytes(address, inputs[i].data, planned.bytes);
    }
    bindings.mark_computed(v);
  }
}

void CalledSubgraph::copy_outputs() {
  for (int v : subgraph().outputs) results_.push_back(runner_.bindings().view(v));
  std::byte* base = runner_.last_arena();
  for (const plan::OutputCopy& copy : runner_.plan().output_copies) {
    TensorView& result = results_[static_cast<size_t>(copy.output)];
    if (copy.bytes > 0) copy_bytes(base + copy.offset, result.data, copy.bytes);
    result.data = base + copy.offset;
  }
}

void CalledSubgraph::release() {
  results_.clear();
  runner_.release();
}

}  // namespace leadline::runtime

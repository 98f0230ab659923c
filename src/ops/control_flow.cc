// SPDX-License-Identifier: Apache-2.0
// CALL_ONCE, IF, WHILE, STABLEHLO_CASE, STABLEHLO_COMPOSITE: nodes that run other subgraphs.
//
// When the callee's shapes do not depend on data its memory is the node's scratch, so the plan covers it. Otherwise the
// node is deferred, the callee runs while its outputs are inferred (which finds their shapes), and the kernel
// only copies the results.
#include "ops/control_flow.h"

#include <cstring>

#include "core/buffer.h"
#include "core/rethrow_if_fatal.h"
#include "ops/families.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

struct CaseAttributes : ir::AttributeSet<CaseAttributes> {
  std::vector<int32_t> branches;
  void fields(ir::FieldVisitor& v) { v.subgraphs("branch_subgraph_indices", branches); }
};

/// A composite means what its decomposition computes; name and attributes let others recognise it.
struct CompositeAttributes : ir::AttributeSet<CompositeAttributes> {
  std::string name;
  int32_t decomposition_subgraph = 0;
  std::vector<uint8_t> composite_attributes;
  int8_t composite_attributes_format = 0;
  int32_t version = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("name", name);
    v.subgraph("decomposition_subgraph_index", decomposition_subgraph);
    v.field("composite_attributes", composite_attributes);
    v.field("composite_attributes_format", composite_attributes_format);
    v.field("version", version);
  }
};

std::vector<Shape> input_shapes(const OpContext& c, int first) {
  std::vector<Shape> shapes;
  for (int i = first; i < c.input_count(); ++i) shapes.push_back(c.input(i).shape);
  return shapes;
}

bool all_known(const OpContext& c) {
  for (int i = 0; i < c.input_count(); ++i) {
    if (c.input(i).present() && !c.input(i).known) return false;
  }
  return true;
}

std::vector<TensorView> input_views(const OpContext& c, int first) {
  std::vector<TensorView> views;
  for (int i = first; i < c.input_count(); ++i) {
    const Operand& o = c.input(i);
    views.push_back({o.dtype(), o.shape, const_cast<std::byte*>(o.data), o.bytes, &o.quantization()});
  }
  return views;
}

/// The callee takes this node's inputs from `first` on and, where `outputs`, returns this node's outputs.
void check_callee(const OpContext& c, int subgraph, int first, bool outputs) {
  const Callee& callee = c.callee(subgraph);
  c.require(callee.input_count() == c.input_count() - first, "subgraph {} has {} inputs, the node passes {}", subgraph,
            callee.input_count(), c.input_count() - first);
  for (int i = first; i < c.input_count(); ++i) {
    c.require(c.input(i).present(), "input {} is absent", i);
    c.require(callee.input_type(i - first) == c.input(i).dtype(), "input {} is {}, subgraph {} expects {}", i,
              dtype_name(c.input(i).dtype()), subgraph, dtype_name(callee.input_type(i - first)));
  }
  if (!outputs) return;
  c.require(callee.output_count() == c.output_count(), "subgraph {} has {} outputs, the node has {}", subgraph,
            callee.output_count(), c.output_count());
  for (int i = 0; i < c.output_count(); ++i) {
    c.require(callee.output_type(i) == c.output(i).dtype(), "output {} is {}, subgraph {} returns {}", i,
              dtype_name(c.output(i).dtype()), subgraph, dtype_name(callee.output_type(i)));
  }
}

void set_outputs_from(InferContext& c, std::span<const TensorView> results) {
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output_shape(i, results[static_cast<size_t>(i)].shape);
    c.set_output_bytes(i, results[static_cast<size_t>(i)].bytes);
  }
}

void copy_results(RunContext& run, std::span<const TensorView> results) {
  for (int i = 0; i < run.output_count(); ++i) {
    const TensorView& from = results[static_cast<size_t>(i)];
    if (from.bytes > 0) copy_bytes(run.output(i).data, from.data, from.bytes);
  }
}

bool same_outputs(const Callee& a, const Callee& b) {
  for (int i = 0; i < a.output_count(); ++i) {
    if (!(a.output_shape(i) == b.output_shape(i))) return false;
  }
  return true;
}

bool is_true(const TensorView& condition) { return *condition.as<uint8_t>() != 0; }

// CALL_ONCE

void infer_call_once(InferContext& c) {
  const int subgraph = c.attributes<CallOnceAttributes>().init_subgraph;
  c.require(c.callee(subgraph).input_count() == 0 && c.callee(subgraph).output_count() == 0,
            "subgraph {} has inputs or outputs, an initialiser has none", subgraph);
}

std::unique_ptr<Kernel> prepare_call_once(PrepareContext& c) {
  const int subgraph = c.attributes<CallOnceAttributes>().init_subgraph;
  const bool planned = c.callee(subgraph).plan({});
  if (planned) c.request_scratch(c.callee(subgraph).workspace_bytes());
  return make_kernel([subgraph, planned](RunContext& run) {
    Resources& resources = run.host().resources();
    if (resources.initialized(subgraph)) return;
    run.callee(subgraph).run({}, planned ? run.scratch() : nullptr);
    resources.mark_initialized(subgraph);
  });
}

// IF, STABLEHLO_CASE, STABLEHLO_COMPOSITE: one of several branches is run

/// The subgraphs to choose from, and how the node's input 0 says which one is taken. Without a choice there is one
/// subgraph, and input 0 is its first argument.
struct Branches {
  std::vector<int32_t> subgraphs;
  int (*choose)(const std::byte* selector, int count) = nullptr;

  int first_argument() const { return choose == nullptr ? 0 : 1; }
  template <typename Inputs>
  int taken(const Inputs& inputs) const {
    if (choose == nullptr) return subgraphs[0];
    return subgraphs[static_cast<size_t>(choose(inputs.input(0).data, static_cast<int>(subgraphs.size())))];
  }
  /// Those that may be taken: one when it is known which.
  std::vector<int32_t> possible(const OpContext& c) const {
    if (choose == nullptr || !c.input(0).known) return subgraphs;
    return {static_cast<int32_t>(taken(c))};
  }
};

Branches if_branches(const OpContext& c) {
  const auto& a = c.attributes<IfAttributes>();
  return {{a.then_subgraph, a.else_subgraph},
          [](const std::byte* condition, int) { return *reinterpret_cast<const uint8_t*>(condition) != 0 ? 0 : 1; }};
}

/// An index outside the branches takes the last one.
Branches case_branches(const OpContext& c) {
  return {c.attributes<CaseAttributes>().branches, [](const std::byte* selector, int count) {
            const int32_t index = *reinterpret_cast<const int32_t*>(selector);
            return index < 0 || index >= count ? count - 1 : index;
          }};
}

Branches composite_branches(const OpContext& c) {
  return {{c.attributes<CompositeAttributes>().decomposition_subgraph}};
}

/// True when every branch that may be taken can be planned and all agree on the output shapes. One that is refused for
/// these shapes may be the one that a program does not take for them: its error is the user's when it is taken, or when
/// all are refused.
bool plan_branches(const OpContext& c, const Branches& branches) {
  const std::vector<Shape> shapes = input_shapes(c, branches.first_argument());
  const std::vector<int32_t> possible = branches.possible(c);
  bool planned = true;
  size_t refused = 0;
  for (int32_t subgraph : possible) {
    try {
      planned &= c.callee(subgraph).plan(shapes);
    } catch (const Error& error) {
      rethrow_if_fatal(error);
      planned = false;
      if (++refused == possible.size()) throw;
    }
  }
  if (!planned) return false;
  for (int32_t subgraph : possible) {
    if (!same_outputs(c.callee(possible[0]), c.callee(subgraph))) return false;
  }
  return true;
}

void infer_branches(InferContext& c, const Branches& branches) {
  for (int32_t subgraph : branches.subgraphs) check_callee(c, subgraph, branches.first_argument(), true);
  if (plan_branches(c, branches)) {
    const Callee& first = c.callee(branches.possible(c)[0]);
    for (int i = 0; i < c.output_count(); ++i) c.set_output_shape(i, first.output_shape(i));
    return;
  }
  if (!all_known(c)) return c.defer();
  set_outputs_from(c, c.callee(branches.taken(c)).run(input_views(c, branches.first_argument()), nullptr));
}

template <Branches (*kBranches)(const OpContext&)>
std::unique_ptr<Kernel> prepare_branches(PrepareContext& c) {
  const Branches branches = kBranches(c);
  if (!plan_branches(c, branches)) {
    return make_kernel([branches](RunContext& run) { copy_results(run, run.callee(branches.taken(run)).results()); });
  }
  int64_t workspace = 0;
  for (int32_t subgraph : branches.possible(c)) workspace = std::max(workspace, c.callee(subgraph).workspace_bytes());
  c.request_scratch(workspace);
  return make_kernel([branches](RunContext& run) {
    const auto arguments = run.inputs().subspan(static_cast<size_t>(branches.first_argument()));
    copy_results(run, run.callee(branches.taken(run)).run(arguments, run.scratch()));
  });
}

void check_selector(const OpContext& c, DType type, const char* what) {
  c.require_input_type(0, {type});
  c.require(c.input(0).shape.elements() == 1, "the {} has shape {}, expected one value", what,
            c.input(0).shape.to_string());
}

void infer_if(InferContext& c) {
  check_selector(c, DType::kBool, "condition");
  infer_branches(c, if_branches(c));
}

void infer_case(InferContext& c) {
  check_selector(c, DType::kInt32, "branch index");
  const Branches branches = case_branches(c);
  c.require(!branches.subgraphs.empty(), "there are no branches");
  infer_branches(c, branches);
}

void infer_composite(InferContext& c) { infer_branches(c, composite_branches(c)); }

// WHILE

/// True when the loop keeps its shapes, so that one plan serves every round.
bool plan_loop(const OpContext& c) {
  const auto& a = c.attributes<WhileAttributes>();
  const std::vector<Shape> shapes = input_shapes(c, 0);
  if (!c.callee(a.cond_subgraph).plan(shapes) || !c.callee(a.body_subgraph).plan(shapes)) return false;
  for (int i = 0; i < c.output_count(); ++i) {
    if (!(c.callee(a.body_subgraph).output_shape(i) == c.input(i).shape)) return false;
  }
  return true;
}

bool condition_holds(Callee& cond, std::span<const TensorView> state, std::byte* workspace) {
  const TensorView result = cond.run(state, workspace)[0];
  leadline::require(result.bytes >= 1, ErrorCode::kRuntime, "the condition of a loop gave shape {}, expected one value",
                    result.shape.to_string());
  return is_true(result);
}

/// Runs the loop and returns views of the final state: the inputs themselves when no round was run.
std::vector<TensorView> run_loop(Host& host, Callee& cond, Callee& body, std::vector<TensorView> state,
                                 std::byte* cond_workspace, std::byte* body_workspace) {
  while (condition_holds(cond, state, cond_workspace)) {
    host.checkpoint();
    const auto results = body.run(state, body_workspace);
    state.assign(results.begin(), results.end());
  }
  return state;
}

void infer_while(InferContext& c) {
  const auto& a = c.attributes<WhileAttributes>();
  check_callee(c, a.cond_subgraph, 0, false);
  check_callee(c, a.body_subgraph, 0, true);
  const Callee& cond = c.callee(a.cond_subgraph);
  c.require(cond.output_count() == 1 && cond.output_type(0) == DType::kBool,
            "condition subgraph {} has {} outputs, expected one of type bool", a.cond_subgraph, cond.output_count());
  c.require(c.input_count() == c.output_count(), "it has {} inputs and {} outputs, expected as many of each",
            c.input_count(), c.output_count());
  for (int i = 0; i < c.input_count(); ++i) {
    c.require(c.output(i).dtype() == c.input(i).dtype(), "input {} is {}, output {} is {}", i,
              dtype_name(c.input(i).dtype()), i, dtype_name(c.output(i).dtype()));
  }
  if (plan_loop(c)) {
    c.require(c.callee(a.cond_subgraph).output_shape(0).elements() == 1,
              "condition subgraph {} returns shape {}, expected one value", a.cond_subgraph,
              c.callee(a.cond_subgraph).output_shape(0).to_string());
    c.callee(a.body_subgraph).forget_results();
    for (int i = 0; i < c.output_count(); ++i) c.set_output_shape(i, c.input(i).shape);
    return;
  }
  // Each run of a callee takes the memory in which the results of the last one are.
  if (a.cond_subgraph == a.body_subgraph) {
    c.fail(ErrorCode::kUnsupported, "condition and body are both subgraph {}, which returns other shapes than it takes",
           a.body_subgraph);
  }
  if (!all_known(c)) return c.defer();
  c.callee(a.body_subgraph).forget_results();
  set_outputs_from(
      c, run_loop(c.host(), c.callee(a.cond_subgraph), c.callee(a.body_subgraph), input_views(c, 0), nullptr, nullptr));
}

std::unique_ptr<Kernel> prepare_while(PrepareContext& c) {
  const WhileAttributes a = c.attributes<WhileAttributes>();
  // Results are there only when infer has just run the loop: planning again would lose them.
  if (!c.callee(a.body_subgraph).results().empty() || !plan_loop(c)) {
    return make_kernel([a](RunContext& run) {
      const auto results = run.callee(a.body_subgraph).results();
      copy_results(run, results.empty() ? run.inputs() : results);
    });
  }
  const int64_t cond_bytes = align_up(c.callee(a.cond_subgraph).workspace_bytes());
  c.request_scratch(cond_bytes + c.callee(a.body_subgraph).workspace_bytes());
  return make_kernel([a, cond_bytes](RunContext& run) {
    std::vector<TensorView> state(run.inputs().begin(), run.inputs().end());
    copy_results(run, run_loop(run.host(), run.callee(a.cond_subgraph), run.callee(a.body_subgraph), std::move(state),
                               run.scratch(), run.scratch() + cond_bytes));
  });
}

}  // namespace

void register_control_flow(Registry& registry) {
  registry.add({.id = op::kCallOnce,
                .min_outputs = 0,
                .max_outputs = 0,
                .options = builtin_options(103),
                .make_attributes = make_attributes<CallOnceAttributes>,
                .infer = infer_call_once,
                .prepare = prepare_call_once,
                .pure = false,
                .types = "any"});
  registry.add({.id = op::kIf,
                .min_inputs = 1,
                .max_inputs = -1,
                .required_inputs = 1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = builtin_options(92),
                .make_attributes = make_attributes<IfAttributes>,
                .infer = infer_if,
                .prepare = prepare_branches<if_branches>,
                .pure = false,
                .types = "any"});
  registry.add({.id = op::kWhile,
                .max_inputs = -1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = builtin_options(93),
                .make_attributes = make_attributes<WhileAttributes>,
                .infer = infer_while,
                .prepare = prepare_while,
                .pure = false,
                .types = "any"});
  registry.add({.id = op::kStablehloCase,
                .min_inputs = 1,
                .max_inputs = -1,
                .required_inputs = 1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = builtin_options_2(23),
                .make_attributes = make_attributes<CaseAttributes>,
                .infer = infer_case,
                .prepare = prepare_branches<case_branches>,
                .pure = false,
                .types = "any"});
  registry.add({.id = op::kStablehloComposite,
                .max_inputs = -1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = builtin_options_2(21),
                .make_attributes = make_attributes<CompositeAttributes>,
                .infer = infer_composite,
                .prepare = prepare_branches<composite_branches>,
                .pure = false,
                .types = "any"});
}

}  // namespace leadline::ops

// SPDX-License-Identifier: Apache-2.0
// CALL_ONCE, IF, WHILE: nodes that run other subgraphs.
//
// When the callee's shapes do not depend on data its memory is the node's scratch, so the plan covers it. Otherwise the
// node is deferred, the callee runs while its outputs are inferred (that is what tells their shapes), and the kernel
// only copies the results.
#include <cstring>

#include "base/buffer.h"
#include "ops/families.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

struct CallOnceAttributes : ir::AttributeSet<CallOnceAttributes> {
  int32_t init_subgraph = 0;
  void fields(ir::FieldVisitor& v) { v.subgraph("init_subgraph_index", init_subgraph); }
};

struct IfAttributes : ir::AttributeSet<IfAttributes> {
  int32_t then_subgraph = 0;
  int32_t else_subgraph = 0;
  void fields(ir::FieldVisitor& v) {
    v.subgraph("then_subgraph_index", then_subgraph);
    v.subgraph("else_subgraph_index", else_subgraph);
  }
};

struct WhileAttributes : ir::AttributeSet<WhileAttributes> {
  int32_t cond_subgraph = 0;
  int32_t body_subgraph = 0;
  void fields(ir::FieldVisitor& v) {
    v.subgraph("cond_subgraph_index", cond_subgraph);
    v.subgraph("body_subgraph_index", body_subgraph);
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

/// The callee takes this node's inputs from `first` on and, where `outputs`, gives this node's outputs.
void check_callee(const OpContext& c, int subgraph, int first, bool outputs) {
  const Callee& callee = c.callee(subgraph);
  c.require(callee.input_count() == c.input_count() - first, "subgraph {} has {} inputs, the node gives it {}",
            subgraph, callee.input_count(), c.input_count() - first);
  for (int i = first; i < c.input_count(); ++i) {
    c.require(c.input(i).present(), "input {} is absent", i);
    c.require(callee.input_type(i - first) == c.input(i).dtype(), "input {} is {}, subgraph {} expects {}", i,
              dtype_name(c.input(i).dtype()), subgraph, dtype_name(callee.input_type(i - first)));
  }
  if (!outputs) return;
  c.require(callee.output_count() == c.output_count(), "subgraph {} has {} outputs, the node has {}", subgraph,
            callee.output_count(), c.output_count());
  for (int i = 0; i < c.output_count(); ++i) {
    c.require(callee.output_type(i) == c.output(i).dtype(), "output {} is {}, subgraph {} gives {}", i,
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
    if (from.bytes > 0) std::memcpy(run.output(i).data, from.data, static_cast<size_t>(from.bytes));
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

// IF

void check_condition(const OpContext& c) {
  c.require_input_type(0, {DType::kBool});
  c.require(c.input(0).shape.elements() == 1, "the condition has shape {}, expected one value",
            c.input(0).shape.to_string());
}

/// True when both branches can be planned and agree on the output shapes.
bool plan_branches(const OpContext& c) {
  const auto& a = c.attributes<IfAttributes>();
  const std::vector<Shape> shapes = input_shapes(c, 1);
  const bool then_planned = c.callee(a.then_subgraph).plan(shapes);
  const bool else_planned = c.callee(a.else_subgraph).plan(shapes);
  return then_planned && else_planned && same_outputs(c.callee(a.then_subgraph), c.callee(a.else_subgraph));
}

void infer_if(InferContext& c) {
  check_condition(c);
  const auto& a = c.attributes<IfAttributes>();
  check_callee(c, a.then_subgraph, 1, true);
  check_callee(c, a.else_subgraph, 1, true);
  if (plan_branches(c)) {
    for (int i = 0; i < c.output_count(); ++i) c.set_output_shape(i, c.callee(a.then_subgraph).output_shape(i));
    return;
  }
  if (!all_known(c)) return c.defer();
  Callee& taken = c.callee(c.input(0).values<uint8_t>()[0] != 0 ? a.then_subgraph : a.else_subgraph);
  set_outputs_from(c, taken.run(input_views(c, 1), nullptr));
}

std::unique_ptr<Kernel> prepare_if(PrepareContext& c) {
  const IfAttributes a = c.attributes<IfAttributes>();
  if (!plan_branches(c)) {
    return make_kernel([a](RunContext& run) {
      copy_results(run, run.callee(is_true(run.input(0)) ? a.then_subgraph : a.else_subgraph).results());
    });
  }
  c.request_scratch(std::max(c.callee(a.then_subgraph).workspace_bytes(), c.callee(a.else_subgraph).workspace_bytes()));
  return make_kernel([a](RunContext& run) {
    Callee& taken = run.callee(is_true(run.input(0)) ? a.then_subgraph : a.else_subgraph);
    copy_results(run, taken.run(run.inputs().subspan(1), run.scratch()));
  });
}

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

/// Runs the loop and gives views of the final state: the inputs themselves when no round was run.
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
  c.require(c.input_count() == c.output_count(), "{} inputs but {} outputs", c.input_count(), c.output_count());
  for (int i = 0; i < c.input_count(); ++i) {
    c.require(c.output(i).dtype() == c.input(i).dtype(), "input {} is {}, output {} is {}", i,
              dtype_name(c.input(i).dtype()), i, dtype_name(c.output(i).dtype()));
  }
  if (plan_loop(c)) {
    c.require(c.callee(a.cond_subgraph).output_shape(0).elements() == 1,
              "condition subgraph {} gives shape {}, expected one value", a.cond_subgraph,
              c.callee(a.cond_subgraph).output_shape(0).to_string());
    c.callee(a.body_subgraph).forget_results();
    for (int i = 0; i < c.output_count(); ++i) c.set_output_shape(i, c.input(i).shape);
    return;
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
  registry.add({.name = "CALL_ONCE",
                .code = 129,
                .min_outputs = 0,
                .max_outputs = 0,
                .options = {1, 103},
                .make_attributes = make_attributes<CallOnceAttributes>,
                .infer = infer_call_once,
                .prepare = prepare_call_once,
                .pure = false,
                .types = "any"});
  registry.add({.name = "IF",
                .code = 118,
                .min_inputs = 1,
                .max_inputs = -1,
                .required_inputs = 1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = {1, 92},
                .make_attributes = make_attributes<IfAttributes>,
                .infer = infer_if,
                .prepare = prepare_if,
                .pure = false,
                .types = "any"});
  registry.add({.name = "WHILE",
                .code = 119,
                .max_inputs = -1,
                .min_outputs = 0,
                .max_outputs = -1,
                .options = {1, 93},
                .make_attributes = make_attributes<WhileAttributes>,
                .infer = infer_while,
                .prepare = prepare_while,
                .pure = false,
                .types = "any"});
}

}  // namespace leadline::ops

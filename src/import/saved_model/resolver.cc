// SPDX-License-Identifier: Apache-2.0
// follow() steps without recursion. Only a While, If or Case on the way recurses, and how deep is limited.
#include "import/saved_model/resolver.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace leadline::saved_model {
namespace {

constexpr int kMaxCallDepth = 100;    // of calls in calls
constexpr size_t kMaxFrames = 50000;  // calls in all: functions that call others twice grow without bound
constexpr size_t kMaxPlanning = 100;  // control flow that waits for other control flow

/// Ops whose output is their first input, as far as values go.
bool is_identity(std::string_view op) {
  static constexpr std::array<std::string_view, 12> kOps = {
      "Identity", "StopGradient", "PreventGradient", "Snapshot",        "CheckNumerics", "PlaceholderWithDefault",
      "DeepCopy", "RefIdentity",  "CheckNumericsV2", "DebugIdentityV2", "DebugIdentity", "Print"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

bool is_partitioned_call(std::string_view op) { return op == "PartitionedCall" || op == "StatefulPartitionedCall"; }
bool is_loop(std::string_view op) { return op == "While" || op == "StatelessWhile"; }
bool is_if(std::string_view op) { return op == "If" || op == "StatelessIf"; }
bool is_handle(const Body& body, size_t argument) {
  return body.function->signature.inputs[argument].type == TfType::kResource;
}
bool is_case(std::string_view op) { return op == "Case" || op == "StatelessCase"; }

}  // namespace

Resolver::Resolver(Program& program, std::set<std::pair<int, int>> fed, const std::set<std::string>* kept)
    : program_(program), fed_(std::move(fed)), kept_(kept) {
  frames_.push_back({&program.main(), "", 0, {}});
}

const NodeDef& Resolver::node(const Ref& ref) const {
  return (*frame(ref.frame).body->nodes)[static_cast<size_t>(ref.node)];
}

bool Resolver::is_constant(const Ref& ref) const {
  return ref.node != Operand::kArgument && !is_fed(ref) && node(ref).op == "Const";
}

bool Resolver::is_variable(const Ref& ref) const {
  if (ref.node == Operand::kArgument || is_fed(ref)) return false;
  const std::string_view op = node(ref).op;
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}

bool Resolver::is_kept(const Ref& ref) const {
  return kept_ != nullptr && is_variable(ref) && kept_->contains(std::string(variable_name(ref)));
}

bool Resolver::is_table(const Ref& ref) const {
  if (ref.node == Operand::kArgument || is_fed(ref)) return false;
  const std::string_view op = node(ref).op;
  return op == "HashTableV2" || op == "HashTable";
}

std::string_view Resolver::variable_name(const Ref& ref) const {
  const AttrValue* const shared = find_attr(node(ref).attrs, "shared_name");
  return shared != nullptr && !shared->s.empty() ? shared->s : node(ref).name;
}

bool Resolver::is_call(const NodeDef& node) const {
  return is_partitioned_call(node.op) || program_.has_function(node.op);
}

bool Resolver::is_control(const NodeDef& node) { return is_loop(node.op) || is_if(node.op) || is_case(node.op); }

std::string_view Resolver::function_name(const NodeDef& node, std::string_view attr) const {
  const AttrValue* const value = find_attr(node.attrs, attr);
  if (value == nullptr || value->kind != AttrValue::Kind::kFunction)
    program_.fail_node(node, ErrorCode::kInvalidModel, fmt::format("it lacks the function '{}'", attr));
  return value->s;
}

std::vector<Ref> Resolver::inputs(int frame_index, int node_index) {
  const Body& body = *frame(frame_index).body;
  std::vector<Ref> refs;
  for (const Operand& operand : program_.data_operands(body, (*body.nodes)[static_cast<size_t>(node_index)]))
    refs.push_back(follow(ref(frame_index, operand)));
  return refs;
}

Ref Resolver::follow(Ref start) {
  std::vector<Ref> path;
  std::unordered_set<Ref, RefHash> seen;
  Ref at = start;
  bool read = false;
  while (true) {
    if (const auto known = known_.find(at); known != known_.end()) {
      at = known->second;
      break;
    }
    if (!seen.insert(at).second) {
      fail(ErrorCode::kInvalidModel, "{}: '{}' depends on itself", program_.file().name(),
           at.node == Operand::kArgument ? std::string("an argument") : printable(node(at).name));
    }
    path.push_back(at);
    if (!step(at, read)) break;
  }
  if (read && !is_variable(at)) {
    const std::string what = at.node == Operand::kArgument ? "an argument" : printable(node(at).name);
    fail(ErrorCode::kUnsupported, "{}: the variable that is read through '{}' is not known before running",
         program_.file().name(), what);
  }
  for (const Ref& passed : path) {
    program_.file().charge(64);
    known_.emplace(passed, at);
  }
  return at;
}

/// Goes one step towards the origin; false when `ref` is it.
bool Resolver::step(Ref& ref, bool& read) {
  if (ref.node == Operand::kArgument) {
    const Frame::Argument& argument = frame(ref.frame).arguments[static_cast<size_t>(ref.output)];
    if (argument.free) return false;
    ref = argument.value;
    return true;
  }
  if (is_fed(ref)) return false;
  const NodeDef& current = node(ref);
  const Body& body = *frame(ref.frame).body;
  const auto input = [&](size_t number) {
    size_t data = 0;
    for (const std::string_view text : current.inputs) {
      if (text.starts_with('^') || data++ != number) continue;
      return this->ref(ref.frame, program_.operand(body, text, current.name));
    }
    program_.fail_node(current, ErrorCode::kInvalidModel, fmt::format("it has no input {}", number));
  };
  if (current.op == "ReadVariableOp" && keeps_any() && is_kept(follow(input(0)))) return false;
  if (is_identity(current.op) || current.op == "ReadVariableOp") {
    read = read || current.op == "ReadVariableOp";
    ref = input(0);
  } else if (current.op == "IdentityN") {
    ref = input(static_cast<size_t>(ref.output));
  } else if (is_call(current)) {
    const int inside = callee(ref.frame, ref.node);
    const Body& function = *frame(inside).body;
    if (static_cast<size_t>(ref.output) >= function.returns.size())
      program_.fail_node(current, ErrorCode::kInvalidModel, fmt::format("it has no output {}", ref.output));
    const std::string_view source = function.returns[static_cast<size_t>(ref.output)];
    ref = this->ref(inside, program_.operand(function, source, function.function->signature.name));
  } else if (is_loop(current.op)) {
    const auto& kept = control(ref.frame, ref.node).kept;
    if (std::find(kept.begin(), kept.end(), ref.output) != kept.end()) return false;
    ref = input(static_cast<size_t>(ref.output));
  } else {
    return false;
  }
  return true;
}

int Resolver::add_frame(std::string_view function, int caller, const NodeDef& call, size_t arguments) {
  const Body& body = program_.function(function);
  if (body.argument_index.size() != arguments) {
    program_.fail_node(call, ErrorCode::kInvalidModel,
                       fmt::format("it passes {} tensors to function '{}', which takes {}", arguments,
                                   printable(function), body.argument_index.size()));
  }
  const int depth = frame(caller).depth + 1;
  if (depth > kMaxCallDepth || frames_.size() >= kMaxFrames)
    program_.fail_node(call, ErrorCode::kUnsupported, "functions call functions too deep or too often");
  Frame made{&body, frame(caller).path + std::string(call.name) + "/", depth, {}};
  made.arguments.resize(arguments);
  program_.file().charge(sizeof(Frame) + made.path.size() + arguments * sizeof(Frame::Argument));
  frames_.push_back(std::move(made));
  return frame_count() - 1;
}

int Resolver::callee(int frame_index, int node_index) {
  const auto known = callees_.find(key(frame_index, node_index));
  if (known != callees_.end()) return known->second;
  const Body& body = *frame(frame_index).body;
  const NodeDef& call = (*body.nodes)[static_cast<size_t>(node_index)];
  const std::string_view name = is_partitioned_call(call.op) ? function_name(call, "f") : call.op;
  const std::vector<Operand> operands = program_.data_operands(body, call);
  const int made = add_frame(name, frame_index, call, operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    frames_[static_cast<size_t>(made)].arguments[i] = {false, ref(frame_index, operands[i])};
  callees_.emplace(key(frame_index, node_index), made);
  return made;
}

const Control& Resolver::control(int frame_index, int node_index) {
  const int64_t id = key(frame_index, node_index);
  const auto known = controls_.find(id);
  if (known != controls_.end()) return known->second;
  const Body& body = *frame(frame_index).body;
  const NodeDef& current = (*body.nodes)[static_cast<size_t>(node_index)];
  if (planning_.size() >= kMaxPlanning || !planning_.insert(id).second)
    program_.fail_node(current, ErrorCode::kUnsupported, "it depends on itself, or on too many others like it");
  const std::vector<Operand> operands = program_.data_operands(body, current);
  Control made =
      is_loop(current.op) ? plan_loop(frame_index, current, operands) : plan_branches(frame_index, current, operands);
  planning_.erase(id);
  return controls_.emplace(id, std::move(made)).first->second;
}

Control Resolver::plan_loop(int frame_index, const NodeDef& current, const std::vector<Operand>& operands) {
  const std::string_view cond = function_name(current, "cond");
  const std::string_view body_name = function_name(current, "body");
  // A first frame with all arguments free shows which ones the body hands on unchanged.
  const int trial = add_frame(body_name, frame_index, current, operands.size());
  const Body& body = *frame(trial).body;
  if (body.returns.size() != operands.size()) {
    program_.fail_node(
        current, ErrorCode::kInvalidModel,
        fmt::format("the body returns {} tensors, the loop has {}", body.returns.size(), operands.size()));
  }
  Control plan;
  plan.loop = true;
  plan.frames = {add_frame(cond, frame_index, current, operands.size()),
                 add_frame(body_name, frame_index, current, operands.size())};
  std::vector<Ref> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    values.push_back(follow(ref(frame_index, operands[i])));
    // Handles of variables stay what they are, so that what the body reads through them is known.
    if (is_handle(body, i) && (is_variable(values[i]) || is_table(values[i])))
      frames_[static_cast<size_t>(trial)].arguments[i] = {false, values[i]};
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const Ref value = values[i];
    bool bound = false;
    if (is_variable(value) || is_table(value) || is_constant(value)) {
      const Ref returned = follow(ref(trial, program_.operand(body, body.returns[i], body.function->signature.name)));
      bound = returned == (is_handle(body, i) ? value : Ref{trial, Operand::kArgument, static_cast<int>(i)});
      if (is_handle(body, i) && !bound)
        program_.fail_node(current, ErrorCode::kUnsupported, "its body exchanges a variable for another");
    }
    if (!bound) {
      plan.kept.push_back(static_cast<int>(i));
      continue;
    }
    for (const int f : plan.frames) frames_[static_cast<size_t>(f)].arguments[i] = {false, value};
  }
  return plan;
}

Control Resolver::plan_branches(int frame_index, const NodeDef& current, const std::vector<Operand>& operands) {
  std::vector<std::string_view> names;
  if (is_if(current.op)) {
    names = {function_name(current, "then_branch"), function_name(current, "else_branch")};
  } else {
    const AttrValue* const branches = find_attr(current.attrs, "branches");
    if (branches != nullptr && branches->kind == AttrValue::Kind::kList) names = branches->parts->functions;
  }
  if (names.empty() || operands.empty())
    program_.fail_node(current, ErrorCode::kInvalidModel, "it has no branches, or nothing to choose one by");
  Control plan;
  for (const std::string_view name : names)
    plan.frames.push_back(add_frame(name, frame_index, current, operands.size() - 1));
  for (size_t i = 1; i < operands.size(); ++i) {
    const Ref value = follow(ref(frame_index, operands[i]));
    if (!is_variable(value) && !is_table(value) && !is_constant(value)) {
      plan.kept.push_back(static_cast<int>(i - 1));
      continue;
    }
    for (const int f : plan.frames) frames_[static_cast<size_t>(f)].arguments[i - 1] = {false, value};
  }
  return plan;
}

}  // namespace leadline::saved_model

// SPDX-License-Identifier: Apache-2.0
// Starts at the outputs and takes what they need, depth first, without recursion; only the functions of While, If and
// Case recurse, no deeper than calls may be nested.
#include "import/saved_model/flatten.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "core/error.h"
#include "import/saved_model/custom_op.h"
#include "import/saved_model/effects.h"
#include "import/saved_model/op_call.h"
#include "import/saved_model/resolver.h"
#include "import/saved_model/state_check.h"
#include "import/saved_model/tensor_proto.h"

namespace leadline::saved_model {
namespace {

bool is_old_control_flow(std::string_view op) {
  static constexpr std::array<std::string_view, 12> kOps = {
      "Switch",    "Merge",    "Enter",    "Exit",    "NextIteration",    "LoopCond",
      "RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration", "_SwitchN"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

int32_t small_type(int64_t number) { return number >= 0 && number <= INT32_MAX ? static_cast<int32_t>(number) : 0; }

/// Keeps the listed elements of a list attribute.
void keep_elements(Attrs& attrs, std::string_view name, const std::vector<int>& kept) {
  for (Attr& attr : attrs) {
    if (attr.name != name || attr.value.kind != AttrValue::Kind::kList) continue;
    auto parts = std::make_shared<AttrParts>();
    for (const int i : kept) {
      const auto at = static_cast<size_t>(i);
      if (at < attr.value.parts->ints.size()) parts->ints.push_back(attr.value.parts->ints[at]);
      if (at < attr.value.parts->shapes.size()) parts->shapes.push_back(attr.value.parts->shapes[at]);
    }
    attr.value.parts = std::move(parts);
    attr.value.message = {};
  }
}

class Flattener {
 public:
  Flattener(FlatModel& model, ConstantPool& pool, Resolver& resolver, const ChangedVariables& changed,
            std::set<std::string>& kept)
      : model_(model), pool_(pool), resolver_(resolver), program_(resolver.program()), changed_(changed), kept_(kept) {}

  struct Output {
    FlatTensor tensor;
    Ref source;
  };

  /// `inputs` and `numbers`: the tensors that are given, and which of them a tensor is. `effects`: what is read and
  /// written on the way, in order.
  int add_function(std::string name, std::vector<FlatTensor> inputs, std::unordered_map<Ref, int, RefHash> numbers,
                   std::vector<Output> outputs, const std::vector<Ref>& effects) {
    const auto index = static_cast<int>(model_.functions.size());
    model_.functions.emplace_back();
    Scope scope;
    scope.function.name = std::move(name);
    scope.function.inputs = std::move(inputs);
    scope.numbers = std::move(numbers);
    for (const Ref& effect : effects) visit(scope, effect);
    for (Output& output : outputs) {
      const Ref source = resolver_.follow(output.source);
      visit(scope, source);
      scope.function.output_values.push_back(value(scope, source));
      scope.function.outputs.push_back(std::move(output.tensor));
    }
    model_.functions[static_cast<size_t>(index)] = std::move(scope.function);
    return index;
  }

 private:
  static constexpr int kInProgress = -1;
  struct Scope {
    FlatFunction function;
    std::unordered_map<Ref, int, RefHash> numbers;
    std::unordered_map<Ref, int, RefHash> nodes;  // output 0 stands for the node
    std::unordered_set<std::string> names;
    std::unordered_map<std::string, int> numbered;  // the last number that a taken name was given
  };
  struct Visit {
    Ref node;
    std::vector<Ref> inputs;
    size_t next = 0;
  };

  bool is_node(const Scope& scope, const Ref& ref) const {
    return ref.node != Operand::kArgument && !scope.numbers.contains(ref) && !resolver_.is_constant(ref) &&
           (!resolver_.is_variable(ref) || resolver_.is_kept(ref));
  }

  void visit(Scope& scope, const Ref& root) {
    std::vector<Visit> stack;
    const auto push = [&](Ref ref) {
      if (!is_node(scope, ref)) return;
      ref.output = 0;
      const auto [at, is_new] = scope.nodes.emplace(ref, kInProgress);
      const NodeDef& node = resolver_.node(ref);
      if (is_new) {
        check_op(node);
        stack.push_back({ref, node_inputs(ref), 0});
      } else if (at->second == kInProgress) {
        program_.fail_node(node, ErrorCode::kInvalidModel, "it depends on itself");
      }
    };
    push(root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next < top.inputs.size()) {
        push(top.inputs[top.next++]);
        continue;
      }
      const Visit done = std::move(top);
      stack.pop_back();
      emit(scope, done);
    }
  }

  void check_op(const NodeDef& node) const {
    if (node.op == "Placeholder")
      program_.fail_node(node, ErrorCode::kInvalidArgument,
                         "the outputs need it, but it is not an input of the signature");
    if (is_old_control_flow(node.op)) {
      program_.fail_node(node, ErrorCode::kUnsupported,
                         "control flow of TensorFlow 1; call tf.compat.v1.enable_control_flow_v2() before building "
                         "the graph and save it again. TensorFlow says: Failed to functionalize Control Flow V1 ops. "
                         "Consider using Control Flow V2 ops instead. See https://www.tensorflow.org/api_docs/python/"
                         "tf/compat/v1/enable_control_flow_v2.");
    }
    if (changes_state(node.op) && !is_assignment(node.op)) {
      program_.fail_node(node, ErrorCode::kUnsupported,
                         fmt::format("it changes a variable in a way that has no conversion; {}", kAssignments));
    }
  }

  /// Data inputs; of control flow only those that its functions keep.
  std::vector<Ref> node_inputs(const Ref& ref) {
    std::vector<Ref> inputs = resolver_.inputs(ref.frame, ref.node);
    if (!Resolver::is_control(resolver_.node(ref))) return inputs;
    const Control& control = resolver_.control(ref.frame, ref.node);
    const size_t first = control.loop ? 0 : 1;
    std::vector<Ref> kept(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(first));
    for (const int i : control.kept) kept.push_back(inputs[static_cast<size_t>(i) + first]);
    return kept;
  }

  ValueRef value(const Scope& scope, const Ref& ref) {
    const auto number = scope.numbers.find(ref);
    if (number != scope.numbers.end()) return {ValueRef::Kind::kInput, number->second, 0};
    require(ref.node != Operand::kArgument, ErrorCode::kInternal, "{}: an argument without a value",
            program_.file().name());
    const NodeDef& node = resolver_.node(ref);
    if (resolver_.is_constant(ref)) return {ValueRef::Kind::kConstant, pool_.constant(node), 0};
    if (resolver_.is_variable(ref) && !resolver_.is_kept(ref)) {
      note_read(resolver_.variable_name(ref));
      return {ValueRef::Kind::kConstant, pool_.variable(node, resolver_.variable_name(ref)), 0};
    }
    int output = ref.output;
    if (Resolver::is_control(node) && resolver_.control(ref.frame, ref.node).loop) {
      const auto& kept = resolver_.control(ref.frame, ref.node).kept;
      output = static_cast<int>(std::find(kept.begin(), kept.end(), output) - kept.begin());
    }
    return {ValueRef::Kind::kNode, scope.nodes.at({ref.frame, ref.node, 0}), output};
  }

  /// A variable that changes is not the constant it is read as here: it has to be kept.
  void note_read(std::string_view variable) {
    const auto at = changed_.find(std::string(variable));
    if (at == changed_.end()) return;
    if (!is_assignment(at->second->op)) {
      program_.fail_node(
          *at->second, ErrorCode::kUnsupported,
          fmt::format("it changes variable '{}', which the outputs depend on, in a way that has no conversion; {}",
                      printable(variable), kAssignments));
    }
    kept_.insert(at->first);
  }

  void emit(Scope& scope, const Visit& done) {
    const NodeDef& node = resolver_.node(done.node);
    FlatNode flat;
    flat.op = node.op;
    flat.name = unique_name(scope, done.node);
    flat.outputs = program_.output_count(node);
    for (const Ref& input : done.inputs) flat.inputs.push_back(value(scope, input));
    add_attrs(node, flat.attrs);
    if (Resolver::is_control(node)) add_functions(done.node, node, flat);
    if (resolver_.is_kept(done.node)) flat.variable = pool_.variable(node, resolver_.variable_name(done.node));
    if (resolver_.is_table(done.node)) flat.table = pool_.table(node, resolver_.variable_name(done.node));
    if (runs_as_flex(node.op) || find_op(node.op) == nullptr) add_output_tensors(node, flat);
    program_.file().charge(sizeof(FlatNode) + flat.name.size() + flat.attrs.size() * sizeof(Attr) +
                           flat.inputs.size() * sizeof(ValueRef));
    scope.nodes[done.node] = static_cast<int>(scope.function.nodes.size());
    scope.function.nodes.push_back(std::move(flat));
  }

  void add_attrs(const NodeDef& node, Attrs& attrs) const {
    attrs = node.attrs;
    if (const OpSignature* const op = program_.op_def(node.op)) {
      for (const Attr& attr : op->defaults)
        if (find_attr(node.attrs, attr.name) == nullptr) attrs.push_back(attr);
    }
    for (const Attr& attr : attrs) {
      if (attr.value.kind == AttrValue::Kind::kPlaceholder) {
        program_.fail_node(node, ErrorCode::kUnsupported,
                           fmt::format("its attribute '{}' is a parameter of the function", printable(attr.name)));
      }
    }
  }

  /// Types come from the op's definition and the node's attributes, shapes from the hint TensorFlow leaves.
  void add_output_tensors(const NodeDef& node, FlatNode& flat) const {
    AttrValue shapes;
    if (!node.output_shapes.empty()) {
      WireFile file(program_.file().name(), ModelBytes::borrow(node.output_shapes, nullptr), nullptr);
      shapes = read_attr_value(WireReader(file, "AttrValue"));
    }
    for (const ArgDef& arg : program_.output_args(node.op)) {
      const AttrValue* const list = find_attr(flat.attrs, arg.type_list_attr);
      const AttrValue* const type = find_attr(flat.attrs, arg.type_attr);
      for (int64_t i = 0; i < program_.arg_size(node, arg); ++i) {
        FlatTensor tensor{std::string(arg.name), arg.type, {true, {}}};
        if (type != nullptr && type->kind == AttrValue::Kind::kType) tensor.dtype = tf_type(small_type(type->i));
        if (list != nullptr && list->kind == AttrValue::Kind::kList)
          tensor.dtype = tf_type(small_type(list->parts->ints.at(static_cast<size_t>(i))));
        const size_t number = flat.output_tensors.size();
        if (shapes.kind == AttrValue::Kind::kList && number < shapes.parts->shapes.size())
          tensor.shape = shapes.parts->shapes[number];
        flat.output_tensors.push_back(std::move(tensor));
      }
    }
  }

  void add_functions(const Ref& ref, const NodeDef& node, FlatNode& flat) {
    const Control control = resolver_.control(ref.frame, ref.node);
    const AttrValue* const shapes = find_attr(node.attrs, "output_shapes");
    for (const int index : control.frames) {
      const Body& body = *resolver_.frame(index).body;
      std::vector<FlatTensor> inputs;
      std::unordered_map<Ref, int, RefHash> numbers;
      for (const int i : control.kept) {
        const ArgDef& arg = body.function->signature.inputs[static_cast<size_t>(i)];
        FlatTensor input{std::string(arg.name), arg.type, {true, {}}};
        if (control.loop && shapes != nullptr && shapes->kind == AttrValue::Kind::kList &&
            static_cast<size_t>(i) < shapes->parts->shapes.size())
          input.shape = shapes->parts->shapes[static_cast<size_t>(i)];
        numbers.emplace(Ref{index, Operand::kArgument, i}, static_cast<int>(inputs.size()));
        inputs.push_back(std::move(input));
      }
      const bool is_body = control.loop && index != control.frames.front();
      std::vector<Output> outputs;
      for (size_t i = 0; i < body.returns.size(); ++i) {
        const bool dropped = is_body && std::find(control.kept.begin(), control.kept.end(), i) == control.kept.end();
        if (dropped) continue;
        const ArgDef& arg = body.function->signature.outputs[i];
        const Operand source = program_.operand(body, body.returns[i], body.function->signature.name);
        outputs.push_back({{std::string(arg.name), arg.type, {true, {}}}, resolver_.ref(index, source)});
      }
      flat.functions.push_back(add_function(std::string(body.function->signature.name), std::move(inputs),
                                            std::move(numbers), std::move(outputs),
                                            Effects(resolver_).of_frame(index)));
    }
    keep_elements(flat.attrs, control.loop ? "T" : "Tin", control.kept);
    if (!control.loop) return;
    keep_elements(flat.attrs, "output_shapes", control.kept);
    flat.outputs = static_cast<int>(control.kept.size());
  }

  std::string unique_name(Scope& scope, const Ref& ref) const {
    std::string name(resolver_.node(ref).name);
    if (scope.names.insert(name).second) return name;
    name = resolver_.frame(ref.frame).path + name;
    if (scope.names.insert(name).second) return name;
    int& last = scope.numbered[name];
    std::string candidate;
    do {
      candidate = fmt::format("{}_{}", name, ++last);
    } while (!scope.names.insert(candidate).second);
    return candidate;
  }

  FlatModel& model_;
  ConstantPool& pool_;
  Resolver& resolver_;
  Program& program_;
  const ChangedVariables& changed_;
  std::set<std::string>& kept_;
};

}  // namespace

int ConstantPool::constant(const NodeDef& node) {
  const auto [at, is_new] = constants_.emplace(&node, static_cast<int>(model_.constants.size()));
  if (!is_new) return at->second;
  const AttrValue* const value = find_attr(node.attrs, "value");
  if (value == nullptr || value->kind != AttrValue::Kind::kTensor)
    program_.fail_node(node, ErrorCode::kInvalidModel, "it has no value");
  const std::string what = fmt::format("{}, node '{}' (Const)", model_.file->name(), printable(node.name));
  FlatConstant made;
  made.name = std::string(node.name);
  made.dtype = value->tensor().dtype;
  made.shape = value->tensor().shape;
  made.source = make_tensor_source(model_.file, value->tensor(), what);
  model_.constants.push_back(std::move(made));
  return at->second;
}

int ConstantPool::variable(const NodeDef& node, std::string_view name) {
  const auto [at, is_new] = variables_.emplace(name, static_cast<int>(model_.constants.size()));
  if (!is_new) return at->second;
  const auto place = places_.find(std::string(name));
  const Bundle::Entry* const entry = place == places_.end() ? nullptr : bundle_->find(place->second.key);
  if (entry == nullptr) {
    program_.fail_node(node, ErrorCode::kInvalidModel,
                       fmt::format("the value of variable '{}' is not among the saved variables", printable(name)));
  }
  const AttrValue* const dtype = program_.attr(node, "dtype");
  if (dtype != nullptr && dtype->kind == AttrValue::Kind::kType && dtype->i != static_cast<int64_t>(entry->dtype)) {
    program_.fail_node(node, ErrorCode::kInvalidModel,
                       fmt::format("it is of {}, the saved value of {}",
                                   tf_type_name(tf_type(static_cast<int32_t>(dtype->i))), tf_type_name(entry->dtype)));
  }
  FlatConstant made;
  made.name = std::string(name);
  made.dtype = entry->dtype;
  made.variable = true;
  if (const auto& slice = place->second.slice) {
    made.shape = slice_shape(entry->shape, *slice, bundle_->describe(*entry));
    made.source = bundle_->source(*entry, *slice);
  } else {
    made.shape = entry->shape;
    made.source = bundle_->source(*entry);
  }
  model_.constants.push_back(std::move(made));
  return at->second;
}

int ConstantPool::table(const NodeDef& node, std::string_view name) {
  const auto [at, is_new] = tables_.emplace(name, static_cast<int>(model_.tables.size()));
  if (!is_new) return at->second;
  const auto type = [&](std::string_view attr) {
    const AttrValue* const value = program_.attr(node, attr);
    return value != nullptr && value->kind == AttrValue::Kind::kType ? tf_type(small_type(value->i)) : TfType::kInvalid;
  };
  FlatTable made{std::string(name), type("key_dtype"), type("value_dtype"), -1, -1};
  if (!contents_) contents_ = find_tables(program_);
  const auto found = contents_->find(made.name);
  if (found != contents_->end() && found->second.keys != nullptr) {
    made.keys = constant(*found->second.keys);
    made.values = constant(*found->second.values);
  } else if (found != contents_->end()) {
    const std::string path = directory_ + "/" + found->second.file;
    const auto [keys, values] = read_table(path, program_, *found->second.initializer, made.key, made.value);
    const auto add = [&](const TableColumn& column, TfType dtype, const char* what) {
      model_.constants.push_back(
          {fmt::format("{}/{}", name, what), dtype, {false, {column.count}}, false, column.source});
      return static_cast<int>(model_.constants.size()) - 1;
    };
    made.keys = add(keys, made.key, "keys");
    made.values = add(values, made.value, "values");
  }
  model_.tables.push_back(std::move(made));
  return at->second;
}

namespace {

/// The tensor of an entry of a signature.
Flattener::Output entry_tensor(const Program& program, const SignatureDef& signature,
                               const std::pair<std::string_view, TensorInfo>& entry) {
  const auto& [name, info] = entry;
  const std::string what = fmt::format("signature '{}'", printable(signature.key));
  require(!info.composite && !info.name.empty(), ErrorCode::kUnsupported,
          "{}: {}: '{}' is not a plain tensor (sparse and ragged ones are not supported)", program.file().name(), what,
          printable(name));
  const Operand operand = program.operand(program.main(), info.name, what);
  require(!operand.control, ErrorCode::kInvalidModel, "{}: {}: '{}' is not a tensor", program.file().name(), what,
          printable(info.name));
  return {{std::string(name), info.dtype, info.shape, std::string(info.name)},
          {Resolver::kMain, operand.node, operand.output}};
}

std::set<std::pair<int, int>> fed_tensors(const Program& program, const SignatureDef& signature) {
  std::set<std::pair<int, int>> fed;
  for (const auto& entry : signature.inputs) {
    const Ref source = entry_tensor(program, signature, entry).source;
    fed.emplace(source.node, source.output);
  }
  return fed;
}

}  // namespace

void find_changed(Program& program, const SignatureDef& signature, ChangedVariables& changed) {
  std::vector<Ref> sources;
  for (const auto& entry : signature.outputs) sources.push_back(entry_tensor(program, signature, entry).source);
  Resolver resolver(program, fed_tensors(program, signature));
  StateCheck state(resolver);
  state.run(sources);
  changed.insert(state.changed().begin(), state.changed().end());
}

void flatten_signature(FlatModel& model, Program& program, ConstantPool& pool, const SignatureDef& signature,
                       const ChangedVariables& changed, std::set<std::string>& kept) {
  std::vector<FlatTensor> inputs;
  std::unordered_map<Ref, int, RefHash> numbers;
  for (const auto& entry : signature.inputs) {
    Flattener::Output input = entry_tensor(program, signature, entry);
    // One placeholder may have several names: the first input stands for all.
    numbers.emplace(input.source, static_cast<int>(inputs.size()));
    inputs.push_back(std::move(input.tensor));
  }
  std::vector<Flattener::Output> outputs;
  std::vector<Ref> sources;
  for (const auto& entry : signature.outputs) {
    outputs.push_back(entry_tensor(program, signature, entry));
    sources.push_back(outputs.back().source);
  }
  require(!outputs.empty(), ErrorCode::kInvalidArgument, "{}: signature '{}' has no outputs", program.file().name(),
          printable(signature.key));
  const std::set<std::string> known = kept;  // as this resolver sees them; what is found now is for the next try
  Resolver resolver(program, fed_tensors(program, signature), &known);
  const std::vector<Ref> effects = Effects(resolver).of_outputs(sources);
  const int function =
      Flattener(model, pool, resolver, changed, kept)
          .add_function(std::string(signature.key), std::move(inputs), std::move(numbers), std::move(outputs), effects);
  model.signatures.emplace_back(signature.key, function);
}

}  // namespace leadline::saved_model

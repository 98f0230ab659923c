// SPDX-License-Identifier: Apache-2.0
// While, If and Case: their functions become subgraphs.
#include "import/saved_model/op_functions.h"
#include "ops/control_flow.h"

namespace leadline::saved_model {
namespace {

constexpr size_t kMaxBranches = 1024;

const FlatFunction& function_of(OpCall& call, size_t i) {
  require(i < call.node.functions.size(), kBad, "it has {} functions, expected {} or more", call.node.functions.size(),
          i + 1);
  return call.importer.model().functions[static_cast<size_t>(call.node.functions[i])];
}

std::vector<Dims> dims_of(Emitter& e, const std::vector<int>& values) {
  std::vector<Dims> result;
  for (const int v : values) result.push_back(e.dims(v));
  return result;
}

/// Where two shapes differ the size is unknown; ranks must agree.
Dims common(const Dims& a, const Dims& b) {
  require(a.size() == b.size(), ErrorCode::kUnsupported,
          "its functions give results of rank {} and {}; LiteRT runs only results of one rank", a.size(), b.size());
  Dims result = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) result[i] = -1;
  }
  return result;
}

/// Sizes of the state of a loop: what TensorFlow knows to stay the same.
std::vector<Dims> loop_dims(OpCall& call, const std::vector<int>& state) {
  std::vector<Dims> result = dims_of(call.e, state);
  const AttrValue* shapes = find_attr(call.node.attrs, "output_shapes");
  if (shapes == nullptr || shapes->parts == nullptr || shapes->parts->shapes.size() != result.size()) return result;
  for (size_t i = 0; i < result.size(); ++i) {
    const TensorShape& shape = shapes->parts->shapes[i];
    // The shape of a list in TensorFlow is that of its handle.
    if (i < function_of(call, 1).inputs.size() && function_of(call, 1).inputs[i].dtype == TfType::kVariant) continue;
    if (!shape.unknown_rank && shape.dims.size() == result[i].size()) result[i] = common(result[i], Dims(shape.dims));
  }
  return result;
}

/// The size that `lists` has along `axis` as a vector of one, taken from a tensor known before the loop.
int find_size(OpCall& call, const ops::SizeSamples& lists, int axis) {
  if (const auto size = lists.common_size(axis)) return call.e.ints({small(*size)});
  std::vector<int> known = call.inputs;
  for (size_t i = 0; i < call.function.inputs.size(); ++i) {
    known.push_back(call.value({ValueRef::Kind::kInput, static_cast<int>(i), 0}));
  }
  for (const int v : known) {
    const ops::SizeSamples samples = call.builder().samples(v);
    for (int own = 0; own < call.e.rank(v); ++own) {
      if (lists.same_size(axis, samples, own)) return call.e.shape_part(v, own, own + 1);
    }
  }
  call.unsupported(
      "fills a list with elements whose size is not known before the loop; give the TensorArray an element_shape");
}

/// A blank list as one of zeros, when elements have the shapes of `lists` without the first axis.
int fill_blank(OpCall& call, int list, DType dtype, const Dims& dims, const ops::SizeSamples& lists) {
  std::vector<int> sizes = {call.e.reshape(list, {1})};
  for (size_t axis = 1; axis < dims.size(); ++axis) sizes.push_back(find_size(call, lists, static_cast<int>(axis)));
  return zeros_of(call, call.e.concat(sizes, 0), dtype, lists);
}

using Emit = std::function<std::vector<int>(const std::vector<int>&)>;

std::vector<int> emit_if(OpCall& call, int condition, const std::vector<int>& arguments, const Emit& then_emit,
                         const Emit& else_emit) {
  Emitter& e = call.e;
  const std::vector<Dims> dims = dims_of(e, arguments);
  const std::string name = call.node.name;
  const Importer::Body then_body = call.importer.body(name + "_then", arguments, dims, then_emit);
  const Importer::Body else_body = call.importer.body(name + "_else", arguments, dims, else_emit);
  require(then_body.dims.size() == else_body.dims.size() && then_body.dtypes == else_body.dtypes, kBad,
          "its functions give different results");
  auto attributes = std::make_shared<ops::IfAttributes>();
  attributes->then_subgraph = then_body.subgraph;
  attributes->else_subgraph = else_body.subgraph;
  ops::NodeSpec spec;
  spec.op = "IF";
  spec.inputs = {condition};
  spec.inputs.insert(spec.inputs.end(), arguments.begin(), arguments.end());
  for (size_t i = 0; i < then_body.dims.size(); ++i) {
    spec.outputs.push_back({call.name(), then_body.dtypes[i], {}, common(then_body.dims[i], else_body.dims[i])});
  }
  spec.attributes = attributes;
  Outputs results = call.builder().add(std::move(spec));
  for (size_t i = 0; i < results.size(); ++i) {
    require(then_body.blank[i] == else_body.blank[i], ErrorCode::kUnsupported,
            "one of its functions writes to a list, another leaves it empty; write to it before");
    if (then_body.blank[i]) call.importer.mark_blank(results[i], *then_body.blank[i]);
  }
  return results;
}

std::vector<int> rest(const std::vector<int>& values) { return {values.begin() + 1, values.end()}; }

/// Branches `first` to `last`; `arguments` begin with the number of the branch. Numbers out of range take the last.
/// Halves, so that the bodies nest as little as they can.
std::vector<int> emit_case(OpCall& call, size_t first, size_t last, const std::vector<int>& arguments) {
  Emitter& e = call.e;
  if (first == last) return call.importer.call(function_of(call, first), rest(arguments));
  const size_t half = first + (last - first) / 2;
  const int below = e.compare("LESS_EQUAL", arguments[0], e.integer(static_cast<int32_t>(half)));
  return emit_if(
      call, below, arguments, [&](const std::vector<int>& inside) { return emit_case(call, first, half, inside); },
      [&](const std::vector<int>& inside) { return emit_case(call, half + 1, last, inside); });
}

/// A loop's state: the values before it, and the sizes that hold in every round.
class Loop {
 public:
  explicit Loop(OpCall& call) : call_(call), state_(call.inputs), dims_(loop_dims(call, state_)) {}

  Outputs emit() {
    Importer::Body body;
    Importer::Body condition;
    for (bool settled = false; !settled;) {
      call_.importer.count_trial();
      condition = body_of("_cond", 0);
      body = body_of("_body", 1);
      require(body.dims.size() == state_.size(), kBad, "the body has {} results for {} inputs", body.dims.size(),
              state_.size());
      settled = !fill_lists(body) && !loosen(body);
      if (!settled) call_.builder().drop_subgraphs(condition.subgraph);
    }
    require(condition.dims.size() == 1 && condition.dtypes[0] == DType::kBool, ErrorCode::kUnsupported,
            "its condition is not one boolean");
    auto attributes = std::make_shared<ops::WhileAttributes>();
    attributes->cond_subgraph = condition.subgraph;
    attributes->body_subgraph = body.subgraph;
    ops::NodeSpec spec;
    spec.op = "WHILE";
    spec.inputs = state_;
    for (size_t i = 0; i < state_.size(); ++i) {
      spec.outputs.push_back({call_.name(), call_.e.dtype(state_[i]), {}, dims_[i]});
    }
    spec.attributes = attributes;
    Outputs results = call_.builder().add(std::move(spec));
    for (size_t i = 0; i < results.size(); ++i) {
      if (body.blank[i]) call_.importer.mark_blank(results[i], *body.blank[i]);
    }
    return results;
  }

 private:
  Importer::Body body_of(const char* suffix, size_t function) {
    return call_.importer.body(call_.node.name + suffix, state_, dims_, [&](const std::vector<int>& inside) {
      return call_.importer.call(function_of(call_, function), inside);
    });
  }

  /// Sets the shape of lists that the body writes to. False when there was none.
  bool fill_lists(const Importer::Body& body) {
    bool any = false;
    for (size_t i = 0; i < state_.size(); ++i) {
      const auto element = call_.importer.blank_list(state_[i]);
      if (!element || body.blank[i]) continue;
      state_[i] = fill_blank(call_, state_[i], body.dtypes[i], body.dims[i], body.samples[i]);
      dims_[i] = call_.e.dims(state_[i]);
      any = true;
    }
    return any;
  }

  /// Sizes that a round changes are unknown. False when all stay the same.
  bool loosen(const Importer::Body& body) {
    bool any = false;
    for (size_t i = 0; i < state_.size(); ++i) {
      require(body.dtypes[i] == call_.e.dtype(state_[i]), kBad, "the body returns {} for its input {} of type {}",
              dtype_name(body.dtypes[i]), i, dtype_name(call_.e.dtype(state_[i])));
      const Dims loose = common(dims_[i], body.dims[i]);
      any = any || loose != dims_[i];
      dims_[i] = loose;
    }
    return any;
  }

  OpCall& call_;
  std::vector<int> state_;
  std::vector<Dims> dims_;
};

}  // namespace

Outputs while_loop(OpCall& call) { return Loop(call).emit(); }

Outputs if_else(OpCall& call) {
  Emitter& e = call.e;
  int condition = call.in();
  if (e.dtype(condition) != DType::kBool) {
    condition = e.compare("NOT_EQUAL", condition, e.scalar_like(condition, 0.0));
  }
  require(e.rank(condition) == 0, ErrorCode::kUnsupported, "the condition has rank {}, expected a scalar",
          e.rank(condition));
  const auto emit = [&](size_t i) {
    return [&call, i](const std::vector<int>& inside) { return call.importer.call(function_of(call, i), inside); };
  };
  return emit_if(call, condition, rest(call.inputs), emit(0), emit(1));
}

Outputs switch_case(OpCall& call) {
  const size_t count = call.node.functions.size();
  require(count >= 1 && count <= kMaxBranches, ErrorCode::kUnsupported, "it has {} branches; Leadline converts 1 to {}",
          count, kMaxBranches);
  Emitter& e = call.e;
  // A negative number takes the last branch, too.
  const int last = e.integer(static_cast<int32_t>(count - 1));
  const int number = call.in32(0);
  std::vector<int> arguments = call.inputs;
  arguments[0] = count == 1 ? number : e.select(e.compare("LESS", number, e.integer(0)), last, number);
  return emit_case(call, 0, count - 1, arguments);
}

}  // namespace leadline::saved_model

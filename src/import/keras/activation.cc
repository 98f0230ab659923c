// SPDX-License-Identifier: Apache-2.0
// Activations: one function per name, for layers and for the `activation` of others.
#include "ops/activation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/functions.h"
#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

/// Parameters of an activation, with the defaults of Keras where its configuration has none.
struct Parameters {
  const Config* config;
  bool keras_2 = false;
  double number(std::string_view key, double otherwise) const {
    return config != nullptr && config->is_object() ? config->number(key, otherwise) : otherwise;
  }
  bool boolean(std::string_view key, bool otherwise) const {
    return config != nullptr && config->is_object() ? config->boolean(key, otherwise) : otherwise;
  }
};

using ActivationFunction = int (*)(Emitter&, int, const Parameters&);

int leaky(Emitter& e, int x, double slope) {
  ops::LeakyReluAttributes attributes;
  attributes.alpha = static_cast<float>(slope);
  return e.builder().node("LEAKY_RELU", {x}, e.name("LeakyRelu"), attributes);
}

/// max_value, negative_slope and threshold as keras.layers.ReLU has them.
int general_relu(Emitter& e, int x, double max_value, double slope, double threshold) {
  const bool bounded = std::isfinite(max_value);
  if (threshold == 0.0 && slope == 0.0) {
    if (!bounded) return e.unary("RELU", x);
    if (max_value == 6.0) return e.unary("RELU6", x);
    return e.binary("MINIMUM", e.unary("RELU", x), e.scalar_like(x, max_value));
  }
  if (threshold == 0.0) {
    const int y = leaky(e, x, slope);
    return bounded ? e.binary("MINIMUM", y, e.scalar_like(x, max_value)) : y;
  }
  // Below the threshold: slope * (x - threshold); above it: x.
  const int limit = e.scalar_like(x, threshold);
  const int upper = bounded ? e.binary("MINIMUM", x, e.scalar_like(x, max_value)) : x;
  const int lower = e.mul(e.sub(x, limit), slope);
  return e.select(e.compare("GREATER_EQUAL", x, limit), upper, lower);
}

int clip(Emitter& e, int x, double low, double high) {
  return e.binary("MINIMUM", e.binary("MAXIMUM", x, e.scalar_like(x, low)), e.scalar_like(x, high));
}

int gelu(Emitter& e, int x, bool approximate) {
  ops::GeluAttributes attributes;
  attributes.approximate = approximate;
  return e.builder().node("GELU", {x}, e.name("Gelu"), attributes);
}

int softmax_on(Emitter& e, int x, int64_t axis, const char* op) {
  const int last = e.rank(x) - 1;
  const int where = e.axis(x, axis);
  const auto run = [&](int y) { return std::string_view(op) == "SOFTMAX" ? e.softmax(y) : e.unary(op, y); };
  if (where == last) return run(x);
  std::vector<int> swap(static_cast<size_t>(last) + 1);
  for (int i = 0; i <= last; ++i) swap[static_cast<size_t>(i)] = i == where ? last : i == last ? where : i;
  return e.transpose(run(e.transpose(x, swap)), swap);
}

int64_t axis_of(const Parameters& p) { return static_cast<int64_t>(std::clamp(p.number("axis", -1), -100.0, 100.0)); }

/// What Keras calls sparsemax: zeros below a threshold that depends on all elements.
int sparsemax(Emitter& e, int x, int64_t axis) {
  const int where = e.axis(x, axis);
  const int last = e.rank(x) - 1;
  std::vector<int> swap(static_cast<size_t>(last) + 1);
  for (int i = 0; i <= last; ++i) swap[static_cast<size_t>(i)] = i == where ? last : i == last ? where : i;
  const int z = e.transpose(x, swap);
  const int64_t size = e.dims(z).back();
  require(size > 0 && size <= (1 << 20), ErrorCode::kUnsupported, "sparsemax over {} elements is not converted", size);
  ops::NodeSpec spec;
  spec.op = "TOPK_V2";
  spec.inputs = {z, e.integer(static_cast<int32_t>(size))};
  spec.outputs = {{e.name("sorted")}, {e.name("order"), DType::kInt32}};
  const int sorted = e.builder().add(std::move(spec))[0];
  const int sums = e.builder().node("CUMSUM", {sorted, e.integer(last)}, e.name("Cumsum"));
  std::vector<float> counts;
  for (int64_t i = 1; i <= size; ++i) counts.push_back(static_cast<float>(i));
  const int bound = e.div(e.add(sums, -1.0), e.floats(counts));
  const int support = e.cast(e.compare("GREATER", sorted, bound), DType::kFloat32);
  const int used = e.reduce("SUM", support, {last}, true);
  const int total = e.reduce("SUM", e.mul(sums, support), {last}, true);  // of partial sums, as Keras has it
  const int threshold = e.div(e.add(total, -1.0), used);
  return e.transpose(e.unary("RELU", e.sub(z, threshold)), swap);
}

int hard_sigmoid(Emitter& e, int x, bool keras_2) {
  if (keras_2) return clip(e, e.add(e.mul(x, 0.2), 0.5), 0.0, 1.0);
  return e.mul(e.unary("RELU6", e.add(x, 3.0)), 1.0 / 6.0);
}

struct Named {
  std::string_view name;
  ActivationFunction function;
};

constexpr Named kActivations[] = {
    {"linear", [](Emitter&, int x, const Parameters&) { return x; }},
    {"relu",
     [](Emitter& e, int x, const Parameters& p) {
       const double infinite = std::numeric_limits<double>::infinity();
       return general_relu(e, x, p.number("max_value", infinite), p.number("negative_slope", p.number("alpha", 0.0)),
                           p.number("threshold", 0.0));
     }},
    {"relu6", [](Emitter& e, int x, const Parameters&) { return e.unary("RELU6", x); }},
    {"leaky_relu", [](Emitter& e, int x,
                      const Parameters& p) { return leaky(e, x, p.number("negative_slope", p.number("alpha", 0.2))); }},
    {"elu", [](Emitter& e, int x, const Parameters& p) { return scaled_elu(e, x, p.number("alpha", 1.0), 1.0); }},
    {"selu", [](Emitter& e, int x, const Parameters&) { return selu(e, x); }},
    {"celu",
     [](Emitter& e, int x, const Parameters& p) {
       const double alpha = p.number("alpha", 1.0);
       if (alpha == 1.0) return e.unary("ELU", x);
       const int negative = e.unary("ELU", e.binary("MINIMUM", e.mul(x, 1.0 / alpha), e.scalar_like(x, 0.0)));
       return e.add(e.unary("RELU", x), e.mul(negative, alpha));
     }},
    {"gelu", [](Emitter& e, int x, const Parameters& p) { return gelu(e, x, p.boolean("approximate", false)); }},
    {"silu", [](Emitter& e, int x, const Parameters&) { return e.mul(x, e.unary("LOGISTIC", x)); }},
    {"swish", [](Emitter& e, int x, const Parameters&) { return e.mul(x, e.unary("LOGISTIC", x)); }},
    {"sigmoid", [](Emitter& e, int x, const Parameters&) { return e.unary("LOGISTIC", x); }},
    {"hard_sigmoid", [](Emitter& e, int x, const Parameters& p) { return hard_sigmoid(e, x, p.keras_2); }},
    {"hard_silu", [](Emitter& e, int x, const Parameters&) { return e.unary("HARD_SWISH", x); }},
    {"hard_swish", [](Emitter& e, int x, const Parameters&) { return e.unary("HARD_SWISH", x); }},
    {"tanh", [](Emitter& e, int x, const Parameters&) { return e.unary("TANH", x); }},
    {"hard_tanh", [](Emitter& e, int x, const Parameters&) { return clip(e, x, -1.0, 1.0); }},
    {"exponential", [](Emitter& e, int x, const Parameters&) { return e.unary("EXP", x); }},
    {"softplus", [](Emitter& e, int x, const Parameters&) { return softplus(e, x); }},
    {"softsign", [](Emitter& e, int x, const Parameters&) { return e.div(x, e.add(e.unary("ABS", x), 1.0)); }},
    {"mish", [](Emitter& e, int x, const Parameters&) { return e.mul(x, e.unary("TANH", softplus(e, x))); }},
    {"log_sigmoid",
     [](Emitter& e, int x, const Parameters&) { return e.unary("NEG", softplus(e, e.unary("NEG", x))); }},
    {"tanh_shrink", [](Emitter& e, int x, const Parameters&) { return e.sub(x, e.unary("TANH", x)); }},
    {"soft_shrink",
     [](Emitter& e, int x, const Parameters& p) {
       const double t = p.number("threshold", 0.5);
       return e.sub(x, clip(e, x, -t, t));
     }},
    {"hard_shrink",
     [](Emitter& e, int x, const Parameters& p) {
       const int t = e.scalar_like(x, p.number("threshold", 0.5));
       return e.select(e.compare("GREATER", e.unary("ABS", x), t), x, e.scalar_like(x, 0.0));
     }},
    {"threshold",
     [](Emitter& e, int x, const Parameters& p) {
       const int t = e.scalar_like(x, p.number("threshold", p.number("threshold_value", 0.0)));
       return e.select(e.compare("GREATER", x, t), x, e.scalar_like(x, p.number("default_value", 0.0)));
     }},
    {"squareplus",
     [](Emitter& e, int x, const Parameters& p) {
       const int root = e.unary("SQRT", e.add(e.mul(x, x), p.number("b", 4.0)));
       return e.mul(e.add(x, root), 0.5);
     }},
    {"sparse_plus",
     [](Emitter& e, int x, const Parameters&) {
       const int shifted = e.add(clip(e, x, -1.0, 1.0), 1.0);
       const int parabola = e.mul(e.mul(shifted, shifted), 0.25);
       return e.select(e.compare("LESS", x, e.scalar_like(x, 1.0)), parabola, x);
     }},
    {"sparse_sigmoid",
     [](Emitter& e, int x, const Parameters&) { return clip(e, e.mul(e.add(x, 1.0), 0.5), 0.0, 1.0); }},
    {"glu",
     [](Emitter& e, int x, const Parameters& p) {
       const std::vector<int> halves = e.split(x, e.axis(x, axis_of(p)), 2);
       return e.mul(halves[0], e.unary("LOGISTIC", halves[1]));
     }},
    {"sparsemax", [](Emitter& e, int x, const Parameters& p) { return sparsemax(e, x, axis_of(p)); }},
    {"softmax", [](Emitter& e, int x, const Parameters& p) { return softmax_on(e, x, axis_of(p), "SOFTMAX"); }},
    {"log_softmax", [](Emitter& e, int x, const Parameters& p) { return softmax_on(e, x, axis_of(p), "LOG_SOFTMAX"); }},
};

std::string snake(std::string_view class_name) {
  std::string word;
  for (size_t i = 0; i < class_name.size(); ++i) {
    const char c = class_name[i];
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && i > 0) word += '_';
    word += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return word;
}

}  // namespace

int activation(Call& call, int x, std::string_view name, const Config* config) {
  for (const Named& row : kActivations) {
    if (row.name == name) return row.function(call.e, x, {config, call.importer.is_keras_2()});
  }
  call.unsupported(
      fmt::format("has the activation '{}', which Leadline does not know; use a built-in one", printable(name)));
}

int activation(Call& call, int x, const Config& description) {
  if (description.is_null()) return x;
  if (description.is_text()) {
    std::string name = description.text();
    if (name.starts_with("keras.activations.")) name = name.substr(18);
    return activation(call, x, name);
  }
  if (!description.is_object()) description.wrong("an activation");
  const std::string class_name = description.text("class_name");
  const auto config = description.find("config");
  // A function is saved as {"class_name": "function", "config": "relu6"}, a layer with its own configuration.
  if (config && config->is_text()) return activation(call, x, *config);
  const Layer layer = call.inner(description, "activation");
  if (layer.foreign) return activation(call, x, layer.registered_name);
  if (const LayerClass* row = find_layer(class_name)) {
    Arguments arguments;
    arguments.positional.emplace_back();
    arguments.positional.back().tensor = x;
    Call inner(call.importer, call.e, layer, arguments);
    return row->emit(inner).at(0);
  }
  return activation(call, x, snake(class_name), config ? &*config : nullptr);
}

int activation_of(Call& call, int x, std::string_view key) {
  const auto found = call.config.find(key);
  return found ? activation(call, x, *found) : x;
}

Outputs activation_layer(Call& call) { return {activation_of(call, call.x(), "activation")}; }

Outputs named_activation(Call& call) {
  std::string name = snake(call.layer.class_name);
  if (name == "re_l_u") name = "relu";
  if (name == "relu6" || name == "re_l_u6") name = "relu6";
  if (name == "e_l_u") name = "elu";
  return {activation(call, call.x(), name, &call.config)};
}

Outputs relu_layer(Call& call) {
  const auto number = [&](std::string_view key, double otherwise) { return call.config.number(key, otherwise); };
  return {general_relu(call.e, call.x(), number("max_value", std::numeric_limits<double>::infinity()),
                       number("negative_slope", 0.0), number("threshold", 0.0))};
}

Outputs leaky_relu_layer(Call& call) {
  // Keras 2 calls it alpha.
  return {leaky(call.e, call.x(), call.config.number("negative_slope", call.config.number("alpha", 0.3)))};
}

Outputs elu_layer(Call& call) { return {scaled_elu(call.e, call.x(), call.config.number("alpha", 1.0), 1.0)}; }

Outputs prelu_layer(Call& call) {
  const Dims dims = call.e.dims(call.x());
  std::vector<int64_t> shared;
  if (const auto found = call.config.find("shared_axes")) shared = found->integers();
  Dims expected;
  for (size_t i = 1; i < dims.size(); ++i) {
    const bool is_shared = std::find(shared.begin(), shared.end(), static_cast<int64_t>(i)) != shared.end();
    expected.push_back(is_shared ? 1 : dims[i]);
  }
  const int alpha = call.constant(0, "alpha", expected);
  return {call.e.builder().node("PRELU", {call.x(), alpha}, call.e.name("PRelu"))};
}

namespace {

int softmax_over(Call& call, int x) {
  Emitter& e = call.e;
  const auto axis = call.config.find("axis");
  if (!axis || axis->is_integer()) return softmax_on(e, x, axis ? axis->integer() : -1, "SOFTMAX");
  const std::vector<int64_t> axes = axis->integers();
  if (axes.size() == 1) return softmax_on(e, x, axes[0], "SOFTMAX");
  const std::vector<int32_t> where = e.axes(x, axes);
  const int shifted = e.unary("EXP", e.sub(x, e.reduce("REDUCE_MAX", x, where, true)));
  return e.div(shifted, e.reduce("SUM", shifted, where, true));
}

}  // namespace

Outputs softmax_layer(Call& call) {
  Emitter& e = call.e;
  // The mask may come by position; a mask of steps belongs to what is before and is not looked at.
  int mask = call.inputs.size() > 1 ? call.inputs[1] : -1;
  if (const Argument* given = call.arguments.find(1, "mask"); given != nullptr && given->tensor >= 0) {
    mask = given->tensor;
  }
  if (mask >= 0) {
    if (e.dtype(mask) != DType::kBool) mask = e.compare("GREATER", mask, e.scalar_like(mask, 0.5));
    const int small = e.select(mask, call.x(), e.scalar(-1.0e9F));
    return {e.mul(softmax_over(call, small), e.cast(mask, DType::kFloat32))};
  }
  return {softmax_over(call, call.x())};
}

/// Of Keras 2: x where it is above theta.
Outputs thresholded_relu_layer(Call& call) {
  Emitter& e = call.e;
  const int above = e.compare("GREATER", call.x(), e.scalar_like(call.x(), call.config.number("theta", 1.0)));
  return {e.mul(call.x(), e.cast(above, e.dtype(call.x())))};
}

}  // namespace leadline::keras

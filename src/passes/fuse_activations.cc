// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Ops whose fused activation LiteRT computes. CONCATENATION has the field too, but LiteRT refuses its use.
constexpr std::array<std::string_view, 11> kFusing = {"ADD",
                                                      "SUB",
                                                      "MUL",
                                                      "DIV",
                                                      "CONV_2D",
                                                      "DEPTHWISE_CONV_2D",
                                                      "FULLY_CONNECTED",
                                                      "CONV_3D",
                                                      "MAX_POOL_2D",
                                                      "AVERAGE_POOL_2D",
                                                      "TRANSPOSE_CONV"};

std::optional<ir::Activation> activation_op(const std::string& op) {
  if (op == "RELU") return ir::Activation::kRelu;
  if (op == "RELU6") return ir::Activation::kRelu6;
  if (op == "RELU_N1_TO_1") return ir::Activation::kReluN1To1;
  return {};
}

bool fuse(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  const auto activation = node.code == ir::kCustomOp ? std::nullopt : activation_op(node.op);
  if (!activation || e.value(node.outputs[0]).dtype != DType::kFloat32) return false;
  const int in = node.inputs[0];
  const int before = e.producer(in);
  if (before < 0 || !e.used_once(in) || e.value(in).variable || e.value(node.outputs[0]).variable) return false;
  const ir::Node& maker = e.node(before);
  if (std::find(kFusing.begin(), kFusing.end(), std::string_view(maker.op)) == kFusing.end()) return false;
  if (activation_of(*maker.attributes) != ir::Activation::kNone) return false;
  const int out = node.outputs[0];
  e.remove(n);
  e.set_output(before, out);
  e.set_attributes(before, with_activation(*e.node(before).attributes, *activation));
  return true;
}

}  // namespace

int fuse_activations(ir::Graph& graph) { return for_each_node(graph, fuse); }

}  // namespace leadline::passes

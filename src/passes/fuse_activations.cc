// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

bool fuse(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || !op->activation || e.value(node.outputs[0]).dtype != DType::kFloat32) return false;
  const int in = node.inputs[0];
  const int before = e.producer(in);
  if (before < 0 || !e.used_once(in) || e.value(in).variable || e.value(node.outputs[0]).variable) return false;
  const ir::Node& maker = e.node(before);
  const ops::OpDef* into = ops::row_of(maker);
  if (into == nullptr || (into->fuses & ops::activation_set({*op->activation})) == 0) return false;
  if (activation_of(*maker.attributes) != ir::Activation::kNone) return false;
  const int out = node.outputs[0];
  e.remove(n);
  e.set_output(before, out);
  e.set_attributes(before, with_activation(*e.node(before).attributes, *op->activation));
  return true;
}

}  // namespace

int fuse_activations(PassTarget target) { return for_each_node(target, fuse); }

}  // namespace leadline::passes

// SPDX-License-Identifier: Apache-2.0
// Attributes of the ops that call subgraphs.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

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

}  // namespace leadline::ops

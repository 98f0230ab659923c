// SPDX-License-Identifier: Apache-2.0
// Attributes of HASHTABLE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct HashtableAttributes : ir::AttributeSet<HashtableAttributes> {
  int32_t table_id = 0;
  DType key_dtype = DType::kFloat32;
  DType value_dtype = DType::kFloat32;
  void fields(ir::FieldVisitor& v) {
    v.field("table_id", table_id);
    v.choice("key_dtype", key_dtype);
    v.choice("value_dtype", value_dtype);
  }
};

}  // namespace leadline::ops

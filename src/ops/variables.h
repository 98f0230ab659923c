// SPDX-License-Identifier: Apache-2.0
// The attributes of VAR_HANDLE.
#pragma once

#include <string>

#include "ir/attributes.h"

namespace leadline::ops {

struct VarHandleAttributes : ir::AttributeSet<VarHandleAttributes> {
  std::string container;
  std::string shared_name;  // handles of the same name in the same container are of one variable
  void fields(ir::FieldVisitor& v) {
    v.field("container", container);
    v.field("shared_name", shared_name);
  }
};

}  // namespace leadline::ops

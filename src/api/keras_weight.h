// SPDX-License-Identifier: Apache-2.0
// What a KerasWeight is inside.
#pragma once

#include <string>

#include "import/keras/weight_source.h"
#include "ir/sources.h"
#include "leadline/keras_layer.h"

namespace leadline {

struct KerasWeight::Data {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  ir::Source source;
  std::string key;  // the same for the same bytes of one conversion; empty: not known
};

KerasWeight make_weight(const keras::Weight& weight, std::string key);

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
// A visitor of attributes that passes over every field; those that look for one of them override its function.
#pragma once

#include <string>
#include <vector>

#include "ir/attributes.h"

namespace leadline::ir {

class FieldFinder : public FieldVisitor {
 public:
  void field(const char*, bool&) override {}
  void field(const char*, int8_t&) override {}
  void field(const char*, int32_t&) override {}
  void field(const char*, uint32_t&) override {}
  void field(const char*, int64_t&) override {}
  void field(const char*, float&) override {}
  void field(const char*, std::string&) override {}
  void field(const char*, std::vector<uint8_t>&) override {}
  void field(const char*, std::vector<int32_t>&) override {}
  void field(const char*, std::vector<uint32_t>&) override {}
  void field(const char*, std::vector<int64_t>&) override {}
  void field(const char*, std::vector<float>&) override {}
  void skip() override {}
};

}  // namespace leadline::ir

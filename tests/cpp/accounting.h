// SPDX-License-Identifier: Apache-2.0
// The promise that every run is held to: what is planned is what is counted.
#pragma once

#include <gtest/gtest.h>

#include "leadline/interpreter.h"

namespace leadline::testing {

inline void expect_planned_equals_counted(const Interpreter& interpreter) {
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

/// A static model: the plan is complete before the run and the run changes nothing about it.
template <typename Body>
void expect_static_plan_holds(Interpreter& interpreter, const Body& body) {
  const Plan before = interpreter.plan();
  EXPECT_TRUE(before.complete);
  body();
  EXPECT_EQ(before.peak_bytes, interpreter.counted_peak_bytes());
  expect_planned_equals_counted(interpreter);
}

}  // namespace leadline::testing

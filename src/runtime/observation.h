// SPDX-License-Identifier: Apache-2.0
// Shows a node to observers.
#pragma once

#include <vector>

#include "leadline/observer.h"
#include "plan/outline.h"
#include "runtime/bindings.h"

namespace leadline::runtime {

enum class Moment { kBefore, kAfter };

/// Calls the observers, in their order, for node `index`.
void notify(const std::vector<Observer*>& observers, const plan::Outline& outline, int index, const BoundStep& bound,
            Moment moment);

}  // namespace leadline::runtime

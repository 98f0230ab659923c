// SPDX-License-Identifier: Apache-2.0
// Whether two models are a float model and its quantized form. An all-clear about models that have nothing to do with
// each other is worse than an error.
#pragma once

#include <vector>

#include "debug/match.h"
#include "ir/graph.h"
#include "leadline/debug_result.h"

namespace leadline::debug {

/// Throws Error(kInvalidArgument) when the float model is quantized, or was given second.
void require_order(const ir::Graph& reference, const ir::Graph& quantized);

/// Throws Error(kInvalidArgument) when most nodes of the quantized subgraph stand for no node of the float one.
void require_likeness(const ir::Subgraph& quantized, const ir::Subgraph& reference, const Match& match);

/// Throws Error(kInvalidArgument) when an output of the float model cannot be the quantized one's.
void require_same_output(const ir::Value& quantized, const ir::Value& reference);

/// Throws Error(kInvalidArgument) when weights are none of the float model's, or samples ran and no value of an output
/// was compared.
void require_compared(const DebugResult& result, bool ran);

}  // namespace leadline::debug

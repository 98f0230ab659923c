// SPDX-License-Identifier: Apache-2.0
// Which ops of a model cannot run, and what to say about them.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "leadline/model_info.h"
#include "ops/user_ops.h"

namespace leadline::runtime {

/// In the order of their first use. `registered` are the ops of users to count in.
std::vector<MissingOp> find_missing_ops(const ir::Graph& graph, const ops::UserOpTable& registered);

/// Names them all, says what they are and what to do.
std::string missing_ops_message(const std::vector<MissingOp>& ops);

}  // namespace leadline::runtime

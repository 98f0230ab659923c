// SPDX-License-Identifier: Apache-2.0
// Time per op and per node, as `run --profile` and `bench --profile` show it, with the work of nodes that multiply.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "leadline/model.h"
#include "leadline/observer.h"

namespace leadline::cli {

/// What a node computes: products of convolutions and matrices for the shapes in the file, and those shapes.
struct NodeWork {
  int64_t macs = 0;    ///< 0: not an op that counts its work in products
  std::string shapes;  ///< "[1, 7, 7, 960] x [320, 1, 1, 960] -> [1, 7, 7, 320]"
};
NodeWork node_work(const SubgraphInfo& graph, const NodeInfo& node);

/// Two tables; `runs` is how often the model ran while the profile was taken. With a model also GMAC/s and shapes.
void print_profile(std::vector<NodeProfile> profile, size_t runs, const Model* model = nullptr);
Json profile_json(const std::vector<NodeProfile>& profile, const Model* model = nullptr);

}  // namespace leadline::cli

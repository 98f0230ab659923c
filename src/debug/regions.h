// SPDX-License-Identifier: Apache-2.0
// Parts of a network that are looked at together: by the scopes in the names of its tensors, else stretches of nodes in
// the order they run. A region splits into smaller ones, down to single nodes.
#pragma once

#include <string>
#include <vector>

namespace leadline::debug {

/// A node that can be part of a region.
struct RegionNode {
  int node = 0;      // in the quantized model
  std::string name;  // of its first result in the float model
};

struct Region {
  std::string name;        // "encoder/block_3", or "first ... last"
  std::vector<int> nodes;  // places in the list of RegionNodes, ascending
  std::string scope;       // what all names begin with, up to a '/'; empty: there is no such thing
  bool alike = false;      // `scope` is of alike_names(): equal parts of equal blocks, wherever they are

  bool single() const { return nodes.size() == 1; }
};

/// Patterns of a recipe that match the nodes of a region: its scope where nothing else of the model is inside of it,
/// else each name.
std::vector<std::string> patterns_of(const Region& region, const std::vector<RegionNode>& all);

/// The same nodes by names in which equal blocks have no numbers ("layer/attention" for "layer_3/attention" and the
/// others), so that split() of them finds what equal blocks have in common. A number within a word is '#'.
std::vector<RegionNode> alike_names(const std::vector<RegionNode>& all);

/// All nodes.
Region whole_network(const std::vector<RegionNode>& all);

/// Of `nodes`, those from place `first` to the one before `last`.
Region stretch(const std::vector<int>& nodes, size_t first, size_t last, const std::vector<RegionNode>& all);

/// At most this many parts.
inline constexpr size_t kMostParts = 16;
/// The parts of a region; none for a single node.
std::vector<Region> split(const Region& region, const std::vector<RegionNode>& all);

}  // namespace leadline::debug

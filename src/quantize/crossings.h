// SPDX-License-Identifier: Apache-2.0
// Subgraphs that WHILE and IF call, and the values that cross over to them. What a loop carries is one value in the
// subgraph around it, in the body and in the condition: it has the same integers in all of them.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "quantize/parameters.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

/// Whether a node is a WHILE or an IF.
bool is_call(const ir::Node& node);

/// A value of a graph.
struct Place {
  int subgraph = 0;
  int value = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// What a graph had before it was rewritten: the numbers of its values are those of calibrations.
class Crossings {
 public:
  explicit Crossings(const ir::Graph& graph);

  struct Caller {
    int subgraph = 0;
    int node = 0;
  };
  /// The WHILE or IF that calls a subgraph, if it alone does so: then the two can agree on types.
  const std::optional<Caller>& caller(int subgraph) const { return callers_[static_cast<size_t>(subgraph)]; }
  /// Whether all subgraphs that a node calls are called by it alone.
  bool calls_its_own(const ir::Node& node) const;

  /// What stands in the callee for input or output `i` of a node; nothing for the condition of an IF.
  std::optional<Place> inside_input(const ir::Node& node, size_t i) const;
  std::optional<Place> inside_output(const ir::Node& node, size_t i) const;

  /// The same ranges, but one for all that is one value: the range of everything that was seen of it.
  RangeOf joined(const RangeOf& range_of) const;

 private:
  void join(Place a, Place b);
  Place root(Place place) const;

  std::vector<std::optional<Caller>> callers_;
  std::vector<std::vector<int>> inputs_;   // by subgraph
  std::vector<std::vector<int>> outputs_;  // by subgraph
  std::map<Place, Place> parents_;
  std::map<Place, std::vector<Place>> members_;  // by root: what has this range, with what a call reads
};

}  // namespace leadline::quantize

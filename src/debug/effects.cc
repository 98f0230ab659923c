// SPDX-License-Identifier: Apache-2.0
#include "debug/effects.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "core/cancel.h"
#include "debug/index.h"
#include "debug/result.h"

namespace leadline::debug {
namespace {

constexpr double kWorthOpening = 0.05;  // of the power of the error
constexpr double kGuilty = 0.05;
/// A region is not to blame where one of its parts makes up this share of its effect.
constexpr double kMostOfIt = 0.7;
constexpr double kEnough = 0.9;  // of one part: no need to look for others
constexpr double kHalf = 0.5;    // less is not to be had from nodes at all
constexpr double kSameEffect = 0.05;
constexpr double kSmallPart = 0.5;    // of the nodes
constexpr int kMoreRuns = 48;         // when large parts alone are to blame
constexpr size_t kMostUnited = 8;     // parts
constexpr size_t kToldApart = 4;      // regions
constexpr double kMostOfWhole = 0.9;  // of what all nodes in float give

std::vector<RegionNode> region_nodes(const MixedGraphs& graphs, const ir::Subgraph& f) {
  std::vector<RegionNode> nodes;
  for (size_t n = 0; n < graphs.candidates().size(); ++n) {
    if (!graphs.candidates()[n]) continue;
    const int made = f.nodes[at(graphs.match().node[n])].outputs[0];
    nodes.push_back({static_cast<int>(n), f.values[at(made)].name});
  }
  return nodes;
}

bool contains(const MeasuredRegion& outer, const MeasuredRegion& inner) {
  return std::includes(outer.region.nodes.begin(), outer.region.nodes.end(), inner.region.nodes.begin(),
                       inner.region.nodes.end());
}

}  // namespace

double share_gone(const DebugMeasure& after, const DebugMeasure& before) {
  return before.error > 0.0 ? 1.0 - after.error / before.error : 0.0;
}

std::vector<int> Effects::guilty() const {
  std::vector<int> found;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].effect < kGuilty) continue;
    const bool inside = std::any_of(regions.begin(), regions.end(), [&](const MeasuredRegion& part) {
      return part.region.nodes.size() < regions[i].region.nodes.size() &&
             part.effect >= kMostOfIt * regions[i].effect && contains(regions[i], part);
    });
    if (!inside) found.push_back(static_cast<int>(i));
  }
  // Of parts that cost as much, within some percent, the smaller one is to blame.
  const auto steps = [&](int i) { return std::floor(regions[at(i)].effect / kSameEffect); };
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
    if (steps(a) != steps(b)) return steps(a) > steps(b);
    return regions[at(a)].region.nodes.size() < regions[at(b)].region.nodes.size();
  });
  std::vector<int> apart;
  for (const int i : found) {
    const bool covered = std::any_of(apart.begin(), apart.end(), [&](int other) {
      return contains(regions[at(other)], regions[at(i)]) || contains(regions[at(i)], regions[at(other)]);
    });
    if (!covered) apart.push_back(i);
  }
  return apart;
}

namespace {

/// The search, with what it has measured so far.
class Search {
 public:
  Search(const MixedGraphs& graphs, const ir::Subgraph& f, const MeasureFloat& measure, int max_runs,
         const std::function<bool()>& out_of_time)
      : measure_(measure), max_runs_(max_runs), out_of_time_(out_of_time), count_(graphs.candidates().size()) {
    effects_.nodes = region_nodes(graphs, f);
    effects_.base = measure_(std::vector<bool>(count_, false), Rounded::kNothing);
  }

  Effects run() {
    const Region all = whole_network(effects_.nodes);
    std::vector<Region> parts = split(all, effects_.nodes);
    if (parts.empty() && !effects_.nodes.empty()) parts = {all};
    add(std::move(parts), -1);
    if (largest() < kEnough && !exhausted()) add_stretch();
    while (!exhausted() && open_next()) {
    }
    if (!blames_little() && !exhausted()) add_alike();
    if (!blames_little() && !exhausted()) add_unions();
    tell_apart();
    return std::move(effects_);
  }

 private:
  /// With the nodes of a region in float.
  MeasuredRegion measured(Region region, int parent) {
    check_cancelled();
    const DebugMeasure with_float = measure_(nodes_of(region), Rounded::kNothing);
    ++runs_;
    return {std::move(region), parent, false, share_gone(with_float, effects_.base), with_float.cosine};
  }

  std::vector<bool> nodes_of(const Region& region) const {
    std::vector<bool> nodes(count_, false);
    for (const int i : region.nodes) nodes[at(effects_.nodes[at(i)].node)] = true;
    return nodes;
  }

  double largest() const {
    double effect = 0.0;
    for (const MeasuredRegion& region : effects_.regions) effect = std::max(effect, region.effect);
    return effect;
  }

  /// Whether most of the error is blamed on a part of the network that is small enough to be told from all of it.
  bool blames_little() const {
    const std::vector<int> guilty = effects_.guilty();
    if (guilty.empty()) return true;
    size_t nodes = 0;
    double effect = 0.0;
    for (const int i : guilty) {
      nodes += effects_.regions[at(i)].region.nodes.size();
      effect = std::max(effect, effects_.regions[at(i)].effect);
      if (effect >= kEnough) break;
    }
    return effect >= kEnough && static_cast<double>(nodes) <= kSmallPart * static_cast<double>(effects_.nodes.size());
  }

  /// What equal blocks have in common, such as the mask of each attention: none of them helps alone, as the next block
  /// does the same damage. Opened as long as one part has most of the effect.
  void add_alike() {
    const std::vector<RegionNode> alike = alike_names(effects_.nodes);
    std::vector<Region> parts = split(whole_network(alike), alike);
    while (!parts.empty() && runs_ + static_cast<int>(parts.size()) <= max_runs_ + kMoreRuns) {
      int best = -1;
      for (Region& part : parts) {
        if (exhausted()) return;
        if (part.scope.empty() || part.nodes.size() == effects_.nodes.size()) continue;
        part.alike = true;
        int place = place_of(part);
        if (place < 0) {
          place = static_cast<int>(effects_.regions.size());
          effects_.regions.push_back(measured(std::move(part), -1));
        }
        if (best < 0 || effects_.regions[at(place)].effect > effects_.regions[at(best)].effect) best = place;
      }
      if (best < 0 || effects_.regions[at(best)].effect < kEnough) return;
      parts = split(effects_.regions[at(best)].region, alike);
    }
  }

  /// Of a region with the same nodes that was measured; -1: none.
  int place_of(const Region& region) const {
    for (size_t i = 0; i < effects_.regions.size(); ++i) {
      if (effects_.regions[i].region.nodes == region.nodes) return static_cast<int>(i);
    }
    return -1;
  }

  /// Parts that help together: the best one, with each next best that makes it better.
  void add_unions() {
    std::vector<int> order;
    for (size_t i = 0; i < effects_.regions.size(); ++i) {
      const MeasuredRegion& region = effects_.regions[i];
      const bool small =
          static_cast<double>(region.region.nodes.size()) <= kSmallPart * static_cast<double>(effects_.nodes.size());
      if (small && region.effect >= kWorthOpening / 2) order.push_back(static_cast<int>(i));
    }
    std::stable_sort(order.begin(), order.end(),
                     [this](int a, int b) { return effects_.regions[at(a)].effect > effects_.regions[at(b)].effect; });
    if (order.size() < 2) return;
    MeasuredRegion best = effects_.regions[at(order.front())];
    bool grew = false;
    for (size_t i = 1; i < order.size() && i <= kMostUnited && best.effect < kMostOfWhole && !exhausted(); ++i) {
      MeasuredRegion more = measured(united(best.region, effects_.regions[at(order[i])].region), -1);
      if (more.effect < best.effect + kWorthOpening / 2) continue;
      best = std::move(more);
      grew = true;
    }
    if (!grew) return;
    best.opened = true;  // its parts were measured
    effects_.regions.push_back(std::move(best));
  }

  Region united(const Region& a, const Region& b) const {
    Region both;
    std::set_union(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), std::back_inserter(both.nodes));
    both.name = a.name + " and " + b.name;
    return both;
  }

  /// Weights from values: over all of the network, and in the parts to blame.
  void tell_apart() {
    if (exhausted() || effects_.nodes.empty()) return;
    const std::vector<bool> all = nodes_of(whole_network(effects_.nodes));
    effects_.weights_error = measure_(all, Rounded::kWeights).error;
    effects_.values_error = measure_(all, Rounded::kValues).error;
    const std::vector<int> guilty = effects_.guilty();
    for (size_t i = 0; i < guilty.size() && i < kToldApart && !exhausted(); ++i) {
      MeasuredRegion& region = effects_.regions[at(guilty[i])];
      const std::vector<bool> nodes = nodes_of(region.region);
      // What is left of one is what the other costs.
      region.weights_effect = share_gone(measure_(nodes, Rounded::kValues), effects_.base);
      region.values_effect = share_gone(measure_(nodes, Rounded::kWeights), effects_.base);
    }
  }

  void add(std::vector<Region> parts, int parent) {
    for (Region& part : parts) {
      if (!exhausted()) effects_.regions.push_back(measured(std::move(part), parent));
    }
  }

  /// A range that is too wide for 8 bits travels on: no part alone helps, as the next rounds to it again. The stretch
  /// that has to be float as a whole ends where a beginning of the network is long enough, and begins where an end of
  /// it is.
  void add_stretch() {
    const std::vector<int> all = whole_network(effects_.nodes).nodes;
    const auto measured_from = [&](size_t first, size_t last) {
      return measured(stretch(all, first, last, effects_.nodes), -1);
    };
    const double whole = measured_from(0, all.size()).effect;
    if (whole < kHalf) return;
    const double wanted = kMostOfWhole * whole;
    size_t short_end = 0;
    size_t end = all.size();
    while (short_end + 1 < end) {
      const size_t middle = (short_end + end) / 2;
      (measured_from(0, middle).effect >= wanted ? end : short_end) = middle;
    }
    size_t begin = 0;
    size_t late_begin = end;
    while (begin + 1 < late_begin) {
      const size_t middle = (begin + late_begin) / 2;
      (measured_from(middle, end).effect >= wanted ? begin : late_begin) = middle;
    }
    effects_.regions.push_back(measured_from(begin, end));
  }

  /// Measures the parts of the region with the largest effect that was not opened yet; false: there is none.
  bool open_next() {
    int best = -1;
    for (size_t i = 0; i < effects_.regions.size(); ++i) {
      const MeasuredRegion& region = effects_.regions[i];
      if (region.opened || region.region.single() || region.effect < kWorthOpening) continue;
      if (best < 0 || region.effect > effects_.regions[at(best)].effect) best = static_cast<int>(i);
    }
    if (best < 0) return false;
    effects_.regions[at(best)].opened = true;
    std::vector<Region> parts = split(effects_.regions[at(best)].region, effects_.nodes);
    if (runs_ + static_cast<int>(parts.size()) <= max_runs_) add(std::move(parts), best);
    return true;
  }

  bool exhausted() const { return out_of_time_ && out_of_time_(); }

  const MeasureFloat& measure_;
  const int max_runs_;
  const std::function<bool()>& out_of_time_;
  const size_t count_;
  Effects effects_;
  int runs_ = 1;
};

}  // namespace

Effects measure_effects(const MixedGraphs& graphs, const ir::Subgraph& f, const MeasureFloat& measure, int max_runs,
                        const std::function<bool()>& out_of_time) {
  return Search(graphs, f, measure, max_runs, out_of_time).run();
}

void add_effects(const Effects& effects, DebugResult& result) {
  std::map<int, std::vector<int>> layers_of_node;
  for (const LayerDebug& layer : result.layers) {
    if (layer.subgraph == 0 && layer.node >= 0) layers_of_node[layer.node].push_back(layer.index);
  }
  std::vector<int> order;
  for (size_t i = 0; i < effects.regions.size(); ++i) order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return effects.regions[at(a)].effect > effects.regions[at(b)].effect; });
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[at(order[i])] = static_cast<int>(i);
  result.regions.clear();
  for (const int i : order) {
    const MeasuredRegion& measured = effects.regions[at(i)];
    DebugRegion region;
    region.name = measured.region.name;
    region.parent = measured.parent < 0 ? -1 : place[at(measured.parent)];
    region.nodes = static_cast<int>(measured.region.nodes.size());
    region.effect = measured.effect;
    region.cosine = measured.cosine;
    region.weights_effect = measured.weights_effect;
    region.values_effect = measured.values_effect;
    for (const int n : measured.region.nodes) {
      const auto& layers = layers_of_node[effects.nodes[at(n)].node];
      region.layers.insert(region.layers.end(), layers.begin(), layers.end());
    }
    result.regions.push_back(std::move(region));
  }
  // The smallest region that has a layer says what the layer costs.
  for (size_t i = 0; i < result.regions.size(); ++i) {
    for (const int l : result.regions[i].layers) {
      LayerDebug& layer = result.layers[at(l)];
      if (layer.region >= 0 && result.regions[at(layer.region)].nodes <= result.regions[i].nodes) continue;
      layer.region = static_cast<int>(i);
      layer.effect = result.regions[i].effect;
    }
  }
  std::vector<DebugSuspect> suspects;
  for (const int i : effects.guilty()) {
    const DebugRegion& region = result.regions[at(place[at(i)])];
    if (auto suspect = suspect_of(region, result.layers)) suspects.push_back(std::move(*suspect));
  }
  result.suspects = std::move(suspects);
  result.error = effects.base.error;
  result.weights_error = effects.weights_error;
  result.values_error = effects.values_error;
}

}  // namespace leadline::debug

// SPDX-License-Identifier: Apache-2.0
#include "jobs/tune_search.h"

#include <algorithm>
#include <utility>

namespace leadline::jobs {
namespace {

constexpr int kSteps = 4;  // from a layer to nodes that read it, when a range travels on

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names first(const Names& order, size_t count) {
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()))};
}

}  // namespace

Names TuneSearch::find(const Names& order, const Readers& readers) {
  Names kept = grow(order, readers);
  if (kept.empty()) kept = bisect(order);
  return give_back(std::move(kept));
}

Names TuneSearch::find_in(const std::vector<Region>& regions) {
  Names kept;
  size_t used = 0;
  while (used < regions.size() && !exhausted()) {
    for (const std::string& name : regions[used].names) {
      if (!contains(kept, name)) kept.push_back(name);
    }
    ++used;
    if (!enough(kept)) continue;
    for (size_t i = 0; i + 1 < used; ++i) drop(kept, regions[i].names);
    for (size_t i = 0; i < used; ++i) {
      for (const Names& part : regions[i].parts) drop(kept, part);
    }
    return kept;
  }
  return {};
}

void TuneSearch::drop(Names& kept, const Names& names) {
  if (exhausted()) return;
  Names fewer;
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(fewer),
               [&](const std::string& name) { return !contains(names, name); });
  if (fewer.size() < kept.size() && !fewer.empty() && enough(fewer)) kept = std::move(fewer);
}

const TuneTrial& TuneSearch::measure(const Names& kept) {
  const std::set<std::string> key(kept.begin(), kept.end());
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  TuneTrial trial = measure_(kept);
  trials_.push_back(trial);
  return known_.emplace(key, std::move(trial)).first->second;
}

Names TuneSearch::grow(const Names& order, const Readers& readers) {
  Names kept = first(order, 1);
  Names edge = kept;
  for (int step = 0; step <= kSteps && !edge.empty(); ++step) {
    if (!exhausted() && enough(kept)) return kept;
    Names next;
    for (const std::string& name : edge) {
      const auto found = readers.find(name);
      if (found == readers.end()) continue;
      for (const std::string& reader : found->second) {
        if (!contains(kept, reader) && !contains(next, reader)) next.push_back(reader);
      }
    }
    kept.insert(kept.end(), next.begin(), next.end());
    edge = std::move(next);
  }
  return {};
}

Names TuneSearch::bisect(const Names& order) {
  size_t count = 1;
  while (count < order.size() && !enough(first(order, count))) {
    if (exhausted()) return order;
    count *= 2;
  }
  size_t low = count / 2;  // not enough
  size_t high = std::min(count, order.size());
  if (!enough(first(order, high))) return order;
  while (low + 1 < high && !exhausted()) {
    const size_t middle = (low + high) / 2;
    (enough(first(order, middle)) ? high : low) = middle;
  }
  return first(order, high);
}

Names TuneSearch::give_back(Names kept) {
  if (!enough(kept)) return kept;
  const Names all = kept;
  for (auto name = all.rbegin(); name != all.rend() && !exhausted(); ++name) {
    Names fewer;
    std::copy_if(kept.begin(), kept.end(), std::back_inserter(fewer),
                 [&](const auto& other) { return other != *name; });
    if (enough(fewer)) kept = std::move(fewer);
  }
  return kept;
}

std::vector<TuneTrial> front_of(const std::vector<TuneTrial>& trials) {
  // Times of equal models differ by some percent, which is no reason to show both.
  constexpr double kSameTime = 0.95;
  const auto dominates = [](const TuneTrial& a, const TuneTrial& b) {
    if (a.value < b.value || a.file_bytes > b.file_bytes || a.seconds * kSameTime > b.seconds) return false;
    return a.value > b.value || a.file_bytes < b.file_bytes || a.seconds < b.seconds * kSameTime;
  };
  std::vector<TuneTrial> front;
  for (size_t i = 0; i < trials.size(); ++i) {
    bool shown = true;
    for (size_t k = 0; k < trials.size() && shown; ++k) {
      const bool as_good = k < i && trials[k].value == trials[i].value && trials[k].file_bytes == trials[i].file_bytes;
      shown = k == i || (!dominates(trials[k], trials[i]) && !as_good);
    }
    if (shown) front.push_back(trials[i]);
  }
  std::stable_sort(front.begin(), front.end(), [](const TuneTrial& a, const TuneTrial& b) {
    return a.file_bytes != b.file_bytes ? a.file_bytes < b.file_bytes : a.value > b.value;
  });
  return front;
}

}  // namespace leadline::jobs

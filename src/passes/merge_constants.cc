// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>

#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

std::string_view bytes_of(const ir::Value& value) {
  return {reinterpret_cast<const char*>(value.data.data()), value.data.size()};
}

bool interchangeable(const ir::Value& a, const ir::Value& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.signature == b.signature && a.quantization == b.quantization &&
         a.source == b.source && a.data.data() == b.data.data() && a.data.size() == b.data.size() && !a.sparsity &&
         !b.sparsity;
}

/// Constants with the same bytes point to the same memory afterwards.
void share_bytes(ir::Graph& graph) {
  std::unordered_map<std::string_view, std::span<const std::byte>> blocks;
  for (ir::Subgraph& subgraph : graph.subgraphs) {
    for (ir::Value& value : subgraph.values) {
      if (!value.constant || value.data.empty()) continue;
      value.data = blocks.try_emplace(bytes_of(value), value.data).first->second;
    }
  }
}

int merge_equal_constants(Editor& e) {
  int changes = 0;
  std::map<const void*, std::vector<int>> by_place;
  const auto count = static_cast<int>(e.subgraph().values.size());
  for (int v = 0; v < count; ++v) {
    const ir::Value& value = e.value(v);
    if (!value.constant || e.is_output(v) || e.is_input(v) || e.consumers(v).empty()) continue;
    const void* place = value.source ? static_cast<const void*>(value.source.get()) : value.data.data();
    auto& known = by_place[place];
    const auto twin =
        std::find_if(known.begin(), known.end(), [&](int other) { return interchangeable(e.value(other), value); });
    if (twin == known.end()) {
      known.push_back(v);
    } else if (e.replace(v, *twin)) {
      ++changes;
    }
  }
  return changes;
}

}  // namespace

int merge_constants(PassTarget target) {
  share_bytes(target.change());
  return for_each_subgraph(target, [](Editor& e, int) { return merge_equal_constants(e); });
}

}  // namespace leadline::passes

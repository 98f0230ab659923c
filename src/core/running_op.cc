// SPDX-License-Identifier: Apache-2.0
#include "core/running_op.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace leadline {

std::atomic<RunningOp*> running_ops = nullptr;

namespace {

std::array<std::atomic<bool>, kRunningOps> taken{};

template <size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

}  // namespace

void RunningOpScope::begin(RunningOp* table, int subgraph, int node, std::string_view op, std::string_view name) {
  for (size_t i = 0; i < kRunningOps; ++i) {
    if (taken[i].load(std::memory_order_relaxed) || taken[i].exchange(true, std::memory_order_acquire)) continue;
    place_ = static_cast<int>(i);
    entry_ = table + i;
    entry_->subgraph = subgraph;
    entry_->node = node;
    copy_text(entry_->op, op);
    copy_text(entry_->name, name);
    entry_->running = 1;
    return;
  }
}

void RunningOpScope::end() {
  entry_->running = 0;
  taken[static_cast<size_t>(place_)].store(false, std::memory_order_release);
}

}  // namespace leadline

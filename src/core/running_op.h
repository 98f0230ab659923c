// SPDX-License-Identifier: Apache-2.0
// Which nodes are running now, to be read after the process is dead. Without a listener a node costs one
// relaxed load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leadline {

/// One thread's node, in memory that outlives the process. Text is cut to fit and ends with a zero.
struct RunningOp {
  uint32_t running = 0;  // 0: what is here was run last
  int32_t subgraph = 0;
  int32_t node = 0;
  int32_t reserved = 0;
  char op[48] = {};
  char name[112] = {};
};
inline constexpr size_t kRunningOps = 8;  // nodes of more threads than this are not seen

/// An array of kRunningOps that lives as long as the process, or null. Set by the flight recorder.
extern std::atomic<RunningOp*> running_ops;

/// The node runs while this lives.
class RunningOpScope {
 public:
  RunningOpScope(int subgraph, int node, std::string_view op, std::string_view name) {
    if (RunningOp* table = running_ops.load(std::memory_order_acquire); table != nullptr) [[unlikely]] {
      begin(table, subgraph, node, op, name);
    }
  }
  ~RunningOpScope() {
    if (entry_ != nullptr) [[unlikely]] {
      end();
    }
  }
  RunningOpScope(const RunningOpScope&) = delete;
  RunningOpScope& operator=(const RunningOpScope&) = delete;

 private:
  void begin(RunningOp* table, int subgraph, int node, std::string_view op, std::string_view name);
  void end();

  RunningOp* entry_ = nullptr;
  int place_ = -1;
};

}  // namespace leadline

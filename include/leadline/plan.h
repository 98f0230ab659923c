// SPDX-License-Identifier: Apache-2.0
// A Plan says what a run will do and how many bytes it takes, before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/types.h"

namespace leadline {

/// Where a tensor's bytes live.
enum class Storage : uint8_t {
  kConstant,   ///< in the model file
  kFolded,     ///< computed while planning, kept with the graph
  kInput,      ///< a graph input, memory of its own
  kOutput,     ///< a graph output, memory of its own
  kVariable,   ///< state kept between runs
  kArena,      ///< at `offset` of the arena of its segment
  kUnplanned,  ///< its shape depends on data that is not known yet, or nothing makes or uses it
};
const char* storage_name(Storage storage) noexcept;

/// One tensor of the main subgraph, as planned.
struct PlannedTensor {
  int index = 0;  ///< number in the file
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  int64_t bytes = 0;
  Storage storage = Storage::kUnplanned;
  int64_t offset = -1;   ///< in the arena; -1 elsewhere
  int segment = 0;       ///< which arena
  int first_step = -1;   ///< step that writes it; -1: alive from the start
  int last_step = -1;    ///< last step that reads it
  int shares_with = -1;  ///< tensor whose memory it uses (in place, reshape, part of a larger one); -1: its own
  bool bound = false;    ///< in memory of the caller (Interpreter::bind), which is not counted
};

/// One node in execution order.
struct PlannedStep {
  int node = 0;  ///< number in the file
  std::string op;
  std::string name;         ///< of its first output
  std::vector<int> inputs;  ///< tensor numbers; -1: absent
  std::vector<int> outputs;
  std::vector<int> merged;  ///< indices of the nodes whose work it does besides its own (passes.h)
  int segment = 0;
  int64_t scratch_bytes = 0;
  int64_t scratch_offset = -1;  ///< of the scratch in the arena of its segment; -1: none
  int64_t packed_bytes = 0;
  int64_t persistent_bytes = 0;  ///< memory of the op whose contents stay between runs
  int64_t live_bytes = 0;        ///< arena bytes that must exist during this step
};

struct CategoryBytes {
  MemoryCategory category = MemoryCategory::kArena;
  int64_t bytes = 0;
};

/// A stretch of the job and the memory it holds at its highest.
struct PlannedPhase {
  std::string name;  ///< "load", "prepare", "run"
  std::vector<CategoryBytes> categories;
  int64_t bytes = 0;
};

/// A stretch of nodes whose shapes become known together, with an arena of its own. A model without
/// data-dependent shapes has one segment.
struct PlannedSegment {
  int first_step = 0;
  int last_step = -1;             ///< inclusive; -1: empty
  int64_t arena_bytes = 0;        ///< scratch included
  int64_t lower_bound_bytes = 0;  ///< most bytes alive at one step: no layout can be smaller
};

/// Pure data; copy it, print it, compare it. All sizes are in bytes and rounded as they are allocated.
struct Plan {
  std::vector<PlannedStep> steps;
  std::vector<PlannedTensor> tensors;
  std::vector<PlannedSegment> segments;
  std::vector<PlannedPhase> phases;
  std::vector<CategoryBytes> categories;  ///< at the peak; their sum is peak_bytes
  int64_t peak_bytes = 0;                 ///< what the budget is asked for, the mapped file included
  int64_t bound_bytes = 0;                ///< memory of the caller (Interpreter::bind): not part of peak_bytes
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;  ///< of the arena
  /// About what reading an intermediate tensor takes beside peak_bytes, for as long as it lasts: a second run, and the
  /// largest such tensor (Interpreter::tensor). 0 when all tensors are preserved.
  int64_t recompute_bytes = 0;
  int threads = 1;
  ByteUnits units = ByteUnits::kBinary;  ///< of sizes in texts: those of the budget
  /// False while some shapes depend on data of a run: peak_bytes then covers what is known so far.
  bool complete = true;
  /// Names of ops that cannot run (InterpreterOptions::plan_only); their outputs are planned with the file's shapes.
  std::vector<std::string> missing_ops;

  /// A table to be read: categories, phases, the arena and its gap to the lower bound.
  std::string to_text() const;
  /// The whole plan as JSON.
  std::string to_json() const;
  /// One self-contained page: summary, and a picture of the tensors as bars over time.
  std::string to_html(const std::string& title) const;
  /// For the output of a notebook's cell: one sentence, and the page in a frame that can reach nothing around it.
  std::string to_notebook_html(const std::string& title) const;
};

}  // namespace leadline

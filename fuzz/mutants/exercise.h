// SPDX-License-Identifier: Apache-2.0
// Does with a file what users do with models, and judges it: every step ends in success or in a leadline::Error, on
// time, inside of the budget, with nothing left charged, and with the same results every time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace leadline::fuzz {

enum class Stage : int {
  kMutate,
  kLoad,
  kDescribe,
  kSave,
  kPlan,
  kReport,
  kAllocate,
  kRun,
  kRunAgain,
  kCompare,
  kResize,
  kQuantize,
  kCalibrate,
  kDebug,
  kRelease,
  kDone,
};
inline constexpr int kStageCount = static_cast<int>(Stage::kDone) + 1;
const char* stage_name(Stage stage);

struct ExerciseOptions {
  int64_t budget_bytes = 64 << 20;
  double run_seconds = 0.5;       // of CPU time, for one stage: then the library is asked to end it
  double slow_seconds = 2.0;      // of CPU time, for one stage: more is a finding
  int64_t heap_bytes = 64 << 20;  // that may exist outside of the budget at one time, where it can be measured
  bool guard = true;              // heap blocks end at pages that may not be touched (see guarded_heap.h)
  int plant = 0;                  // one in this many dies, throws or never ends: to test what looks for that
  bool verbose = false;           // says what it does and what is refused
};

struct Verdict {
  Stage refused = Stage::kDone;  // where the file's own way (load, plan, allocate, run) ended; kDone: it ran
  bool compared = false;
  bool quantized = false;
  bool debugged = false;
  std::string problem;         // empty: as it should be; else "KIND: what"
  Stage stage = Stage::kLoad;  // of the problem
};

/// `seed` decides which of the many things are done and with which inputs. `now` always says where it is.
Verdict exercise(std::span<const std::byte> file, uint64_t seed, const ExerciseOptions& options, volatile Stage& now);

}  // namespace leadline::fuzz

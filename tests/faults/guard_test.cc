// SPDX-License-Identifier: Apache-2.0
// The parts of the guard that run inside of the process. How much they allocate depends on what the machine does
// meanwhile, so these sweeps take a fixed number of requests.
#include <gtest/gtest.h>

#include <string>

#include "leadline/budget.h"
#include "leadline/guard/process.h"
#include "tests/faults/sweep.h"

namespace leadline::faults {
namespace {

/// Refuses requests 1, 1 + step, ... of `body`, which must return, or throw what is about memory.
template <typename Body>
void sweep(const char* name, int64_t most, int64_t step, const Body& body) {
  int64_t refused = 0;
  int64_t errors = 0;
  body();
  for (const Extent extent : {Extent::kOnce, Extent::kOnwards}) {
    for (int64_t n = 1; n <= most; n += step) {
      arm_allocator(n, extent);
      try {
        body();
      } catch (const std::bad_alloc&) {
        ++errors;
      } catch (const Error& error) {
        disarm_allocator();
        ++errors;
        EXPECT_TRUE(error.code() == ErrorCode::kOutOfMemory || error.code() == ErrorCode::kBudget) << error.what();
      }
      disarm_allocator();
      if (!allocation_refused()) break;
      ++refused;
    }
  }
  EXPECT_GT(errors, 0);
  std::printf("%s: %ld refused, %ld errors\n", name, static_cast<long>(refused), static_cast<long>(errors));
}

TEST(GuardFaults, LimitsOfTheMachine) {
  sweep("limits of the machine", 1000, 1, [] { read_memory_limits(); });
}

/// The caller lives on when the thread that guards has no memory; the child is gone in any case.
TEST(GuardFaults, GuardedProcesses) {
  guard::GuardOptions options;
  options.command = {"true"};
  sweep("guard a process", 120, 3, [&] {
    guard::GuardedProcess process(options);
    for (int i = 0; i < 1000 && !process.wait(0.01).ended; ++i) {
    }
  });
}

}  // namespace
}  // namespace leadline::faults

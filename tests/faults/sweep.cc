// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "leadline/budget.h"

namespace leadline::faults {
namespace {

enum class Kind { kNone, kAllocation, kSystem };
Kind injected = Kind::kNone;
std::string expected_path;
int64_t errors_seen = 0;

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// What must be after a job as it was before.
struct Balance {
  int64_t blocks = live_allocations();
  int64_t accounted = accounted_bytes();
};

/// 0: every request. Otherwise a sweep takes about this many of them, evenly spread.
int64_t most_per_sweep() {
  const char* const text = std::getenv("LEADLINE_FAULTS");
  return text == nullptr ? 0 : std::atoll(text);
}

struct Sweep {
  const char* name;
  const Job& job;
  const std::string& folder;
  std::string expected = {};
  std::multiset<std::string> files = {};
  int descriptors = 0;

  /// The job as it should be; what it makes for the whole process is made afterwards.
  void rehearse() {
    injected = Kind::kNone;
    expected = job();
    ASSERT_EQ(job(), expected) << name << " gives another result the second time";
    if (!folder.empty()) files = files_in(folder);
    descriptors = open_descriptors();
  }

  /// False when nothing was met.
  bool run(const std::string& what, const std::function<void()>& arm, const std::function<bool()>& disarm) {
    const Balance before;
    std::string result;
    arm();
    try {
      result = job();
    } catch (const std::exception& error) {
      disarm();
      ADD_FAILURE() << name << ", " << what << ": " << error.what();
    }
    const bool met = disarm();
    EXPECT_EQ(result == expected, true) << name << ", " << what << ": another result";
    std::string().swap(result);
    EXPECT_EQ(live_allocations(), before.blocks) << name << ", " << what << ": blocks leaked";
    EXPECT_EQ(accounted_bytes(), before.accounted) << name << ", " << what << ": accounted bytes differ";
    if (!folder.empty()) {
      EXPECT_EQ(files_in(folder), files) << name << ", " << what << ": files left behind";
    }
    return met && !::testing::Test::HasFailure();
  }
};

}  // namespace

std::multiset<std::string> files_in(const std::string& folder) {
  std::multiset<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    names.insert(fmt::format("{} {}", entry.path().string(), entry.is_regular_file() ? entry.file_size() : 0));
  }
  return names;
}

bool excuse(const char* step) {
  const Exempt exempt;
  const bool met =
      injected == Kind::kAllocation ? allocation_refused() : injected == Kind::kSystem && system_fault_met();
  disarm_allocator();
  disarm_system();
  if (!met) return false;
  try {
    throw;
  } catch (const Error& error) {
    ++errors_seen;
    const std::string text = error.what();
    if (injected == Kind::kAllocation) {
      EXPECT_TRUE(error.code() == ErrorCode::kOutOfMemory || error.code() == ErrorCode::kBudget)
          << step << " reports a refused allocation as: " << text;
    } else {
      EXPECT_EQ(error.code() == ErrorCode::kIo, true) << step << ", " << system_call_met() << ": " << text;
      EXPECT_NE(text.find(expected_path), std::string::npos) << step << " does not name the file: " << text;
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << step << " lets another exception out than leadline::Error: " << error.what();
  }
  return true;
}

void sweep_allocations(const char* name, const Job& job, const std::string& folder) {
  Sweep sweep{name, job, folder};
  sweep.rehearse();
  if (::testing::Test::HasFatalFailure()) return;
  const auto begin = std::chrono::steady_clock::now();
  arm_allocator(0, Extent::kOnce);
  job();
  disarm_allocator();
  const int64_t all = allocations_counted();
  const int64_t most = most_per_sweep();
  const int64_t step = most > 0 ? std::max<int64_t>(1, all / most) : 1;
  errors_seen = 0;
  int64_t injections = 0;
  for (const Extent extent : {Extent::kOnce, Extent::kOnwards}) {
    bool met = true;
    // Steps differ in phase, so that two sweeps see different requests.
    for (int64_t n = extent == Extent::kOnce ? 1 : 1 + step / 2; met; n += step) {
      const char* const how = extent == Extent::kOnce ? "" : " and all after it";
      injected = Kind::kAllocation;
      met = sweep.run(
          fmt::format("allocation {}{} refused", n, how), [&] { arm_allocator(n, extent); },
          [] {
            disarm_allocator();
            return allocation_refused();
          });
      injections += met ? 1 : 0;
    }
  }
  injected = Kind::kNone;
  EXPECT_EQ(open_descriptors(), sweep.descriptors) << name << ": descriptors leaked";
  if (!::testing::Test::HasFailure()) {
    EXPECT_GE(injections * step, 2 * (all - step)) << "the sweep ended early";
    EXPECT_EQ(job() == sweep.expected, true) << name << " gives another result after the sweep";
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}: {} allocations, {} refused, {} errors, {:.1f} s\n", name, all, injections, errors_seen, seconds);
}

void sweep_system(const char* name, const Job& job, const std::string& folder, const std::string& path) {
  Sweep sweep{name, job, folder};
  sweep.rehearse();
  if (::testing::Test::HasFatalFailure()) return;
  expected_path = path;
  errors_seen = 0;
  int64_t injections = 0;
  for (const SystemFault fault : {SystemFault::kRefuse, SystemFault::kShort, SystemFault::kInterrupt}) {
    for (const Extent extent : {Extent::kOnce, Extent::kOnwards}) {
      const int64_t errors_before = errors_seen;
      bool met = true;
      for (int64_t n = 1; met; ++n) {
        injected = Kind::kSystem;
        met = sweep.run(
            fmt::format("system call {}, fault {}{}", n, static_cast<int>(fault),
                        extent == Extent::kOnce ? "" : ", and all after it"),
            [&] { arm_system(n, extent, fault); },
            [] {
              disarm_system();
              return system_fault_met();
            });
        injections += met ? 1 : 0;
        EXPECT_EQ(open_descriptors(), sweep.descriptors)
            << name << ": descriptors leaked at call " << n << ", " << system_call_met();
        if (::testing::Test::HasFailure()) return;
      }
      if (fault != SystemFault::kRefuse) {
        EXPECT_EQ(errors_seen, errors_before) << name << ": short and interrupted transfers are not errors";
      }
    }
  }
  injected = Kind::kNone;
  EXPECT_GT(injections, 0) << name << " calls nothing that could fail";
  fmt::print("{}: {} system calls met a fault, {} errors\n", name, injections, errors_seen);
}

}  // namespace leadline::faults

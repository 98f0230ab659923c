// SPDX-License-Identifier: Apache-2.0
// Work in a child process, so that a death is an observation.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "exercise.h"
#include "tree.h"

namespace leadline::fuzz {

/// What a child reports to its parent, in memory that both see.
struct Report {
  static constexpr int kMostFindings = 32;
  struct Finding {
    uint64_t number;
    Stage stage;
    char problem[480];
  };
  volatile uint64_t number;  // at work on this one
  volatile Stage stage;
  volatile uint64_t done;
  uint64_t refused[kStageCount];
  uint64_t compared;
  uint64_t quantized;
  uint64_t debugged;
  uint64_t mutation_failed;
  int findings;
  Finding finding[kMostFindings];
};

/// A child with a Report. It is watched: what takes longer than `most_seconds` of CPU time (or ten times that on the
/// clock) for one number is killed.
class Child {
 public:
  Child(double most_seconds, std::string log_path);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// `work` runs in the child, whose output goes to the log.
  void start(const std::function<void(Report&)>& work);
  bool running() const { return pid_ > 0; }
  /// Looks after it. True when it has ended; how is in problem().
  bool poll();
  /// Until it has ended.
  void wait();
  /// Empty: it ended as it should. Else "KIND: what", with the sanitizer's own words where there are some.
  const std::string& problem() const { return problem_; }
  Report& report() { return *report_; }
  std::string log() const;

 private:
  std::string describe(int status) const;
  double most_seconds_;
  std::string log_path_;
  Report* report_;
  pid_t pid_ = 0;
  bool killed_ = false;
  uint64_t seen_number_ = 0;
  uint64_t seen_done_ = 0;
  double seen_cpu_ = 0.0;
  double seen_clock_ = 0.0;
  std::string problem_;
};

/// Exercises one file in a child; the problem, empty when there is none.
std::string exercise_apart(const TablePtr& root, uint64_t seed, const ExerciseOptions& options, const std::string& log);

/// The part of a problem that is the same for the same fault: without numbers and addresses.
std::string fault_of(const std::string& problem);

}  // namespace leadline::fuzz

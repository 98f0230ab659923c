// SPDX-License-Identifier: Apache-2.0
// Many mutants, in children that are allowed to die; what goes wrong is made small and kept.
#pragma once

#include <cstdint>
#include <string>

#include "bases.h"
#include "exercise.h"

namespace leadline::fuzz {

struct CampaignOptions {
  uint64_t seed = 1;
  uint64_t first = 0;
  uint64_t count = 2000;
  int jobs = 1;
  std::string findings = "findings";  // folder for what goes wrong
  int per_fault = 2;                  // this many of the same kind are kept
  int minimize_tries = 400;           // for each; 0: as they are
  ExerciseOptions exercise;
};

/// Prints results while it works and at the end; the number of different faults.
int run_campaign(const Bases& bases, const CampaignOptions& options);

}  // namespace leadline::fuzz

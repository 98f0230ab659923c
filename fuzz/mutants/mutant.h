// SPDX-License-Identifier: Apache-2.0
// Mutant number n of a seed: which model it starts from and what is changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bases.h"
#include "tree.h"

namespace leadline::fuzz {

inline constexpr int kMostMutations = 4;

struct Mutant {
  std::string base;
  std::vector<std::string> mutations;  // what was done, in order
  TablePtr root;
  uint64_t exercise_seed = 0;
};

/// Bit k of `kept`: mutation k is applied. The same on every machine for the same bases.
Mutant make_mutant(const Bases& bases, uint64_t seed, uint64_t number, unsigned kept = (1U << kMostMutations) - 1);

}  // namespace leadline::fuzz

// SPDX-License-Identifier: Apache-2.0
// Small changes of bytes, chosen by a generator of random numbers alone: the same seed gives the same mutants on every
// machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "readers/reader.h"

namespace leadline::fuzz {

class Mutator {
 public:
  Mutator(const Reader& reader, std::span<const std::string> seeds, uint64_t seed);
  /// The next mutant of some seed.
  std::string next();

 private:
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  uint64_t odd_number(size_t size);
  void change(std::string& bytes);
  void change_text_number(std::string& bytes);

  const Reader& reader_;
  std::span<const std::string> seeds_;
  std::vector<std::string> words_;
  Random random_;
};

}  // namespace leadline::fuzz

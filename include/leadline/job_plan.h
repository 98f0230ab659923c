// SPDX-License-Identifier: Apache-2.0
// What a job takes, known before it takes anything. Every job has a plan(): convert, calibrate, quantize, debug, tune.
//
//   leadline::QuantizeJob job(model);
//   std::cout << job.plan().to_text();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leadline/plan.h"

namespace leadline {

/// A stretch of a job and the most memory that is in use meanwhile, whatever earlier phases left included.
struct JobPhase {
  std::string name;                       ///< "load", "calibrate", "quantize", ...
  std::vector<CategoryBytes> categories;  ///< at the peak, in the order of reports; their sum is peak_bytes
  int64_t peak_bytes = 0;
  std::string detail;                    ///< a few words about it
  ByteUnits units = ByteUnits::kBinary;  ///< of sizes in texts: those of the plan
};

/// Pure data. The same job has the same plan, to the byte, in C++, in Python and on the command line.
struct JobPlan {
  std::string job;               ///< "quantize", ...
  std::vector<JobPhase> phases;  ///< in the order they run
  int64_t peak_bytes = 0;        ///< of the largest phase: what the budget is asked for
  int64_t result_bytes = 0;      ///< at most, of the file that comes out; 0: the result is not a file
  /// False while some shapes depend on data of a run: peak_bytes then covers what is known so far.
  bool complete = true;
  ByteUnits units = ByteUnits::kBinary;  ///< of sizes in texts: those of the budget

  /// One line per phase, and the peak.
  std::string to_text() const;
  std::string to_json() const;
};

}  // namespace leadline

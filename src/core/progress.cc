// SPDX-License-Identifier: Apache-2.0
#include "core/progress.h"

#include <algorithm>

#include "leadline/error.h"

namespace leadline {

void ProgressCounter::add(int64_t done) {
  done_ = std::min(done_ + done, total_);
  if (progress_ && !progress_(done_, total_)) throw Error(ErrorCode::kCancelled, "stopped before it was finished");
}

}  // namespace leadline

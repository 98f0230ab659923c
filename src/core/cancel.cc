// SPDX-License-Identifier: Apache-2.0
#include "core/cancel.h"

#include <utility>

#include "core/error.h"

namespace leadline {
namespace {

using Clock = std::chrono::steady_clock;

/// Far enough away for anyone; a time point holds 292 years.
constexpr double kLongest = 1e9;

Clock::time_point deadline_after(double seconds) {
  require(seconds >= 0, ErrorCode::kInvalidArgument, "the timeout is {} seconds, expected 0 or more", seconds);
  if (seconds > kLongest) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

WorkLimit::WorkLimit(RunCheck check, double timeout) : WorkLimit(std::move(check), deadline_after(timeout), timeout) {}

WorkLimit::WorkLimit(RunCheck check, Clock::time_point deadline, double timeout)
    : check_(std::move(check)), timeout_(timeout), deadline_(deadline), outer_(current_limit) {
  current_limit = this;
}

WorkLimit::~WorkLimit() { current_limit = outer_; }

void WorkLimit::ask() const {
  for (const WorkLimit* limit = this; limit != nullptr; limit = limit->outer_) {
    if (limit->check_) limit->check_();
    if (limit->deadline_ != Clock::time_point::max() && Clock::now() >= limit->deadline_) limit->give_up();
  }
}

void WorkLimit::give_up() const {
  const std::string place = WorkPlace::text();
  fail(ErrorCode::kTimeout, "{}{}the time limit of {:g} s was reached", place, place.empty() ? "" : ": ", timeout_);
}

}  // namespace leadline

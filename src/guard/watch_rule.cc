// SPDX-License-Identifier: Apache-2.0
#include "guard/watch_rule.h"

#include <algorithm>
#include <limits>

namespace leadline::guard {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr double kRemembered = 5.0;  // seconds of history
constexpr double kBetweenPoints = 0.05;
constexpr double kFallen = 0.97;        // of a limit: below it an episode is over
constexpr double kFastestGrowth = 4e9;  // bytes a second: what one core can touch of new pages
constexpr double kShortest = 0.002;     // seconds between samples
constexpr double kLongestBusy = 0.25;
constexpr double kIdle = 0.5;
constexpr double kPatience = 1.0;  // seconds that a told cell has to stop growing

}  // namespace

int64_t WatchRule::needed_growth(int64_t limit) const { return std::clamp<int64_t>(limit / 100, 4 * kMiB, 64 * kMiB); }

void WatchRule::begin_cell(const MemorySample& now) {
  begin_ = now;
  told_ = false;
}

std::optional<WatchAlarm> WatchRule::take(const MemorySample& sample, bool busy) {
  last_ = sample;
  if (history_.empty() || sample.seconds - history_.back().seconds >= kBetweenPoints) {
    history_.push_back({sample.seconds, sample.resident});
    while (sample.seconds - history_.front().seconds > kRemembered) history_.pop_front();
  }
  const auto machine_limit = static_cast<int64_t>(fraction_ * static_cast<double>(sample.capacity));
  const bool over_own = resident_limit_ > 0 && sample.resident >= resident_limit_;
  const bool over_machine = machine_limit > 0 && sample.used() >= machine_limit;
  if (told_) {
    const bool fell_own =
        resident_limit_ == 0 || static_cast<double>(sample.resident) < kFallen * static_cast<double>(resident_limit_);
    const bool fell_machine =
        machine_limit == 0 || static_cast<double>(sample.used()) < kFallen * static_cast<double>(machine_limit);
    const int64_t more = sample.resident - told_resident_;
    const bool goes_on = sample.seconds - told_at_ > kPatience && more > needed_growth(told_resident_);
    told_ = !(fell_own && fell_machine) && !goes_on;
  }
  if (!busy || told_ || (!over_own && !over_machine)) return std::nullopt;
  WatchAlarm alarm;
  alarm.sample = sample;
  alarm.own_limit = over_own;
  alarm.limit = over_own ? resident_limit_ : machine_limit;
  alarm.growth = sample.resident - begin_.resident;
  alarm.since = sample.seconds - begin_.seconds;
  alarm.bytes_per_second = bytes_per_second();
  // In a container what grows is most likely ours: worker processes, files in memory.
  const bool others = !over_own && sample.container && sample.used() - begin_.used() >= needed_growth(alarm.limit);
  if (alarm.growth < needed_growth(alarm.limit) && !others) return std::nullopt;
  return alarm;
}

void WatchRule::told(const MemorySample& now) {
  told_ = true;
  told_at_ = now.seconds;
  told_resident_ = now.resident;
}

double WatchRule::bytes_per_second() const {
  if (history_.empty()) return 0.0;
  // Over the last second, or what there is of it.
  const auto from = std::find_if(history_.begin(), history_.end(),
                                 [&](const Point& point) { return last_.seconds - point.seconds <= 1.0; });
  if (from == history_.end() || last_.seconds - from->seconds < 0.01) return 0.0;
  return static_cast<double>(last_.resident - from->resident) / (last_.seconds - from->seconds);
}

int64_t WatchRule::room() const {
  int64_t room = std::numeric_limits<int64_t>::max();
  if (last_.capacity > 0) room = last_.available;
  if (resident_limit_ > 0) room = std::min(room, std::max<int64_t>(resident_limit_ - last_.resident, 0));
  return room == std::numeric_limits<int64_t>::max() ? -1 : room;
}

double WatchRule::interval(bool busy) const {
  if (!busy) return kIdle;
  double room = std::numeric_limits<double>::max();
  if (last_.capacity > 0 && fraction_ > 0) {
    room = fraction_ * static_cast<double>(last_.capacity) - static_cast<double>(last_.used());
  }
  if (resident_limit_ > 0) room = std::min(room, static_cast<double>(resident_limit_ - last_.resident));
  return std::clamp(room / kFastestGrowth / 2, kShortest, kLongestBusy);
}

}  // namespace leadline::guard

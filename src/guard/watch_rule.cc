// SPDX-License-Identifier: Apache-2.0
#include "guard/watch_rule.h"

#include <algorithm>
#include <limits>

#include "guard/allocation_gate.h"
#include "guard/units.h"

namespace leadline::guard {
namespace {

constexpr double kRemembered = 5.0;  // seconds of history
constexpr double kBetweenPoints = 0.05;
constexpr double kFallen = 0.97;        // of a limit: below it an episode is over
constexpr double kFastestGrowth = 4e9;  // bytes a second: what one core can touch of new pages
constexpr double kShortest = 0.002;     // seconds between samples
constexpr double kLongestBusy = 0.25;
constexpr double kIdle = 0.5;
constexpr double kToldPatience = 1.0;  // seconds that a told cell has to stop growing
constexpr double kMoment = 0.05;       // before an alarm that reached nobody is given again
constexpr double kNear = 0.85;         // of a limit
constexpr double kRace = 200e6;        // bytes a second
constexpr double kNoise = 10e6;        // of what stands still
constexpr double kSoon = 1.0;          // seconds
/// Part of the time in which nothing but reclaim happens, and the fill level from which on that is a reason to stop:
/// with less in use it is the cache of files that is fought over, which nobody dies of.
constexpr double kThrashing = 0.4;
constexpr double kPressed = 0.8;

}  // namespace

int64_t WatchRule::limit_of(int64_t capacity) const {
  if (fraction_ <= 0 || capacity <= 0) return 0;
  if (fraction_ >= 1) return capacity;  // whoever wants to see the end
  // In a small container the reserve of refusals is the larger part.
  const int64_t refused = capacity - gate::reserve_of(capacity, fraction_) - 8 * kMiB;
  return std::min(static_cast<int64_t>(fraction_ * static_cast<double>(capacity)), std::max<int64_t>(refused, 1));
}

int64_t WatchRule::needed_growth(int64_t limit) const { return std::clamp<int64_t>(limit / 100, 4 * kMiB, 64 * kMiB); }

void WatchRule::begin_cell(const MemorySample& now) {
  begin_ = now;
  told_ = warned_ = false;
}

WatchRule::Shares WatchRule::shares(int64_t resident, int64_t workers, int64_t neighbours, int64_t used,
                                    bool container) {
  // Pages that a worker shares with us since a fork are in its count, and in nobody's growth.
  int64_t own = std::max<int64_t>(resident, 0) + std::clamp<int64_t>(workers, 0, std::max<int64_t>(used, 0));
  const int64_t unexplained = used - own - std::max<int64_t>(neighbours, 0);
  if (container && unexplained > std::max<int64_t>(neighbours, 0)) own += unexplained;
  return {own, used};
}

WatchRule::Shares WatchRule::since_begin() const {
  return shares(last_.resident - begin_.resident, last_.workers - begin_.workers, last_.neighbours - begin_.neighbours,
                last_.used() - begin_.used(), last_.container);
}

WatchRule::Shares WatchRule::lately() const {
  const Point& from = history_.front();
  return shares(last_.resident - from.resident, last_.workers - from.workers, last_.neighbours - from.neighbours,
                last_.used() - from.used, last_.container);
}

bool WatchRule::is_ours(const WatchAlarm& alarm) const {
  if (alarm.own_limit) return alarm.growth >= needed_growth(alarm.limit);
  if (since_begin().own < needed_growth(alarm.limit)) return false;
  // What fills memory now is somebody else.
  const Shares recent = lately();
  return recent.overall < needed_growth(alarm.limit) || recent.own >= recent.overall / 4;
}

bool WatchRule::near_limit() const {
  const bool own =
      resident_limit_ > 0 && static_cast<double>(last_.resident) > kNear * static_cast<double>(resident_limit_);
  return own || near_end_of_memory();
}

bool WatchRule::near_end_of_memory() const {
  const int64_t limit = limit_of(last_.capacity);
  return limit > 0 && static_cast<double>(last_.used()) > kNear * static_cast<double>(limit);
}

std::optional<WatchAlarm> WatchRule::take(const MemorySample& sample) {
  const double since_last = sample.seconds - last_.seconds;
  if (since_last >= kShortest) rate_now_ = static_cast<double>(sample.resident - last_.resident) / since_last;
  last_ = sample;
  if (history_.empty() || sample.seconds - history_.back().seconds >= kBetweenPoints) {
    history_.push_back({sample.seconds, sample.resident, sample.workers, sample.neighbours, sample.used()});
    while (sample.seconds - history_.front().seconds > kRemembered) history_.pop_front();
  }
  const int64_t machine_limit = limit_of(sample.capacity);
  const bool over_own = resident_limit_ > 0 && sample.resident >= resident_limit_;
  const bool thrashes = sample.pressure >= kThrashing && fraction_ > 0 &&
                        static_cast<double>(sample.used()) >= kPressed * static_cast<double>(sample.capacity);
  const bool over_machine = machine_limit > 0 && (sample.used() >= machine_limit || thrashes);
  if (told_) {
    const bool fell_own =
        resident_limit_ == 0 || static_cast<double>(sample.resident) < kFallen * static_cast<double>(resident_limit_);
    const bool fell_machine =
        machine_limit == 0 || static_cast<double>(sample.used()) < kFallen * static_cast<double>(machine_limit);
    const int64_t more = sample.resident + sample.workers - told_resident_;
    const bool goes_on = sample.seconds - told_at_ > kToldPatience && more > needed_growth(told_resident_);
    told_ = !(fell_own && fell_machine) && !goes_on;
  }
  if (told_ || (!over_own && !over_machine)) return std::nullopt;
  WatchAlarm alarm;
  alarm.sample = sample;
  alarm.own_limit = over_own;
  alarm.by_pressure = !over_own && sample.used() < machine_limit;
  alarm.limit = over_own ? resident_limit_ : machine_limit;
  alarm.growth = sample.resident - begin_.resident;
  alarm.worker_growth = sample.workers - begin_.workers;
  alarm.since = sample.seconds - begin_.seconds;
  alarm.bytes_per_second = bytes_per_second();
  if (is_ours(alarm)) return alarm;
  // Others' growth is told once a cell, and only while it happens.
  if (warned_ || over_own || since_begin().overall < needed_growth(alarm.limit)) return std::nullopt;
  warned_ = alarm.warning = true;
  return alarm;
}

void WatchRule::told(const MemorySample& now) {
  told_ = true;
  told_at_ = now.seconds;
  told_resident_ = now.resident + now.workers;
}

void WatchRule::take_back() {
  if (!told_) return;
  told_at_ = last_.seconds - kToldPatience + kMoment;
  told_resident_ = 0;
}

double WatchRule::bytes_per_second() const {
  if (history_.empty()) return 0.0;
  // Over the last second, or what there is of it.
  const auto from = std::find_if(history_.begin(), history_.end(),
                                 [&](const Point& point) { return last_.seconds - point.seconds <= 1.0; });
  if (from == history_.end() || last_.seconds - from->seconds < 0.01) return 0.0;
  return static_cast<double>(last_.resident - from->resident) / (last_.seconds - from->seconds);
}

double WatchRule::fastest_lately() const { return std::max(rate_now_, bytes_per_second()); }

bool WatchRule::races() const {
  const double rate = fastest_lately();
  // On a busy machine growth is slow, and so is everything that could be done about it. Nobody dies of a limit of the
  // process itself.
  const bool ends_soon = last_.capacity > 0 && static_cast<double>(last_.available) < rate * kSoon;
  return near_limit() && (rate > kRace || (rate > kNoise && ends_soon));
}

int64_t WatchRule::room() const {
  int64_t room = std::numeric_limits<int64_t>::max();
  if (last_.capacity > 0) room = last_.available;
  if (resident_limit_ > 0) room = std::min(room, std::max<int64_t>(resident_limit_ - last_.resident, 0));
  return room == std::numeric_limits<int64_t>::max() ? -1 : room;
}

double WatchRule::interval(bool busy) const {
  double room = std::numeric_limits<double>::max();
  if (last_.capacity > 0 && fraction_ > 0) room = static_cast<double>(limit_of(last_.capacity) - last_.used());
  if (resident_limit_ > 0) room = std::min(room, static_cast<double>(resident_limit_ - last_.resident));
  return std::clamp(room / kFastestGrowth / 2, kShortest, busy ? kLongestBusy : kIdle);
}

}  // namespace leadline::guard

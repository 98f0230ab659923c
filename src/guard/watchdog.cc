// SPDX-License-Identifier: Apache-2.0
#include "guard/watchdog.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "core/cpu_time.h"
#include "guard/allocation_gate.h"
#include "leadline/budget.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostWatchSamples = 2400;
constexpr double kSecondsBetweenSamples = 0.25;
constexpr size_t kMostCells = 1000;
/// Share of a core that looking may cost: usually, and while memory runs away.
constexpr double kSampledShare = 0.0025;
constexpr double kHurriedShare = 0.01;
constexpr double kRacingShare = 0.2;
constexpr double kHurry = 50e6;  // bytes a second
constexpr std::chrono::milliseconds kLookPatience{200};
/// Room for what is allocated between two looks and never touched: stacks of threads, malloc's arenas.
constexpr int64_t kSlack = int64_t{64} << 20;
constexpr int64_t kLeastRoom = int64_t{32} << 20;
constexpr double kBetweenCompany = 0.5;  // seconds between looks at other processes
constexpr double kBetweenFaults = 0.01;  // and at single threads
constexpr double kBetweenOffers = 0.05;  // of new workers to the OOM killer
constexpr double kBetweenRescues = 0.01;
constexpr double kBetweenTrims = 1.0;
constexpr double kBetweenPressure = 1.0;

/// Signals are for the threads of the program; only its own faults come here.
void block_signals() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace

Watchdog::Watchdog(WatchdogOptions options)
    : options_(std::move(options)),
      probe_(options_.paths),
      company_probe_(options_.paths),
      rule_(options_.fraction, options_.resident_limit),
      rescue_(options_.on_emergency, options_.pause_signal, options_.may_stop, options_.save_in_copy),
      faults_(options_.paths.proc) {
  MemorySample now = sample();
  add_company(now, true);
  rule_.begin_cell(now);
  if (options_.refuse_large) {
    gate::close({.fraction = options_.fraction, .resident_limit = options_.resident_limit}, options_.paths);
    gate::refresh(now);
  }
  if (options_.recorder != nullptr) options_.recorder->write_sample(now);
  // A signal between the start of the thread and its own mask would be lost on it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::make_unique<std::thread>([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Watchdog::stop() {
  if (is_copy()) {
    (void)thread_.release();
    return;
  }
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_->join();
  thread_.reset();
  if (options_.refuse_large) gate::open();
}

MemorySample Watchdog::sample() const {
  MemorySample now = probe_.sample();
  now.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  now.accounted = accounted_bytes();
  return now;
}

void Watchdog::run() {
  block_signals();
  prctl(PR_SET_NAME, "leadline-watch");
  for (int64_t asked = 0;;) {
    look();
    const std::chrono::duration<double> time = pause();
    std::unique_lock lock(mutex_);
    answered_ = asked;
    looked_.notify_all();
    wake_.wait_for(lock, time, [this] { return stopping_ || look_now_; });
    look_now_ = false;
    asked = asked_;
    if (stopping_) break;
  }
  data_limit_.restore();
}

void Watchdog::add_company(MemorySample& sample, bool now) {
  // The processes of others matter near a limit only, our own children whenever there are any.
  const bool due = sample.seconds - company_at_ >= kBetweenCompany;
  bool look = now;
  if (!look && due) {
    const std::lock_guard lock(mutex_);
    look = rule_.near_limit() || company_.worker_count > 0 || CompanyProbe::has_children();
  }
  const Company seen = look ? company_probe_.look() : Company();
  const std::lock_guard lock(mutex_);
  if (look) {
    company_ = seen;
    company_at_ = sample.seconds;
  }
  sample.workers = company_.workers;
  sample.worker_count = company_.worker_count;
  sample.neighbours = company_.neighbours;
}

void Watchdog::add_pressure(MemorySample& sample) {
  if (stalled_us_ < 0 || sample.seconds - stalled_at_ >= kBetweenPressure) {
    const int64_t stalled = probe_.stalled_us();
    const double seconds = sample.seconds - stalled_at_;
    pressure_ = stalled_us_ < 0 || stalled < 0 ? 0.0 : static_cast<double>(stalled - stalled_us_) * 1e-6 / seconds;
    stalled_us_ = stalled;
    stalled_at_ = sample.seconds;
  }
  sample.pressure = pressure_;
}

void Watchdog::look() {
  MemorySample now = sample();
  add_company(now, false);
  add_pressure(now);
  if (options_.refuse_large) gate::refresh(now);
  if (options_.recorder != nullptr) options_.recorder->write_sample(now);
  std::optional<WatchAlarm> alarm;
  bool near = false;
  bool near_end = false;
  {
    const std::lock_guard lock(mutex_);
    keep(now);
    alarm = rule_.take(now);
    if (alarm) alarm->cell = cell_;
    near = rule_.near_limit();
    near_end = rule_.near_end_of_memory();
  }
  if (near_end && now.seconds - offered_at_ >= kBetweenOffers) {
    CompanyProbe::offer_workers();
    offered_at_ = now.seconds;
  }
  const bool due = now.seconds - faults_at_ >= kBetweenFaults;
  if (near && (due || (alarm && growing_.empty()))) {  // an alarm names who grew, however soon it comes
    growing_ = faults_.since_last();
    faults_at_ = now.seconds;
  }
  if (alarm) give(std::move(*alarm));
  look_at_rescue(now);
  if (options_.refuse_native) move_data_limit(now);
}

bool Watchdog::gave_back(const WatchAlarm& alarm) {
#ifdef __GLIBC__
  // Not while threads are stopped: one of them may be in malloc.
  if (alarm.warning || rescue_.active() || alarm.sample.seconds - trimmed_at_ < kBetweenTrims) return false;
  trimmed_at_ = alarm.sample.seconds;
  const MemorySample before = alarm.sample;
  malloc_trim(0);
  const MemorySample now = sample();
  if (alarm.own_limit) return now.resident < alarm.limit;
  return now.used() < alarm.limit && now.used() < before.used();
#else
  (void)alarm;
  return false;
#endif
}

void Watchdog::give(WatchAlarm alarm) {
  if (gave_back(alarm)) return;
  if (!growing_.empty()) alarm.thread = growing_.front().thread;
  if (!options_.on_alarm || !options_.on_alarm(alarm)) return;
  const MemorySample& now = alarm.sample;
  if (alarm.warning) return;
  ++alarms_;
  if (options_.recorder != nullptr) {
    options_.recorder->write_event(flight::EventKind::kAlarm, alarm.cell.number, now.resident,
                                   alarm.own_limit ? "limit of the process" : "limit of container or machine");
  }
  const std::lock_guard lock(mutex_);
  rule_.told(now);
}

void Watchdog::look_at_rescue(const MemorySample& now) {
  bool alarmed = false;
  double rate = 0.0;
  {
    const std::lock_guard lock(mutex_);
    alarmed = rule_.in_episode();
    rate = rule_.fastest_lately();
  }
  rescue_.look(now, gate::reserve_of(now.capacity, options_.fraction), alarmed, rate, growing_);
}

void Watchdog::keep(const MemorySample& sample) {
  if (cell_.running) cell_.peak = std::max(cell_.peak, sample.resident);
  if (!samples_.empty() && sample.seconds - samples_.back().seconds < kSecondsBetweenSamples) return;
  samples_.push_back(sample);
  if (samples_.size() > kMostWatchSamples) samples_.pop_front();
}

void Watchdog::move_data_limit(const MemorySample& sample) {
  bool busy = false;
  bool episode = false;
  int64_t room = -1;
  {
    const std::lock_guard lock(mutex_);
    busy = busy_locked();
    episode = rule_.in_episode();
    room = rule_.room();
  }
  if (!busy || room < 0) {
    episode_limit_ = -1;
    data_limit_.restore();
    return;
  }
  if (!episode) {
    episode_limit_ = -1;
    data_limit_.set(sample.data + room + kSlack);
    return;
  }
  // What was told to stop and is still in native code meets a wall that does not move, before memory ends.
  if (episode_limit_ < 0) episode_limit_ = sample.data + std::max(room / 2, kLeastRoom);
  data_limit_.set(episode_limit_);
}

std::chrono::duration<double> Watchdog::pause() {
  const double cpu = thread_cpu_seconds();
  const double cost = cpu - cpu_seconds_;  // of waiting and waking too
  cost_ = cost_ == 0.0 ? cost : cost_ + (cost - cost_) / 8;
  cpu_seconds_ = cpu;
  const std::lock_guard lock(mutex_);
  if (rescue_.active()) return std::chrono::duration<double>(kBetweenRescues);
  const double share = rule_.races() ? kRacingShare : rule_.fastest_lately() > kHurry ? kHurriedShare : kSampledShare;
  return std::chrono::duration<double>(std::max(rule_.interval(busy_locked()), cost_ / share));
}

void Watchdog::begin_cell(int number, const std::string& first_line) {
  if (is_copy()) return;
  MemorySample now = sample();
  add_company(now, true);
  gate::begin_cell();
  const int64_t high_water = probe_.high_water();
  {
    const std::lock_guard lock(mutex_);
    cell_ = {};
    cell_.number = number;
    cell_.first_line = first_line;
    cell_.start_seconds = now.seconds;
    cell_.before = cell_.after = cell_.peak = now.resident;
    cell_.running = true;
    high_water_before_ = high_water;
    rule_.begin_cell(now);
    look_now_ = true;
    ++asked_;
  }
  wake_.notify_all();
  if (thread_ && options_.refuse_native) {
    // The limit has to be there before the cell's first allocation. On a busy machine a thread wakes late.
    std::unique_lock lock(mutex_);
    looked_.wait_for(lock, kLookPatience, [this, asked = asked_] { return stopping_ || answered_ >= asked; });
  }
  if (options_.recorder != nullptr) {
    options_.recorder->write_event(flight::EventKind::kCellBegin, number, now.resident, first_line);
  }
}

CellReport Watchdog::end_cell() {
  if (is_copy()) return {};
#ifdef __GLIBC__
  // What the cell freed and malloc keeps would be missing in the next one, and be copied by what that forks.
  if (near_limit()) malloc_trim(0);
#endif
  MemorySample now = sample();
  add_company(now, true);
  gate::begin_cell();
  const int64_t high_water = probe_.high_water();
  CellReport done;
  {
    const std::lock_guard lock(mutex_);
    if (!cell_.running) return {};
    cell_.running = false;
    cell_.seconds = now.seconds - cell_.start_seconds;
    cell_.after = now.resident;
    cell_.peak = std::max(cell_.peak, now.resident);
    // The kernel saw what samples missed, if it was more than ever before.
    if (high_water > high_water_before_) cell_.peak = std::max(cell_.peak, high_water);
    done = cell_;
    cells_.push_back(done);
    if (cells_.size() > kMostCells) cells_.pop_front();
    rule_.begin_cell(now);
    look_now_ = true;
  }
  wake_.notify_all();
  if (options_.recorder != nullptr) {
    options_.recorder->write_event(flight::EventKind::kCellEnd, done.number, done.peak, done.first_line);
  }
  return done;
}

bool Watchdog::near_limit() const {
  const std::lock_guard lock(mutex_);
  return rule_.near_limit() && !rescue_.active();
}

bool Watchdog::busy() const {
  if (is_copy()) return false;
  const std::lock_guard lock(mutex_);
  return busy_locked() && !stopping_;
}

void Watchdog::note_raised() {
  if (is_copy()) return;
  gate::begin_cell();  // what is taken from now on is for the report
  const MemorySample now = sample();
  if (options_.recorder != nullptr) options_.recorder->write_event(flight::EventKind::kRaised, 0, now.resident, "");
  const std::lock_guard lock(mutex_);
  rule_.told(now);
}

void Watchdog::take_back_alarm() {
  if (is_copy()) return;
  const std::lock_guard lock(mutex_);
  rule_.take_back();
}

std::vector<MemorySample> Watchdog::samples() const {
  if (is_copy()) return {};
  const std::lock_guard lock(mutex_);
  return {samples_.begin(), samples_.end()};
}

std::vector<CellReport> Watchdog::cells() const {
  if (is_copy()) return {};
  const std::lock_guard lock(mutex_);
  std::vector<CellReport> result(cells_.begin(), cells_.end());
  if (cell_.running) {
    result.push_back(cell_);
    result.back().seconds = std::chrono::duration<double>(Clock::now() - begin_).count() - cell_.start_seconds;
  }
  return result;
}

double Watchdog::cpu_seconds() const { return cpu_seconds_; }

}  // namespace leadline::guard

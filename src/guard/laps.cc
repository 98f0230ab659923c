// SPDX-License-Identifier: Apache-2.0
// Samples of this process, and what the fits of them say together.
#include "leadline/guard/laps.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/cgroup.h"
#include "guard/growth.h"
#include "guard/process_tree.h"
#include "guard/units.h"
#include "leadline/budget.h"

namespace leadline::guard {
namespace {

/// A program may keep a few numbers of every round: less than this per round is not a leak.
constexpr double kLeastBytes = 1024;
constexpr double kLeastPages = 4096;
/// Of pages that nothing in the heap accounts for: holes between blocks of many sizes grow for a while by less.
constexpr double kLeastUnexplained = 32768;
constexpr double kLeastObjects = 16;
/// In fewer rounds than these, bytes in the heap and objects must grow faster: many libraries (matplotlib) fill caches
/// for some dozens of rounds, with some KB in each.
constexpr double kEnoughRounds = 200;
constexpr double kLeastCount = 0.1;  // of descriptors and processes: one in ten rounds
/// Of a small Python object, with its share of what holds it.
constexpr double kBytesPerObject = 64;
constexpr int64_t kLongestWait = 16;  // one part in this many of the rounds
constexpr int kLargestShare = 20;     // one part in this many of the loop's time

int64_t own_memory() {
  const std::optional<std::string> text = read_text_file("/proc/self/status");
  if (!text) return -1;
  const std::optional<int64_t> anonymous = find_number(*text, "RssAnon");
  if (!anonymous) return -1;
  return (*anonymous + find_number(*text, "RssShmem").value_or(0) + find_number(*text, "VmSwap").value_or(0)) * kKiB;
}

struct HeapInfo {  // struct mallinfo2, which is younger than the glibc that wheels may rely on
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
using HeapFunction = HeapInfo (*)();

int64_t in_use(HeapFunction function) {
  const HeapInfo info = function();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

/// glibc's function, or null where malloc is another's (jemalloc, sanitizers): a block then does not show in it.
HeapFunction find_heap_function() {
  constexpr int kAttempts = 3;  // other threads may free as much meanwhile
  constexpr size_t kBlock = size_t{1} << 16;
  const auto function = reinterpret_cast<HeapFunction>(dlsym(RTLD_DEFAULT, "mallinfo2"));
  for (int attempt = 0; function != nullptr && attempt < kAttempts; ++attempt) {
    const int64_t before = in_use(function);
    void* volatile block = malloc(kBlock);
    const int64_t after = in_use(function);
    free(block);
    if (after - before >= static_cast<int64_t>(kBlock)) return function;
  }
  return nullptr;
}

/// In use in all arenas of glibc's heap; -1: unknown.
int64_t heap_in_use() {
  static const HeapFunction function = find_heap_function();
  return function != nullptr ? in_use(function) : -1;
}

int64_t count_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (folder == nullptr) return -1;
  int64_t count = -1;  // the folder's own
  while (const dirent* entry = readdir(folder.get())) count += entry->d_name[0] != '.' ? 1 : 0;
  return count;
}

using LapPoints = std::vector<SeriesPoint>;

/// Points that lie evenly over the rounds: the first rounds of a long loop are sampled closely, and would decide alone.
/// Taken from the end on, as far apart as those of the later half are.
LapPoints spread(const LapPoints& points) {
  constexpr int64_t kMostPlaces = 64;
  if (points.size() <= kFewestPoints) return points;
  const int64_t last = points.back().round;
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < points.size(); ++i) {
    if (2 * points[i].round > last) gaps.push_back(points[i].round - points[i - 1].round);
  }
  if (gaps.empty()) return points;
  std::ranges::sort(gaps);
  for (int64_t apart = std::max(gaps[gaps.size() / 2], last / kMostPlaces);; apart /= 2) {
    LapPoints result;
    for (size_t i = points.size(); i-- > 0;) {
      if (result.empty() || result.back().round - points[i].round >= apart) result.push_back(points[i]);
    }
    std::ranges::reverse(result);
    if (result.size() >= kFewestPoints || apart <= 1) return result;
  }
}

Growth fit(const std::vector<LapSample>& samples, int64_t LapSample::* quantity, double floor) {
  LapPoints points;
  points.reserve(samples.size());
  for (const LapSample& sample : samples) {
    if (sample.*quantity >= 0) points.push_back({sample.round, sample.*quantity});
  }
  return fit_growth(spread(points), floor);
}

int64_t rounded(double value) { return std::llround(std::clamp(value, -9e18, 9e18)); }

std::string bytes(double value) { return format_bytes(rounded(value)); }

bool grows(const Growth& growth) { return growth.verdict == GrowthVerdict::kGrows; }

std::string detail(const char* what, const Growth& growth) {
  if (growth.verdict == GrowthVerdict::kTooFewRounds) return "";
  if (!grows(growth)) return fmt::format("\n  {:<22}flat", what);
  return fmt::format("\n  {:<22}grows {} a round", what, bytes(growth.per_round));
}

std::string detail_of_count(const char* what, const Growth& growth) {
  return grows(growth) ? fmt::format("\n  {:<22}{:.2g} more a round", what, growth.per_round) : "";
}

/// Pages alone must grow evenly, and fast where the heap is known and does not grow: a heap in pieces does neither.
bool is_convincing(const Growth& pages, bool heap_known) {
  return 2 * pages.low >= pages.per_round && (!heap_known || pages.per_round >= kLeastUnexplained);
}

/// The quantity whose growth is the loop's: the process's own, or the fastest inside it.
void choose(LapReport& report) {
  const auto take = [&](double per_round, double low, double high) {
    report.bytes_per_round = per_round;
    report.low = low;
    report.high = high;
  };
  const Growth& memory = report.memory;
  take(memory.per_round, memory.low, memory.high);
  if (report.verdict != GrowthVerdict::kGrows || grows(memory)) return;
  take(0, 0, 0);
  for (const Growth* inner : {&report.allocated, &report.accounted}) {
    if (grows(*inner) && inner->per_round > report.bytes_per_round) take(inner->per_round, inner->low, inner->high);
  }
  const Growth& objects = report.objects;
  if (report.bytes_per_round > 0 || !grows(objects)) return;
  take(objects.per_round * kBytesPerObject, objects.low * kBytesPerObject, objects.high * kBytesPerObject);
}

std::string describe_laps(const LapReport& report) {
  if (report.verdict == GrowthVerdict::kTooFewRounds) {
    return fmt::format("too few rounds: {}, at least {} are needed", report.rounds, kFewestPoints);
  }
  const std::string range = fmt::format("{} to {}", bytes(report.low), bytes(report.high));
  if (report.verdict == GrowthVerdict::kFlat) {
    return fmt::format("flat over {} rounds ({} a round, {})", report.rounds, bytes(report.bytes_per_round), range);
  }
  const bool in_bytes =
      grows(report.memory) || grows(report.allocated) || grows(report.accounted) || grows(report.objects);
  std::string text =
      in_bytes
          ? fmt::format("grows {} a round ({}, over {} rounds)", bytes(report.bytes_per_round), range, report.rounds)
      : grows(report.descriptors)
          ? fmt::format("grows {:.2g} descriptors a round (over {} rounds)", report.descriptors.per_round,
                        report.rounds)
          : fmt::format("grows {:.2g} processes a round (over {} rounds)", report.processes.per_round, report.rounds);
  text += detail_of_count("open descriptors", report.descriptors);
  text += detail_of_count("child processes", report.processes);
  if (!in_bytes) return text;
  text += detail("memory of the process", report.memory);
  text += detail("in use in the heap", report.allocated);
  text += detail("Leadline's own", report.accounted);
  if (grows(report.objects))
    text += fmt::format("\n  objects               {:.0f} more a round", report.objects.per_round);
  const bool only_pages = grows(report.memory) && !grows(report.allocated) && !grows(report.accounted) &&
                          !grows(report.objects) && report.allocated.verdict != GrowthVerdict::kTooFewRounds;
  if (only_pages) text += "\n  not of the heap: mapped by a library, or pages that allocators cannot release";
  return text;
}

}  // namespace

const char* growth_verdict_name(GrowthVerdict verdict) noexcept {
  switch (verdict) {
    case GrowthVerdict::kFlat:
      return "flat";
    case GrowthVerdict::kGrows:
      return "grows";
    case GrowthVerdict::kTooFewRounds:
      break;
  }
  return "too few rounds";
}

Laps::Laps() {
  samples_.reserve(kMostSamples);
  // What is set up by the first call of these is not the loop's.
  own_memory();
  heap_in_use();
}

bool Laps::samples_next() {
  if (next_) return true;
  asked_ = Clock::now();
  const int64_t round = round_ + 1;
  const int64_t last = samples_.empty() ? 0 : samples_.back().round;
  next_ = round <= kEveryRound || round - last > last / kLongestWait ||
          (round % stride_ == 0 && spent_ * kLargestShare <= asked_ - start_);
  return next_;
}

void Laps::lap(int64_t objects) {
  const bool sampled = samples_next();
  ++round_;
  if (!sampled) return;
  next_ = false;
  take_sample(objects);
  spent_ += Clock::now() - asked_;
}

void Laps::sample_last(int64_t objects) {
  if (!samples_.empty() && samples_.back().round < round_) take_sample(objects);
}

void Laps::take_sample(int64_t objects) {
  LapSample sample;
  sample.round = round_;
  sample.memory = own_memory();
  sample.allocated = heap_in_use();
  sample.accounted = accounted_bytes();
  sample.objects = objects;
  sample.descriptors = count_descriptors();
  sample.processes = static_cast<int64_t>(children_of(getpid()).size());
  samples_.push_back(sample);
  if (samples_.size() == kMostSamples) {
    for (size_t i = 0; i < kMostSamples / 2; ++i) samples_[i] = samples_[2 * i + 1];
    samples_.resize(kMostSamples / 2);
    stride_ *= 2;
  }
}

LapReport Laps::report() const {
  LapReport report;
  report.rounds = round_;
  report.memory = fit(samples_, &LapSample::memory, kLeastPages);
  const double caution = std::max(1.0, kEnoughRounds / static_cast<double>(std::max<int64_t>(round_, 1)));
  report.allocated = fit(samples_, &LapSample::allocated, kLeastBytes * caution);
  report.accounted = fit(samples_, &LapSample::accounted, kLeastBytes);
  report.objects = fit(samples_, &LapSample::objects, kLeastObjects * caution);
  report.descriptors = fit(samples_, &LapSample::descriptors, kLeastCount);
  report.processes = fit(samples_, &LapSample::processes, kLeastCount);
  const bool explained = grows(report.allocated) || grows(report.accounted) || grows(report.objects);
  const bool heap_known = report.allocated.verdict != GrowthVerdict::kTooFewRounds;
  if (grows(report.memory) && !explained && !is_convincing(report.memory, heap_known)) {
    report.memory.verdict = GrowthVerdict::kFlat;
  }
  const std::array all = {&report.memory,  &report.allocated,   &report.accounted,
                          &report.objects, &report.descriptors, &report.processes};
  for (const Growth* growth : all) report.verdict = std::max(report.verdict, growth->verdict);
  choose(report);
  report.text = describe_laps(report);
  return report;
}

}  // namespace leadline::guard

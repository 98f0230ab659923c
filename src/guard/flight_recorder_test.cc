// SPDX-License-Identifier: Apache-2.0
#include "guard/flight_recorder.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "guard/flight_reader.h"
#include "guard/flight_testing.h"
#include "guard/postmortem.h"

namespace leadline::guard {
namespace {

std::optional<Flight> parse(const std::string& bytes) { return read_flight(std::as_bytes(std::span(bytes))); }

/// A recording with more of everything than it can hold.
std::string full_recording() {
  const FlightFolder folder;
  run_child([&] {
    FlightRecorder& recorder = FlightRecorder::instance();
    if (!recorder.open(folder.path())) _exit(1);
    recorder.write_facts({{"session", "old"}});
    recorder.write_facts({{"session", "a\nb"}, {"versions", "numpy 2.0"}});
    for (int i = 1; i <= 3000; ++i) {
      MemorySample sample;
      sample.resident = int64_t{i} << 35;  // far enough apart to be kept
      sample.capacity = int64_t{1} << 40;
      sample.available = int64_t{1} << 39;
      recorder.write_sample(sample);
    }
    for (int i = 1; i <= 300; ++i) recorder.write_event(flight::EventKind::kCellBegin, i, i, "x = \x1b[31m1");
    recorder.follow_ops(true);
    const RunningOpScope outer(0, 7, "WHILE", "loop");
    const RunningOpScope inner(1, 3, "CONV_2D", std::string(300, 'n'));
    _exit(0);
  });
  return read_all(folder.only_file());
}

TEST(FlightRecorder, KeepsTheNewestOfEverything) {
  const std::optional<Flight> flight = parse(full_recording());
  ASSERT_TRUE(flight);
  EXPECT_GT(flight->header.pid, 0);
  EXPECT_EQ(flight->fact("session"), "a b");
  EXPECT_EQ(flight->fact("versions"), "numpy 2.0");
  ASSERT_EQ(flight->samples.size(), flight::kSamples);
  EXPECT_EQ(flight->samples.back().resident, int64_t{3000} << 35);
  EXPECT_EQ(flight->samples.front().resident, int64_t{3000 - 1023} << 35);
  ASSERT_EQ(flight->events.size(), flight::kEvents);
  EXPECT_EQ(flight->events.back().number, 300);
  EXPECT_EQ(flight->events.back().text.find('\x1b'), std::string::npos) << "text for a terminal is printable";
  ASSERT_EQ(flight->ops.size(), 2U);
  EXPECT_TRUE(flight->ops[0].running);
  EXPECT_EQ(flight->ops[1].op, "CONV_2D");
  EXPECT_EQ(flight->ops[1].name.size(), 111U);
}

TEST(FlightRecorder, FilesArePrivateAndLocked) {
  const FlightFolder folder;
  const FlightFile file = make_flight_file(folder.path());
  ASSERT_TRUE(file.descriptor);
  struct stat status{};
  ASSERT_EQ(stat(file.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600);
  EXPECT_EQ(status.st_size, static_cast<off_t>(flight::kFileBytes));
  ASSERT_EQ(stat(folder.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700);
}

TEST(FlightRecorder, FoldersOfOthersAndLinksAreRefused) {
  const FlightFolder folder;
  std::filesystem::create_directory(folder.root() + "/real");
  std::filesystem::create_directory_symlink(folder.root() + "/real", folder.path());
  EXPECT_FALSE(make_flight_file(folder.path()).descriptor);
  const std::string open_to_all = folder.root() + "/shared";
  std::filesystem::create_directory(open_to_all);
  chmod(open_to_all.c_str(), 0777);
  EXPECT_FALSE(make_flight_file(open_to_all).descriptor);
  EXPECT_FALSE(make_flight_file("/proc/self/flights").descriptor);
}

TEST(FlightRecorder, OldFilesGoAndLockedOnesStay) {
  const FlightFolder folder;
  const FlightFile running = make_flight_file(folder.path());
  for (size_t i = 0; i < kMostFlights + 5; ++i) make_flight_file(folder.path());
  prune_flights(folder.path());
  const std::vector<std::string> left = list_flights(folder.path());
  EXPECT_EQ(left.size(), kMostFlights);
  EXPECT_EQ(std::count(left.begin(), left.end(), running.path), 1) << "the oldest, but in use";
}

TEST(FlightRecorder, AForkedChildDoesNotWriteItsParentsRecording) {
  const FlightFolder folder;
  run_child([&] {
    FlightRecorder& recorder = FlightRecorder::instance();
    recorder.open(folder.path());
    recorder.write_event(flight::EventKind::kCellBegin, 1, 0, "parent");
    run_child([&] {
      recorder.write_event(flight::EventKind::kCellBegin, 2, 0, "child");
      recorder.write_sample({});
      recorder.follow_ops(true);
      const RunningOpScope op(0, 0, "ADD", "");
    });
  });
  const std::optional<Flight> flight = parse(read_all(folder.only_file()));
  ASSERT_TRUE(flight);
  ASSERT_EQ(flight->events.size(), 1U);
  EXPECT_EQ(flight->events[0].text, "parent");
  EXPECT_TRUE(flight->samples.empty());
  EXPECT_TRUE(flight->ops.empty());
}

TEST(FlightReader, ATornRecordIsAbsent) {
  std::string bytes = full_recording();
  const std::optional<Flight> whole = parse(bytes);
  bytes[flight::kSamplesAt + 5 * sizeof(flight::FlightSample) + 30] ^= 1;
  bytes[flight::kEventsAt + 9 * sizeof(flight::Event) + 60] ^= 1;
  const std::optional<Flight> torn = parse(bytes);
  ASSERT_TRUE(torn);
  EXPECT_EQ(torn->samples.size(), whole->samples.size() - 1);
  EXPECT_EQ(torn->events.size(), whole->events.size() - 1);
  bytes[flight::kFactsAt + 100] ^= 1;
  EXPECT_EQ(parse(bytes)->fact("session"), "old") << "the other copy of the facts";
  bytes[20] ^= 1;
  EXPECT_FALSE(parse(bytes));
}

TEST(FlightReader, AnyLengthCanBeRead) {
  const std::string bytes = full_recording();
  for (size_t size = 0; size < bytes.size(); size += 997) parse(bytes.substr(0, size));
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse(std::string(flight::kFileBytes, '\0')));
}

/// Checksums keep accidents out, not enemies: here the numbers are wrong and the checksums right.
TEST(FlightReader, HostileNumbersAreHarmless) {
  std::string bytes = full_recording();
  std::mt19937_64 random(7);
  const auto spoil = [&](size_t offset, size_t size) {
    for (int i = 0; i < 3; ++i) {
      const uint64_t value = random() % 3 == 0 ? ~uint64_t{0} : random() % 2 == 0 ? uint64_t{1} << 63 : random();
      const size_t at = offset + 8 + random() % ((size - 16) / 8) * 8;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    const uint64_t sum = flight::checksum_of(bytes.data() + offset, size);
    std::memcpy(bytes.data() + offset, &sum, sizeof sum);
  };
  for (int round = 0; round < 300; ++round) {
    spoil(flight::kFactsAt, sizeof(flight::Facts));
    spoil(flight::kSamplesAt + random() % flight::kSamples * sizeof(flight::FlightSample),
          sizeof(flight::FlightSample));
    spoil(flight::kEventsAt + random() % flight::kEvents * sizeof(flight::Event), sizeof(flight::Event));
    spoil(flight::kCrashAt, sizeof(flight::Crash));
    std::memset(bytes.data() + flight::kOpsAt, static_cast<int>(random() % 256), kRunningOps * sizeof(RunningOp));
    const std::optional<Flight> flight = parse(bytes);
    ASSERT_TRUE(flight);
    Evidence evidence;
    evidence.group_oom_kills = static_cast<int64_t>(random());
    EXPECT_FALSE(judge(*flight, evidence).to_text().empty());
  }
}

TEST(FlightRecorder, AFileThatIsCutOffDoesNotEndTheProcess) {
  const FlightFolder folder;
  const int status = run_child([&] {
    FlightRecorder& recorder = FlightRecorder::instance();
    if (!recorder.open(folder.path())) _exit(3);
    recorder.write_event(flight::EventKind::kCellBegin, 1, 0, "x");
    if (truncate(recorder.path().c_str(), 0) != 0) _exit(4);
    for (int i = 0; i < 2000; ++i) {
      MemorySample sample;
      sample.resident = i * 1'000'000'000LL;
      sample.capacity = 1'000'000'000;
      recorder.write_sample(sample);
      recorder.write_event(flight::EventKind::kCellEnd, i, 0, "y");
    }
    recorder.write_facts({{"a", "b"}});
    _exit(0);
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace leadline::guard

// SPDX-License-Identifier: Apache-2.0
// Verdicts on made-up recordings and made-up systems.
#include "guard/postmortem.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>

#include "guard/flight_testing.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline::guard {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

/// A process of pid 77 that was watched for ten seconds and used `share` of its gigabyte at the end.
Flight flight_with(double share) {
  Flight flight;
  flight.header.pid = 77;
  flight.header.start_ticks = 1234;
  flight.header.clock_ns = 1000 * kSecond;
  std::strcpy(flight.header.boot_id, "this-boot");
  for (int i = 1; i <= 10; ++i) {
    flight::FlightSample sample;
    sample.sequence = static_cast<uint64_t>(i);
    sample.clock_ns = (1000 + i) * kSecond;
    sample.capacity = 1'000'000'000;
    sample.used = sample.resident = static_cast<int64_t>(share * 1e9);
    flight.samples.push_back(sample);
  }
  flight.facts["command"] = "/usr/bin/python3 -m ipykernel";
  return flight;
}

void add_event(Flight& flight, flight::EventKind kind, int number, const std::string& text, int64_t second = 1011) {
  flight.events.push_back({second * kSecond, kind, number, 0, text});
}

Evidence quiet() {
  Evidence evidence;
  evidence.boot_id = "this-boot";
  evidence.group_oom_kills = 0;
  evidence.machine_oom_kills = 0;
  return evidence;
}

TEST(Postmortem, AGroupThatCountedAnOomKill) {
  Flight flight = flight_with(0.97);
  add_event(flight, flight::EventKind::kCellBegin, 7, "x = np.ones(10**9)");
  Evidence evidence = quiet();
  evidence.group_oom_kills = 1;
  const Postmortem report = judge(flight, evidence);
  EXPECT_EQ(report.cause, DeathCause::kOutOfMemory);
  EXPECT_EQ(report.confidence, "very likely");
  EXPECT_EQ(report.cell, 7);
  EXPECT_TRUE(report.cell_running);
  EXPECT_NE(report.summary.find("in cell 7 (`x = np.ones(10**9)`)"), std::string::npos) << report.summary;
  EXPECT_NE(report.summary.find("97 %"), std::string::npos) << report.summary;
  EXPECT_FALSE(report.advice.empty());
  EXPECT_TRUE(report.died());
}

TEST(Postmortem, AKernelLogThatNamesTheProcess) {
  Evidence evidence = quiet();
  evidence.kernel_log =
      "<3>[  500.100000] Out of memory: Killed process 77 (python)\n"  // long before: a process that had the number
      "<3>[ 1011.300000] Out of memory: Killed process 770 (python)\n";
  EXPECT_EQ(judge(flight_with(0.2), evidence).cause, DeathCause::kKilled);
  evidence.kernel_log += "<3>[ 1011.300000] Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB\n";
  const Postmortem report = judge(flight_with(0.2), evidence);
  EXPECT_EQ(report.cause, DeathCause::kOutOfMemory);
  EXPECT_EQ(report.confidence, "certain");
}

TEST(Postmortem, KilledWhileThereWasMemory) {
  const Postmortem report = judge(flight_with(0.2), quiet());
  EXPECT_EQ(report.cause, DeathCause::kKilled);
  EXPECT_EQ(report.confidence, "very likely");
  EXPECT_EQ(judge(flight_with(0.97), quiet()).confidence, "unclear");
}

TEST(Postmortem, WithoutCountersTheLastSamplesSpeak) {
  Evidence evidence;
  EXPECT_EQ(judge(flight_with(0.97), evidence).cause, DeathCause::kOutOfMemory);
  EXPECT_EQ(judge(flight_with(0.97), evidence).confidence, "likely");
  EXPECT_EQ(judge(flight_with(0.3), evidence).cause, DeathCause::kKilled);
}

TEST(Postmortem, EndsOfOtherKinds) {
  Flight flight = flight_with(0.2);
  Evidence evidence = quiet();
  evidence.alive = true;
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kRunning);
  EXPECT_FALSE(judge(flight, evidence).died());
  evidence = quiet();
  evidence.boot_id = "another-boot";
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kReboot);
  add_event(flight, flight::EventKind::kStop, 0, "");
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kUnwatched);
  add_event(flight, flight::EventKind::kResume, 0, "");
  EXPECT_EQ(judge(flight, quiet()).cause, DeathCause::kKilled) << "watched again";
  add_event(flight, flight::EventKind::kExit, 0, "ValueError: no");
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kExit);
  EXPECT_NE(judge(flight, evidence).summary.find("ValueError: no"), std::string::npos);
}

void add_crash(Flight& flight, int signal) {
  flight.crash.emplace();
  flight.crash->clock_ns = 1011 * kSecond;
  flight.crash->signal = signal;
  flight.crash->code = 1;
  flight.crash->fault_address = 0x10;
  flight.crash->frame_count = 3;
  flight.crash_modules = {"/lib/x86_64-linux-gnu/libc.so.6", "/opt/site/_core.so", "/usr/bin/python3"};
}

TEST(Postmortem, ACrashNamesTheLibraryBehindTheSystems) {
  Flight flight = flight_with(0.2);
  add_crash(flight, SIGSEGV);
  const Postmortem report = judge(flight, quiet());
  EXPECT_EQ(report.cause, DeathCause::kSegfault);
  EXPECT_EQ(report.module, "/opt/site/_core.so");
  EXPECT_NE(report.summary.find("segmentation fault in _core.so (address 0x10)"), std::string::npos) << report.summary;
  flight.crash->stack_overflow = 1;
  EXPECT_EQ(judge(flight, quiet()).cause, DeathCause::kStackOverflow);
}

TEST(Postmortem, AFaultThatWasMendedIsNotTheEnd) {
  Flight flight = flight_with(0.2);
  add_crash(flight, SIGSEGV);
  flight.crash->clock_ns = 1003 * kSecond;  // samples went on
  EXPECT_EQ(judge(flight, quiet()).cause, DeathCause::kKilled);
}

TEST(Postmortem, AnIllegalInstructionNamesWhatIsMissing) {
  Flight flight = flight_with(0.2);
  flight.facts["cpu"] = "Old CPU";
  flight.facts["cpu_features"] = "sse4_2 avx ";
  add_crash(flight, SIGILL);
  const unsigned char vaddps[] = {0x62, 0xF1, 0x7C, 0x48, 0x58, 0xC1};
  std::memcpy(flight.crash->instruction, vaddps, sizeof vaddps);
  flight.crash->instruction_size = sizeof vaddps;
  const Postmortem report = judge(flight, quiet());
  EXPECT_EQ(report.instruction, "62 f1 7c 48 58 c1");
  EXPECT_FALSE(report.trap);
  EXPECT_NE(report.summary.find("illegal instruction in _core.so (62 f1 7c 48 58 c1)"), std::string::npos)
      << report.summary;
  ASSERT_FALSE(report.missing_features.empty());
  EXPECT_EQ(report.missing_features.front(), "sse4_1");
  EXPECT_NE(report.advice.find("(Old CPU) does not have sse4_1, f16c, fma, avx2, avx512f,"), std::string::npos)
      << report.advice;
  EXPECT_NE(report.advice.find("_core.so"), std::string::npos) << report.advice;
  EXPECT_EQ(report.cause, DeathCause::kIllegalInstruction);
  flight.facts.erase("cpu_features");
  EXPECT_TRUE(judge(flight, quiet()).missing_features.empty());
}

TEST(Postmortem, EvidenceOfAFakeSystem) {
  FakeSystem system;
  Flight flight = flight_with(0.5);
  system.write("proc/sys/kernel/random/boot_id", "this-boot\n");
  system.write("proc/vmstat", "nr_free_pages 5\noom_kill 4\n");
  system.write("cgroup/job/memory.events", "oom 2\noom_kill 2\n");
  flight.facts["cgroup"] = system.paths().cgroup + "/job";
  flight.facts["cgroup_version"] = "2";
  const std::string stat = " S 1 1 1 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 1 0 1234 1 1\n";
  system.write("proc/77/stat", "77 (odd) name)" + stat);
  EXPECT_TRUE(gather_evidence(flight, false, system.paths()).alive);
  flight.header.start_ticks = 999;  // the number was given to another process
  Evidence evidence = gather_evidence(flight, false, system.paths());
  EXPECT_FALSE(evidence.alive);
  EXPECT_EQ(evidence.group_oom_kills, 2);
  EXPECT_EQ(evidence.machine_oom_kills, 4);
  flight.header.start_ticks = 1234;
  system.write("proc/77/stat", "77 (python) Z 1 1 1 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 1 0 1234 1 1\n");
  EXPECT_FALSE(gather_evidence(flight, false, system.paths()).alive) << "a zombie is dead";
  flight.facts["cgroup"] = "/etc";
  EXPECT_FALSE(gather_evidence(flight, false, system.paths()).group_oom_kills);
}

TEST(Postmortem, FilesThatAreNoRecordings) {
  const FlightFolder folder;
  std::filesystem::create_directory(folder.path());
  std::ofstream(folder.path() + "/20260101T000000.000Z-1.flight") << "hello";
  const std::vector<Postmortem> found = postmortems(folder.path());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].cause, DeathCause::kUnknown);
  EXPECT_FALSE(found[0].died());
  EXPECT_TRUE(postmortems(folder.root() + "/nothing").empty());
}

}  // namespace
}  // namespace leadline::guard

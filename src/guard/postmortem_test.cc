// SPDX-License-Identifier: Apache-2.0
// Verdicts on made-up recordings and made-up systems.
#include "guard/postmortem.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
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
  EXPECT_EQ(judge(flight_with(0.97), quiet()).cause, DeathCause::kKilled) << "no OOM kill was counted in its group";
}

TEST(Postmortem, OomKillsOfOtherGroupsAreNotItsOwn) {
  Evidence evidence = quiet();
  evidence.machine_oom_kills = 5;  // somewhere else: its own group counted none
  const Postmortem report = judge(flight_with(0.97), evidence);
  EXPECT_EQ(report.cause, DeathCause::kKilled) << report.summary;
  EXPECT_EQ(report.summary.find("OOM"), std::string::npos) << report.summary;
  evidence.group_oom_kills.reset();  // its group is gone, and the machine counted
  EXPECT_EQ(judge(flight_with(0.97), evidence).cause, DeathCause::kOutOfMemory);
  EXPECT_EQ(judge(flight_with(0.97), evidence).confidence, "likely");
  EXPECT_EQ(judge(flight_with(0.2), evidence).cause, DeathCause::kKilled);
}

TEST(Postmortem, AnOomKillThatWasCountedBeforeIsAnOldStory) {
  Flight flight = flight_with(0.97);
  Evidence evidence = quiet();
  evidence.group_oom_kills = 1;
  evidence.group_oom_kills_before = 1;  // the parent saw that a moment before the end
  evidence.exit_status = -SIGKILL;
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kKilled);
  EXPECT_EQ(judge(flight, evidence).confidence, "certain");
  evidence.group_oom_kills = 2;
  flight = flight_with(0.2);  // it took all between two samples
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kOutOfMemory);
  EXPECT_EQ(judge(flight, evidence).confidence, "very likely");
}

TEST(Postmortem, AKernelLogOfAnotherNamespaceNamesOtherProcesses) {
  Flight flight = flight_with(0.2);
  flight.header.pid_namespace = 4026532000;  // a container's
  Evidence evidence = quiet();
  evidence.kernel_log = "<3>[ 1011.300000] Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB\n";
  EXPECT_EQ(judge(flight, evidence).cause, DeathCause::kKilled);
}

TEST(Postmortem, TheExitStatusLeavesLittleToGuess) {
  Evidence evidence = quiet();
  const auto cause = [&](int status) {
    evidence.exit_status = status;
    return judge(flight_with(0.2), evidence).cause;
  };
  EXPECT_EQ(cause(-SIGSEGV), DeathCause::kSegfault);
  EXPECT_EQ(cause(-SIGABRT), DeathCause::kAbort);
  EXPECT_EQ(cause(-SIGTERM), DeathCause::kSignal);
  EXPECT_EQ(cause(-SIGKILL), DeathCause::kKilled);
  EXPECT_EQ(cause(128 + SIGSEGV), DeathCause::kSegfault) << "what `conda run` says";
  EXPECT_EQ(cause(3), DeathCause::kExit);
  EXPECT_NE(judge(flight_with(0.2), evidence).summary.find("with exit code 3"), std::string::npos);
}

TEST(Postmortem, AProcessThatBecameAnotherProgramWasNotKilled) {
  FakeSystem system;
  system.write("proc/sys/kernel/random/boot_id", "this-boot\n");
  system.write("proc/77/stat", "77 (true) S 1 1 1 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 1 0 1234 1 1\n");
  Flight flight = flight_with(0.2);
  add_event(flight, flight::EventKind::kExec, 0, "/bin/true");
  EXPECT_FALSE(gather_evidence(flight, true, system.paths()).replaced) << "not yet";
  const Evidence evidence = gather_evidence(flight, false, system.paths());
  EXPECT_TRUE(evidence.replaced && evidence.alive);
  const Postmortem report = judge(flight, evidence);
  EXPECT_EQ(report.cause, DeathCause::kReplaced);
  EXPECT_NE(report.summary.find("became another program (exec): /bin/true"), std::string::npos) << report.summary;
  EXPECT_TRUE(report.died());
  // Nobody noted it, but the command line is another one.
  flight = flight_with(0.2);
  system.write("proc/77/cmdline", std::string("/bin/sleep\0"
                                              "9\0",
                                              13));
  EXPECT_TRUE(gather_evidence(flight, false, system.paths()).replaced);
  system.write("proc/77/cmdline", std::string("/usr/bin/python3\0-m\0ipykernel\0", 30));
  EXPECT_FALSE(gather_evidence(flight, false, system.paths()).replaced);
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

constexpr const char* kStack =
    "Thread 0x00007f01 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
    "Thread 0x00007f02 (most recent call first):\n"
    "  File \"/home/me/work/loader.py\", line 8 in load\n"
    "Thread 0x00007f03 (most recent call first):\n"
    "  File \"/v/lib/python3.11/site-packages/ipykernel/heartbeat.py\", line 106 in run\n"
    "\n"
    "Current thread 0x00007f04 (most recent call first):\n"
    "  File \"/v/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n"
    "  File \"/tmp/ipykernel_77/111.py\", line 2 in peek\n"
    "  File \"/tmp/ipykernel_77/222.py\", line 3 in <module>\n"
    "  File \"/v/lib/python3.11/site-packages/IPython/core/interactiveshell.py\", line 3748 in run_code\n"
    "  File \"/v/lib/python3.11/site-packages/ipykernel_launcher.py\", line 18 in <module>\n";

TEST(Postmortem, TheGuiltyLineComesFirstAndIdleThreadsLast) {
  Flight flight = flight_with(0.2);
  add_crash(flight, SIGSEGV);
  flight.crash->frame_count = 40;
  flight.crash_modules.assign(40, "/usr/bin/python3.11");
  flight.crash_modules[0] = "/opt/site/_core.so";
  flight.python_stack = kStack;
  flight.cell_source = "a = 1\n\n  peek(a)\n";
  const Postmortem report = judge(flight, quiet());
  EXPECT_EQ(report.guilty.file, "/tmp/ipykernel_77/111.py");
  EXPECT_EQ(report.guilty.line, 2);
  const std::string text = report.to_text();
  EXPECT_NE(text.find("/tmp/ipykernel_77/111.py:2, in peek, called from line 3 of the cell: peek(a)"),
            std::string::npos)
      << text;
  const size_t line = text.find("  line ");
  const size_t current = text.find("Current thread");
  const size_t own = text.find("loader.py");
  const size_t quiet_ones = text.find("2 other threads run no code of yours");
  const size_t native = text.find("native frames");
  EXPECT_TRUE(line < current && current < own && own < quiet_ones && quiet_ones < native) << text;
  EXPECT_EQ(text.find("heartbeat.py"), std::string::npos) << text;
  EXPECT_NE(text.find("... 39 frames of the interpreter (python3.11)"), std::string::npos) << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40);
}

TEST(Postmortem, ALibraryThatWasRefusedMemoryIsNotBlamedForItsVersion) {
  Flight flight = flight_with(0.2);
  add_crash(flight, SIGSEGV);
  EXPECT_NE(judge(flight, quiet()).advice.find("memory that is not its own"), std::string::npos);
  EXPECT_EQ(judge(flight, quiet()).advice.find("refused"), std::string::npos);
  flight.crash_message = std::string(kLimitWords) + "RLIMIT_DATA 1500000000";
  EXPECT_NE(judge(flight, quiet()).advice.find("refused memory"), std::string::npos);
  flight.crash_message.clear();
  add_event(flight, flight::EventKind::kAlarm, 3, "near the limit", 1008);
  flight.events.front().kind = flight::EventKind::kAlarm;
  const std::string advice = judge(flight, quiet()).advice;
  EXPECT_NE(advice.find("do not check whether they got the memory"), std::string::npos) << advice;
  EXPECT_EQ(advice.find("version"), std::string::npos) << advice;
}

TEST(Postmortem, AFewLinesForThePlaceWhereItDied) {
  Flight flight = flight_with(0.1);
  for (int i = 0; i < 10; ++i) {
    flight.samples[static_cast<size_t>(i)].resident = i < 6 ? 100'000'000 : 200'000'000 * (i - 4);
    flight.samples[static_cast<size_t>(i)].used = flight.samples[static_cast<size_t>(i)].resident;
  }
  add_event(flight, flight::EventKind::kCellBegin, 3, "grow()");
  Evidence evidence = quiet();
  evidence.group_oom_kills = 1;
  const Postmortem report = judge(flight, evidence);
  const std::string text = report.to_brief("https://host/page");
  EXPECT_NE(text.find("leadline: the kernel was killed by the OOM killer in this cell (very likely).\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("it had 953.7 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("it grew from 95.4 MiB to 953.7 MiB in the last 5.0 s, since "), std::string::npos) << text;
  EXPECT_NE(text.find("  advice  "), std::string::npos) << text;
  EXPECT_NE(text.find("  more    https://host/page\n"), std::string::npos) << text;
  EXPECT_NE(text.find("%load_ext leadline"), std::string::npos) << "there is no recording";
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

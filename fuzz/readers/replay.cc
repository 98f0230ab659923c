// SPDX-License-Identifier: Apache-2.0
// Feeds seeds and deterministic mutants of them to the readers, without libFuzzer.
//   fuzz_readers                         the names of all readers
//   fuzz_readers NAME [MUTANTS [SEED]]   its seeds and this many mutants, in a child that may die; NAME "all" for all
//   fuzz_readers NAME --show N [SEED]    input N of such a run, on standard output
//   fuzz_readers NAME FILE...            these files, in this process
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <new>
#include <thread>

#include "readers/mutator.h"

// An allocation that a file asks for without having the bytes for it is a finding. The same limits as libFuzzer's.
extern "C" const char* __asan_default_options();  // NOLINT: the sanitizer's name
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=256:hard_rss_limit_mb=1024"; }

namespace leadline::fuzz {
namespace {

constexpr double kSlowSeconds = 5.0;  // of CPU time for one input
constexpr int kHangSeconds = 120;     // of any time: the machine may be busy

/// What the child reports about itself; it may die at any moment.
struct Progress {
  std::atomic<uint64_t> input = 0;
  std::atomic<double> slowest = 0.0;
  std::atomic<uint64_t> slowest_input = 0;
  std::atomic<uint64_t> accepted = 0;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Inputs of a run by their number: the seeds, then the mutants.
class Inputs {
 public:
  Inputs(const Reader& reader, uint64_t seed) : seeds_(reader.seeds()), mutator_(reader, seeds_, seed) {}
  size_t seeds() const { return seeds_.size(); }
  std::string next() {
    const size_t number = given_++;
    return number < seeds_.size() ? seeds_[number] : mutator_.next();
  }

 private:
  std::vector<std::string> seeds_;
  Mutator mutator_;
  size_t given_ = 0;
};

void run_all(const Reader& reader, uint64_t mutants, uint64_t seed, Progress& progress) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  Inputs inputs(reader, seed);
  const uint64_t count = inputs.seeds() + mutants;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string input = inputs.next();
    progress.input = i;
    const double begin = cpu_seconds();
    if (run_one(reader, as_bytes(input)).empty()) ++progress.accepted;
    const double taken = cpu_seconds() - begin;
    if (taken > progress.slowest) {
      progress.slowest = taken;
      progress.slowest_input = i;
    }
  }
  progress.input = count;
}

/// The child's status; kills it when it is stuck at one input.
int wait_for(pid_t child, const Progress& progress) {
  uint64_t last = UINT64_MAX;
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    const auto now = std::chrono::steady_clock::now();
    if (const uint64_t input = progress.input; input != last) {
      last = input;
      since = now;
    } else if (now - since > std::chrono::seconds(kHangSeconds)) {
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int replay(const Reader& reader, uint64_t mutants, uint64_t seed) {
  void* const shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  auto* const progress = new (shared) Progress;
  const pid_t child = fork();
  if (child == 0) {
    run_all(reader, mutants, seed, *progress);
    std::exit(0);  // leaks are looked for
  }
  const int status = wait_for(child, *progress);
  const uint64_t input = progress->input;
  const bool slow = progress->slowest > kSlowSeconds;
  fmt::print("{}: {} inputs, {} of them accepted; the slowest took {:.2f} s\n", reader.name, input,
             progress->accepted.load(), progress->slowest.load());
  std::fflush(stdout);
  if (status == 0 && !slow) return 0;
  const uint64_t guilty = status == 0 ? progress->slowest_input.load() : input;
  fmt::print("finding: input {} {}; to have it: fuzz_readers {} --show {} {} > input\n", guilty,
             status == 0 ? "is slow" : fmt::format("ended the process (status {:#x})", status), reader.name, guilty,
             seed);
  return 1;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    for (const Reader& reader : readers()) fmt::print("{}\n", reader.name);
    return 0;
  }
  const auto number = [&](size_t i, uint64_t fallback) {
    return i < arguments.size() ? std::strtoull(arguments[i].c_str(), nullptr, 10) : fallback;
  };
  if (arguments[0] == "all") {
    int status = 0;
    for (const Reader& reader : readers()) status |= replay(reader, number(1, 1000), number(2, 1));
    return status;
  }
  const Reader* const reader = find_reader(arguments[0]);
  if (reader == nullptr) {
    fmt::print(stderr, "there is no reader '{}'\n", arguments[0]);
    return 2;
  }
  if (arguments.size() > 1 && arguments[1] == "--show") {
    Inputs inputs(*reader, number(3, 1));
    for (uint64_t i = number(2, 0); i > 0; --i) inputs.next();
    std::cout << inputs.next();
    return 0;
  }
  const auto is_number = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (arguments.size() > 1 && !is_number(arguments[1])) {
    for (size_t i = 1; i < arguments.size(); ++i) {
      const std::string problem = run_one(*reader, as_bytes(contents(arguments[i])));
      fmt::print("{}: {}\n", arguments[i], problem.empty() ? "accepted" : problem);
    }
    return 0;
  }
  return replay(*reader, number(1, 1000), number(2, 1));
}

}  // namespace
}  // namespace leadline::fuzz

int main(int argc, char** argv) {
  setenv("TMPDIR", "/dev/shm", 0);  // readers of folders write many small files
  try {
    return leadline::fuzz::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}

// SPDX-License-Identifier: Apache-2.0
// leadline_fuzz: takes models apart through the schema, changes what they mean, and uses them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "bases.h"
#include "campaign.h"
#include "child.h"
#include "exercise.h"
#include "heap.h"
#include "mutant.h"

// Read by the sanitizers at start.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=0:max_allocation_size_mb=2048:detect_stack_use_after_return=1:handle_abort=1:"
         "malloc_context_size=16";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }

namespace {

using namespace leadline::fuzz;

/// One mutant in this process, for a debugger.
int run_one(const Bases& bases, const CampaignOptions& options, uint64_t number, const std::string& keep) {
  const Mutant mutant = make_mutant(bases, options.seed, number);
  fmt::print("base '{}':", mutant.base);
  for (const std::string& name : mutant.mutations) fmt::print(" {}", name);
  fmt::print("\n{}", print_text(mutant.root).substr(0, 20000));
  std::fflush(stdout);
  const std::vector<std::byte> file = write_file(mutant.root);
  if (!keep.empty()) {
    std::ofstream(keep, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  }
  Stage stage{};
  const Verdict verdict = exercise(file, mutant.exercise_seed, options.exercise, stage);
  fmt::print("refused at: {}; {}\n", stage_name(verdict.refused), verdict.problem);
  return verdict.problem.empty() ? 0 : 1;
}

/// Files as they are, each with some seeds; in this process when there is one seed to look at.
int run_files(const std::vector<std::string>& files, uint64_t rounds, bool here, const CampaignOptions& options) {
  int bad = 0;
  for (const std::string& path : files) {
    const TablePtr root = read_tree(path);
    if (here) {
      const std::vector<std::byte> file = write_file(root);
      Stage stage{};
      const Verdict verdict = exercise(file, options.seed, options.exercise, stage);
      fmt::print("{}: refused at: {}; {}\n", path, stage_name(verdict.refused), verdict.problem);
      bad += verdict.problem.empty() ? 0 : 1;
      continue;
    }
    Child child(6 * options.exercise.slow_seconds, options.findings + ".log");
    child.start([&](Report& report) {
      for (uint64_t i = 0; i < rounds; ++i) {
        report.number = i;
        const std::vector<std::byte> file = write_file(root);
        const Verdict verdict = exercise(file, i, options.exercise, report.stage);
        report.done = report.done + 1;
        if (verdict.problem.empty()) continue;
        fmt::print("round {}: {}\n", i, verdict.problem);
        report.findings = 1;
      }
      if (leaks()) report.findings = 1;
    });
    child.wait();
    if (child.problem().empty() && child.report().findings == 0) continue;
    ++bad;
    fmt::print("{}: {}\n{}\n", path, child.problem(), child.log());
  }
  fmt::print("{} files, {} bad\n", files.size(), bad);
  return bad == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Mutants of models, made through the schema: every one must end in success or in a leadline::Error");
  CampaignOptions options;
  std::vector<std::string> base_files;
  std::vector<std::string> files;
  std::string keep;
  uint64_t only = UINT64_MAX;
  uint64_t rounds = 64;
  bool here = false;
  app.add_option("--bases", base_files, "models to take apart: files of write_bases.py, .tflite, .txt");
  app.add_option("--seed", options.seed, "another seed, other mutants");
  app.add_option("--first", options.first, "number of the first mutant");
  app.add_option("--count", options.count, "how many");
  app.add_option("--jobs", options.jobs, "processes at a time")->check(CLI::Range(1, 64));
  app.add_option("--findings", options.findings, "folder for what goes wrong");
  app.add_option("--per-fault", options.per_fault, "how many findings of a kind are kept");
  app.add_option("--minimize", options.minimize_tries, "tries to make a finding smaller");
  app.add_option("--slow", options.exercise.slow_seconds, "seconds of CPU time that a stage may take");
  app.add_option("--only", only, "run this mutant alone, in this process, and report what happens");
  app.add_option("--keep", keep, "with --only: write the mutant to this file");
  app.add_option("--run", files, "use these files (.tflite or .txt) as they are instead of mutants");
  app.add_option("--rounds", rounds, "with --run: in this many ways");
  app.add_flag("!--no-guard", options.exercise.guard, "an ordinary heap: faster, and blind for wrong accesses");
  app.add_option("--plant", options.exercise.plant, "one mutant in this many fails on purpose: a test of the fuzzer");
  app.add_flag("--here", here, "with --run: in this process, in the way that --seed says");
  CLI11_PARSE(app, argc, argv);
  try {
    watch_heap();
    options.exercise.verbose = here || only != UINT64_MAX;
    if (!files.empty()) return run_files(files, rounds, here, options);
    Bases bases;
    for (const std::string& path : base_files) bases.add(path);
    if (only != UINT64_MAX) return run_one(bases, options, only, keep);
    fmt::print("{} base models in {} groups ({:016x}), seed {}, mutants {} to {}, {}\n", bases.size(), bases.groups(),
               bases.fingerprint(), options.seed, options.first, options.first + options.count - 1,
               sanitized() ? "with sanitizers" : "without sanitizers");
    return run_campaign(bases, options) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "leadline_fuzz: {}\n", error.what());
    return 2;
  }
}

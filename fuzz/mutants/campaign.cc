// SPDX-License-Identifier: Apache-2.0
#include "campaign.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "child.h"
#include "heap.h"
#include "minimize.h"
#include "mutant.h"

namespace leadline::fuzz {
namespace {

constexpr uint64_t kBatch = 250;

struct Finding {
  uint64_t number = 0;
  std::string problem;
  std::string log;
};

class Campaign {
 public:
  Campaign(const Bases& bases, const CampaignOptions& options) : bases_(bases), options_(options) {
    next_ = options.first;
    end_ = options.first + options.count;
  }

  int run() {
    std::filesystem::create_directories(options_.findings);
    started_ = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < options_.jobs; ++i) workers.push_back(std::make_unique<Worker>(*this, i));
    for (bool busy = true; busy;) {
      busy = false;
      for (auto& worker : workers) busy = worker->step() || busy;
      usleep(2000);
      show_progress(false);
    }
    show_progress(true);
    keep_findings();
    return static_cast<int>(findings_.size());
  }

 private:
  /// A child at a time, and the stretch of numbers it has to do.
  class Worker {
   public:
    Worker(Campaign& campaign, int index)
        : campaign_(campaign),
          child_(6 * campaign.options_.exercise.slow_seconds,
                 fmt::format("{}/log.{}", campaign.options_.findings, index)) {}

    bool step() {
      if (child_.running()) {
        if (child_.poll()) finish();
        return true;
      }
      if (at_ >= end_ && !campaign_.take_batch(at_, end_)) return false;
      child_.start([this](Report& report) { campaign_.work(at_, end_, report); });
      return true;
    }

   private:
    void finish() {
      const Report& report = child_.report();
      campaign_.add(report);
      if (child_.problem().empty()) {
        at_ = end_;
        return;
      }
      campaign_.note(report.number, child_.problem(), child_.log());
      at_ = std::max(at_, uint64_t{report.number}) + 1;
    }

    Campaign& campaign_;
    Child child_;
    uint64_t at_ = 0;
    uint64_t end_ = 0;
  };

  bool take_batch(uint64_t& at, uint64_t& end) {
    at = next_;
    end = next_ = std::min(next_ + kBatch, end_);
    return at < end;
  }

  /// In the child.
  void work(uint64_t at, uint64_t end, Report& report) const {
    for (uint64_t number = at; number < end; ++number) {
      report.stage = Stage::kMutate;
      report.number = number;
      const Mutant mutant = make_mutant(bases_, options_.seed, number);
      const std::vector<std::byte> file = write_file(mutant.root);
      const Verdict verdict = exercise(file, mutant.exercise_seed, options_.exercise, report.stage);
      ++report.refused[static_cast<int>(verdict.refused)];
      report.compared += verdict.compared ? 1 : 0;
      report.quantized += verdict.quantized ? 1 : 0;
      report.debugged += verdict.debugged ? 1 : 0;
      report.done = report.done + 1;
      if (verdict.problem.empty() || report.findings == Report::kMostFindings) continue;
      Report::Finding& finding = report.finding[report.findings++];
      finding.number = number;
      finding.stage = verdict.stage;
      verdict.problem.copy(finding.problem, sizeof(finding.problem) - 1);
    }
    report.stage = Stage::kRelease;
    if (leaks()) find_leak(at, end, report);
  }

  /// Whose leak it was: each mutant alone.
  void find_leak(uint64_t at, uint64_t end, Report& report) const {
    for (uint64_t number = at; number < end; ++number) {
      report.number = number;
      report.done = 0;
      const Mutant mutant = make_mutant(bases_, options_.seed, number);
      const std::string problem = exercise_apart(mutant.root, mutant.exercise_seed, options_.exercise,
                                                 fmt::format("{}/log.leak.{}", options_.findings, getpid()));
      if (problem.find("Leak") != std::string::npos) _exit(1);
    }
  }

  void add(const Report& report) {
    done_ += report.done;
    for (int i = 0; i < kStageCount; ++i) refused_[i] += report.refused[i];
    compared_ += report.compared;
    quantized_ += report.quantized;
    debugged_ += report.debugged;
    for (int i = 0; i < report.findings; ++i) note(report.finding[i].number, report.finding[i].problem, "");
  }

  void note(uint64_t number, const std::string& problem, const std::string& log) {
    ++problems_;
    auto& list = findings_[fault_of(problem)];
    fmt::print("FINDING {}: {}\n", number, problem);
    if (list.size() < static_cast<size_t>(options_.per_fault)) list.push_back({number, problem, log});
  }

  void show_progress(bool last) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    if (!last && seconds < shown_ + 20.0) return;
    shown_ = seconds;
    fmt::print("{} mutants in {:.0f} s ({:.0f}/s):", done_, seconds,
               static_cast<double>(done_) / std::max(seconds, 1e-3));
    for (int i = 0; i < kStageCount; ++i) {
      if (refused_[i] == 0) continue;
      const auto stage = static_cast<Stage>(i);
      fmt::print(" {} {},", stage == Stage::kDone ? "ran" : std::string("refused at ") + stage_name(stage),
                 refused_[i]);
    }
    fmt::print(" compared {}, quantized {}, debugged {}; {} findings of {} kinds\n", compared_, quantized_, debugged_,
               problems_, findings_.size());
    std::fflush(stdout);
  }

  void keep_findings() {
    for (const auto& [fault, list] : findings_) {
      for (const Finding& finding : list) keep(finding);
    }
    for (int i = 0; i < options_.jobs; ++i) std::filesystem::remove(fmt::format("{}/log.{}", options_.findings, i));
  }

  void keep(const Finding& finding) {
    const std::string log = options_.findings + "/log.minimize";
    const std::string fault = fault_of(finding.problem);
    unsigned kept = (1U << kMostMutations) - 1;
    Mutant mutant = make_mutant(bases_, options_.seed, finding.number);
    // What is slow to fail would take hours.
    const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto fails = [&](const TablePtr& root) {
      if (std::chrono::steady_clock::now() > enough) return false;
      return fault_of(exercise_apart(root, mutant.exercise_seed, options_.exercise, log)) == fault;
    };
    std::string note;
    TablePtr smallest = mutant.root;
    if (options_.minimize_tries <= 0) {
      note = "not minimized";
    } else if (!fails(mutant.root)) {
      note = "does not happen again when run alone";
    } else {
      for (unsigned k = 0; k < static_cast<unsigned>(kMostMutations); ++k) {
        const Mutant fewer = make_mutant(bases_, options_.seed, finding.number, kept & ~(1U << k));
        if (fewer.mutations.size() >= mutant.mutations.size() || !fails(fewer.root)) continue;
        kept &= ~(1U << k);
        mutant = fewer;
      }
      smallest = minimize(mutant.root, fails, options_.minimize_tries);
      note = "minimized";
    }
    std::string mutations;
    for (const std::string& name : mutant.mutations) mutations += " " + name;
    const std::string path = fmt::format("{}/{}_{}", options_.findings, options_.seed, finding.number);
    std::ofstream(path + ".txt") << fmt::format("# {}\n# seed {} number {}, base '{}', mutations:{}, exercise {}; {}\n",
                                                finding.problem, options_.seed, finding.number, mutant.base, mutations,
                                                mutant.exercise_seed, note)
                                 << print_text(smallest);
    const std::vector<std::byte> file = write_file(smallest);
    std::ofstream(path + ".tflite", std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    if (!finding.log.empty()) std::ofstream(path + ".log") << finding.log;
    fmt::print("kept {}.txt: {} ({})\n", path, finding.problem, note);
    std::fflush(stdout);
    std::filesystem::remove(log);
  }

  const Bases& bases_;
  const CampaignOptions& options_;
  uint64_t next_ = 0;
  uint64_t end_ = 0;
  std::chrono::steady_clock::time_point started_;
  double shown_ = 0.0;
  uint64_t done_ = 0;
  uint64_t refused_[kStageCount] = {};
  uint64_t compared_ = 0;
  uint64_t quantized_ = 0;
  uint64_t debugged_ = 0;
  uint64_t problems_ = 0;
  std::map<std::string, std::vector<Finding>> findings_;
};

}  // namespace

int run_campaign(const Bases& bases, const CampaignOptions& options) { return Campaign(bases, options).run(); }

}  // namespace leadline::fuzz

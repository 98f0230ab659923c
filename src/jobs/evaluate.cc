// SPDX-License-Identifier: Apache-2.0
// Evaluators on several threads. Samples are read by one of them at a time, run side by side, and their scores are
// added in the order of the samples.
#include "leadline/evaluate.h"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/boundary.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "core/thread_pool.h"
#include "jobs/evaluator_memory.h"
#include "jobs/job_budget.h"
#include "jobs/sample_shapes.h"

namespace leadline {
namespace {

constexpr auto kBetweenQuestions = std::chrono::milliseconds(20);
// A thread may be this many samples ahead of the slowest one.
constexpr int64_t kMaxAhead = 256;
constexpr int64_t kMostConfusionClasses = 65'536;  // a table of 32 GiB

/// One run of a job: what its threads share.
class EvaluateRun {
 public:
  EvaluateRun(SampleReader& reader, const EvaluateOptions& options, jobs::JobBudget& budget,
              const JobObserver& observer)
      : reader_(reader), budget_(budget), observer_(observer), sum_(options) {}

  /// Works until there are no more samples or another thread failed. The calling thread's (`main`) obeys its limits and
  /// reports how far the work is.
  void work(Evaluator& evaluator, bool main) noexcept {
    try {
      int64_t index = 0;
      while (take_sample(evaluator, main, index)) {
        const auto check = [&] {
          if (stopped_) throw Error(ErrorCode::kCancelled, "stopped before it was finished");
        };
        add(index, scored(evaluator, index, check));
        if (main) report();
      }
      if (main) wait_for_others();
    } catch (...) {
      fail_with(std::current_exception());
    }
  }

  void thread_ended() {
    const std::lock_guard lock(mutex_);
    --helpers_;
    changed_.notify_all();
  }
  void thread_started() {
    const std::lock_guard lock(mutex_);
    ++helpers_;
  }

  EvaluateResult result() {
    if (failure_) std::rethrow_exception(failure_);
    return sum_.result();
  }
  void stop() { stopped_ = true; }

 private:
  /// Puts the next sample into the evaluator. False: there are no more, or the work was stopped.
  bool take_sample(Evaluator& evaluator, bool main, int64_t& index) {
    std::unique_lock lock(mutex_);
    while (!stopped_ && (reading_ || taken_ - sum_.samples() >= kMaxAhead)) {
      changed_.wait_for(lock, kBetweenQuestions);
      if (main) check_cancelled();
    }
    if (stopped_ || finished_) return false;
    reading_ = true;
    lock.unlock();
    const Sample* sample = nullptr;
    std::exception_ptr problem;
    try {
      sample = reader_.next();
      if (sample != nullptr) evaluator.set_sample(*sample);
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    reading_ = false;
    changed_.notify_all();
    if (problem) std::rethrow_exception(problem);
    budget_.count_models();
    if (sample == nullptr) {
      finished_ = true;
      return false;
    }
    index = taken_++;
    return true;
  }

  SampleScore scored(Evaluator& evaluator, int64_t index, const RunCheck& check) {
    try {
      return evaluator.run(index, check);
    } catch (const BudgetError& error) {
      throw BudgetError(fmt::format("sample {}: {}", index, error.what()), error.needed(), error.limit());
    } catch (const Error& error) {
      if (stopped_ || is_about_memory(error) || error.code() == ErrorCode::kTimeout) throw;
      throw Error(error.code(), fmt::format("sample {}: {}", index, error.what()));
    }
  }

  void add(int64_t index, SampleScore score) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(index, std::move(score));
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == sum_.samples();) {
      sum_.add(next->second);
      next = waiting_.erase(next);
    }
    budget_.count_models();
    changed_.notify_all();
  }

  void report() {
    if (!observer_) return;
    int64_t done = 0;
    {
      const std::lock_guard lock(mutex_);
      done = sum_.samples();
    }
    if (done == reported_) return;
    reported_ = done;
    if (!observer_({"evaluate", "samples", done, reader_.size().value_or(-1)})) {
      throw Error(ErrorCode::kCancelled, "stopped before it was finished");
    }
  }

  void wait_for_others() {
    std::unique_lock lock(mutex_);
    while (helpers_ > 0 && !stopped_) {
      changed_.wait_for(lock, kBetweenQuestions);
      lock.unlock();
      check_cancelled();
      report();
      lock.lock();
    }
    lock.unlock();
    if (!stopped_) report();
  }

  /// The first failure is the one that is passed on; the others follow from it.
  void fail_with(std::exception_ptr problem) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(problem);
    stopped_ = true;
    changed_.notify_all();
  }

  SampleReader& reader_;
  jobs::JobBudget& budget_;
  const JobObserver& observer_;
  ScoreSum sum_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<int64_t, SampleScore> waiting_;  // for those before them
  int64_t taken_ = 0;
  int64_t reported_ = 0;
  int helpers_ = 0;
  bool reading_ = false;
  bool finished_ = false;
  std::exception_ptr failure_;
  std::atomic<bool> stopped_ = false;
};

/// Threads that end with the scope they are in.
class Helpers {
 public:
  explicit Helpers(EvaluateRun& run) : run_(run) {}
  ~Helpers() {
    for (std::thread& thread : threads_) thread.join();
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  void start(Evaluator& evaluator) {
    run_.thread_started();
    threads_.emplace_back([this, &evaluator] {
      run_.work(evaluator, false);
      run_.thread_ended();
    });
  }

 private:
  EvaluateRun& run_;
  std::vector<std::thread> threads_;
};

}  // namespace

struct EvaluateJob::State {
  State(const Model& given, EvaluateOptions chosen) : model(given), options(std::move(chosen)) {
    require(options.num_threads == -1 || options.num_threads >= 1, kBadArgument,
            "num_threads is {}, expected 1 or more, or -1 for all CPUs", options.num_threads);
    if (options.num_threads == -1) options.num_threads = usable_cpus();
    require(options.max_confusion_classes >= 0 && options.max_confusion_classes <= kMostConfusionClasses, kBadArgument,
            "max_confusion_classes is {}, expected 0 (no table) to {}", options.max_confusion_classes,
            kMostConfusionClasses);
    const Evaluator checked(model, options);
  }

  /// What results take: the value of each sample where they are kept, and the table of answers.
  int64_t result_bytes(const SampleSource* samples) const {
    const SubgraphInfo graph = model.subgraph(0);
    const int judged = graph.outputs[static_cast<size_t>(options.output)];
    const int64_t classes = graph.tensors[static_cast<size_t>(judged)].shape.elements();
    int64_t bytes =
        classes <= options.max_confusion_classes ? 16 * classes * classes : 0;  // it is copied when it grows
    if (options.per_sample && samples != nullptr) bytes += 8 * samples->size().value_or(0);
    return bytes;
  }

  JobPlan plan(const SampleSource* samples) const {
    const jobs::EvaluatorMemory memory = jobs::evaluator_memory(model, options, jobs::shapes_from(model, samples));
    jobs::PhaseMemory loaded = jobs::PhaseMemory::of(model);
    if (options.reference) loaded = loaded + jobs::PhaseMemory::of(*options.reference);
    jobs::PhaseMemory all = memory.shared;
    for (int i = 0; i < options.num_threads; ++i) all = all + memory.own;
    all.add(MemoryCategory::kInputsOutputs, samples != nullptr ? samples->peak_bytes() : 0);
    all.add(MemoryCategory::kStatistics, result_bytes(samples));
    const ByteUnits units = jobs::units_of(options.budget, model);
    return jobs::make_plan(
        "evaluate",
        {loaded.phase("load", options.reference ? "the files and their graphs" : "the file and its graph"),
         all.phase("evaluate",
                   fmt::format("{} at a time, {} each", options.num_threads, format_bytes(memory.own.total(), units)))},
        0, memory.complete, units);
  }

  jobs::JobBudget make_budget() const {
    std::vector<Model> models = {model};
    if (options.reference) models.push_back(*options.reference);
    return jobs::JobBudget(options.budget, models);
  }

  EvaluateResult run(SampleSource& samples, const JobObserver& observer) {
    const auto start = std::chrono::steady_clock::now();
    jobs::JobBudget budget = make_budget();
    budget.admit(plan(&samples));
    budget.count_shared(samples.peak_bytes(), MemoryCategory::kInputsOutputs);
    budget.count_shared(result_bytes(&samples), MemoryCategory::kStatistics);
    SampleReader reader(model, samples, {.limit = options.max_samples});
    EvaluateOptions charged = options;
    charged.budget = budget.own();
    std::mutex function_mutex;
    if (options.function) {
      charged.function = [&](const EvaluatedSample& sample) {
        const std::lock_guard lock(function_mutex);
        return options.function(sample);
      };
    }
    std::vector<Evaluator> evaluators;
    for (int i = 0; i < options.num_threads; ++i) evaluators.emplace_back(model, charged);
    EvaluateRun run(reader, charged, budget, observer);
    {
      Helpers helpers(run);
      try {
        for (size_t i = 1; i < evaluators.size(); ++i) helpers.start(evaluators[i]);
      } catch (...) {
        run.stop();
        throw;
      }
      run.work(evaluators[0], true);
    }
    EvaluateResult result = run.result();
    for (const SampleFinding& finding : reader.findings()) {
      if (finding.severity == SampleFinding::Severity::kWarning) result.findings.push_back(finding);
    }
    result.counted_peak_bytes = budget.peak();
    result.units = jobs::units_of(options.budget, model);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

  Model model;
  EvaluateOptions options;
};

EvaluateJob::EvaluateJob(const Model& model, EvaluateOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
EvaluateJob::~EvaluateJob() = default;
EvaluateJob::EvaluateJob(EvaluateJob&&) noexcept = default;
EvaluateJob& EvaluateJob::operator=(EvaluateJob&&) noexcept = default;

JobPlan EvaluateJob::plan(const SampleSource* samples) const try { return state_->plan(samples); } catch (...) {
  rethrow_as_error();
}

void EvaluateJob::admit(const SampleSource* samples) const try {
  state_->make_budget().admit(state_->plan(samples));
} catch (...) {
  rethrow_as_error();
}

EvaluateResult EvaluateJob::run(SampleSource& samples, const JobObserver& observer) try {
  return state_->run(samples, observer);
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline

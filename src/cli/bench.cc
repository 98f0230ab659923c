// SPDX-License-Identifier: Apache-2.0
// `leadline bench`: times a model, alone or in turns with other engines, each of which has a process of its own.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cli/bench_peer.h"
#include "cli/command.h"
#include "cli/opened_model.h"
#include "cli/printing.h"
#include "cli/profile.h"
#include "cli/tensor_io.h"
#include "io/npy.h"
#include "leadline/error.h"
#include "leadline/version.h"

namespace leadline::cli {
namespace {

constexpr const char* kBenchExamples =
    "  leadline bench model.tflite --threads 1 --profile\n"
    "  leadline bench model.tflite --against litert,openvino\n"
    "  leadline bench model.tflite --against litert --python .venv-bench/bin/python --json";

/// Most memory this process had resident, 0 where the system does not say.
int64_t peak_resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

/// A folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "leadline-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error(ErrorCode::kIo, "cannot create a temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// One engine's results. What it does not know stays 0.
struct Figures {
  std::string engine;
  std::string version;
  std::string error;
  double first_ms = 0;
  int64_t peak_bytes = 0;
  std::vector<double> ms;
  double difference = std::numeric_limits<double>::quiet_NaN();  // of outputs from Leadline's, as summarized below

  /// The time that a share of the runs did not exceed.
  double quantile(double share) const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
};

template <typename T>
double largest_difference(const std::byte* ours, const std::byte* theirs, int64_t count, bool of_range) {
  const auto* a = reinterpret_cast<const T*>(ours);
  const auto* b = reinterpret_cast<const T*>(theirs);
  double apart = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (int64_t i = 0; i < count; ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    low = std::min(low, static_cast<double>(a[i]));
    high = std::max(high, static_cast<double>(a[i]));
  }
  return of_range ? apart / std::max(high - low, 1e-30) : apart;
}

/// Largest difference of an array from an output: a share of the range of floats, steps of integers; NaN: not
/// comparable.
double compare_output(const TensorMemory& ours, ArrayReader& theirs) {
  if (theirs.header().bytes != ours.bytes || ours.bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  std::vector<std::byte> data(static_cast<size_t>(ours.bytes));
  theirs.read(data);
  const int64_t count = ours.shape.elements();
  switch (ours.dtype) {
    case DType::kFloat32:
      return largest_difference<float>(ours.data, data.data(), count, true);
    case DType::kInt8:
      return largest_difference<int8_t>(ours.data, data.data(), count, false);
    case DType::kUInt8:
      return largest_difference<uint8_t>(ours.data, data.data(), count, false);
    case DType::kInt16:
      return largest_difference<int16_t>(ours.data, data.data(), count, false);
    case DType::kInt32:
      return largest_difference<int32_t>(ours.data, data.data(), count, false);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

class Bench final : public Command {
 public:
  explicit Bench(CLI::App& program)
      : Command(program, "bench", "Time a model on random data, also beside LiteRT and OpenVINO", kBenchExamples) {
    options_.add_to(*this);
    add_timeout();
    add_option("--rounds", rounds_, "Turns per engine").range(1, 10'000).show_default().placeholder("N");
    add_option("--round-ms", round_ms_, "Approximate length of the slowest engine's turn")
        .range(1, 600'000)
        .show_default()
        .placeholder("MS");
    add_option("--seed", seed_, "Seed of the random numbers").show_default().placeholder("N");
    add_option("--against", against_, "Also measure these engines, in turns: litert, openvino")
        .separated_by(',')
        .one_of({"litert", "openvino"})
        .placeholder("LIST");
    add_option("--python", python_, "The Python that has those engines (default: LEADLINE_BENCH_PYTHON, python3)")
        .placeholder("FILE");
    add_flag("--profile", profile_, "Also print time per op and per node, with GMAC/s and shapes");
  }

  void run() override {
    const Clock::time_point start = Clock::now();
    OpenedModel opened(options_, options_.budget());
    Interpreter& interpreter = opened.interpreter();
    opened.plan();  // complains about shapes in the user's terms
    interpreter.allocate();
    std::mt19937_64 random(seed_);
    for (const NamedTensor& input : opened.inputs()) {
      if (!interpreter.tensor_info(input.index).constant) fill_random(interpreter, input.index, random);
    }
    interpreter.invoke();
    figures_.push_back({"leadline", kVersion, {}, milliseconds_since(start), 0, {}});
    measure(opened);
    std::vector<NodeProfile> profile;
    if (profile_) profile = take_profile(interpreter);
    if (json()) {
      print_json(document(opened, profile));
    } else {
      print_text(opened, profile);
    }
  }

 private:
  void measure(OpenedModel& opened);
  void take_rounds(Interpreter& interpreter, std::vector<std::unique_ptr<Peer>>& peers);
  std::vector<NodeProfile> take_profile(Interpreter& interpreter);
  static double difference(OpenedModel& opened, Peer& peer, const std::string& path);
  Json document(OpenedModel& opened, const std::vector<NodeProfile>& profile) const;
  void print_text(OpenedModel& opened, const std::vector<NodeProfile>& profile) const;

  ModelOptions options_;
  int rounds_ = 7;
  int round_ms_ = 150;
  uint64_t seed_ = 0;
  std::vector<std::string> against_;
  std::string python_;
  bool profile_ = false;
  std::vector<Figures> figures_;  // Leadline's, then the peers' in the order of --against
  size_t profile_runs_ = 0;
};

/// The milliseconds of `count` runs.
std::vector<double> timed_runs(Interpreter& interpreter, int count) {
  std::vector<double> ms;
  for (int i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    interpreter.invoke();
    ms.push_back(milliseconds_since(start));
  }
  return ms;
}

void Bench::measure(OpenedModel& opened) {
  Interpreter& interpreter = opened.interpreter();
  if (against_.empty()) {
    std::vector<std::unique_ptr<Peer>> none;
    take_rounds(interpreter, none);
    return;
  }
  const TemporaryFolder folder;
  std::vector<NamedTensor> inputs = opened.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].name = fmt::format("input_{}", i);
  save_tensors(folder.file("inputs.npz"), inputs, interpreter);
  const char* python = std::getenv("LEADLINE_BENCH_PYTHON");
  if (python_.empty()) python_ = python != nullptr && *python != '\0' ? python : "python3";
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& engine : against_) {
    peers.push_back(std::make_unique<Peer>(python_, engine, std::filesystem::absolute(options_.model_path).string(),
                                           opened.plan().threads, folder.file("inputs.npz")));
    const Json& start = peers.back()->start();
    Figures figures;
    figures.engine = engine;
    if (const Json* error = start.find("error")) {
      figures.error = error->text();
    } else {
      figures.version = start.at("version").text();
      figures.first_ms = start.at("first_ms").number();
    }
    figures_.push_back(std::move(figures));
  }
  take_rounds(interpreter, peers);
  for (size_t i = 0; i < peers.size(); ++i) {
    if (!peers[i]->works()) continue;
    figures_[i + 1].peak_bytes = peers[i]->peak_bytes();
    figures_[i + 1].difference = difference(opened, *peers[i], folder.file("outputs.npz"));
  }
}

void Bench::take_rounds(Interpreter& interpreter, std::vector<std::unique_ptr<Peer>>& peers) {
  const auto run = [&](size_t engine, int count) {
    return engine == 0 ? timed_runs(interpreter, count) : peers[engine - 1]->run(count);
  };
  const auto works = [&](size_t engine) { return engine == 0 || peers[engine - 1]->works(); };
  double longest = 0.01;
  for (size_t e = 0; e < figures_.size(); ++e) {
    if (!works(e)) continue;
    const std::vector<double> ms = run(e, 2);
    longest = std::max(longest, *std::min_element(ms.begin(), ms.end()));
  }
  const int count = std::clamp(static_cast<int>(round_ms_ / longest), 2, 10'000);
  for (int round = 0; round < rounds_; ++round) {
    for (size_t e = 0; e < figures_.size(); ++e) {
      if (!works(e)) continue;
      if (figures_.size() > 1) {
        // The threads of the engine before fall asleep; the first run, on cold caches, does not count.
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        run(e, 1);
      }
      const std::vector<double> ms = run(e, count);
      figures_[e].ms.insert(figures_[e].ms.end(), ms.begin(), ms.end());
    }
  }
  figures_[0].peak_bytes = peak_resident();
}

std::vector<NodeProfile> Bench::take_profile(Interpreter& interpreter) {
  interpreter.enable_profile(true);
  profile_runs_ = std::max<size_t>(figures_[0].ms.size() / 2, 2);
  for (size_t i = 0; i < profile_runs_; ++i) interpreter.invoke();
  return interpreter.profile();
}

double Bench::difference(OpenedModel& opened, Peer& peer, const std::string& path) {
  peer.save(path);
  std::vector<NamedArray> arrays = open_arrays(path);
  double largest = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < opened.outputs().size(); ++i) {
    const std::string name = fmt::format("output_{}", i);
    const auto array = std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.name == name; });
    if (array == arrays.end()) continue;
    largest = std::fmax(largest, compare_output(opened.interpreter().tensor(opened.outputs()[i].index), *array->array));
  }
  return largest;
}

Json Bench::document(OpenedModel& opened, const std::vector<NodeProfile>& profile) const {
  Json json = {{"model", options_.model_path},
               {"threads", opened.plan().threads},
               {"rounds", rounds_},
               {"planned_peak_bytes", opened.plan().peak_bytes},
               {"engines", Json::array()}};
  for (const Figures& f : figures_) {
    Json engine = {{"engine", f.engine}, {"version", f.version}};
    if (!f.error.empty()) {
      engine["error"] = f.error;
    } else {
      engine["runs"] = f.ms.size();
      engine["fastest_ms"] = f.quantile(0);
      engine["median_ms"] = f.quantile(0.5);
      engine["p95_ms"] = f.quantile(0.95);
      engine["first_ms"] = f.first_ms;
      engine["peak_resident_bytes"] = f.peak_bytes;
      if (!std::isnan(f.difference)) engine["difference"] = f.difference;
      if (&f != figures_.data()) engine["times_as_fast"] = f.quantile(0) / figures_[0].quantile(0);
    }
    json["engines"].push_back(std::move(engine));
  }
  if (profile_) json["profile"] = profile_json(profile, &opened.model());
  return json;
}

void Bench::print_text(OpenedModel& opened, const std::vector<NodeProfile>& profile) const {
  const Plan plan = opened.plan();
  fmt::print("{}, {} thread{}, {} rounds of {} runs\n\n", printable(options_.model_path), plan.threads,
             plan.threads == 1 ? "" : "s", rounds_, figures_[0].ms.size() / static_cast<size_t>(rounds_));
  Table table("lrrrrrrr");
  const bool alone = figures_.size() == 1;
  table.add({"", "fastest", "median", "p95", "first result", "peak resident", alone ? "" : "leadline is",
             alone ? "" : "outputs differ by"});
  for (const Figures& f : figures_) {
    const std::string name = f.engine + " " + f.version;
    if (!f.error.empty()) {
      table.add({name, "does not run it: " + f.error.substr(0, 80)});
      continue;
    }
    const bool ours = &f == figures_.data();
    table.add({name, fmt::format("{:.3f} ms", f.quantile(0)), fmt::format("{:.3f} ms", f.quantile(0.5)),
               fmt::format("{:.3f} ms", f.quantile(0.95)), fmt::format("{:.1f} ms", f.first_ms),
               format_bytes(f.peak_bytes, plan.units),
               ours ? "" : fmt::format("{:.2f} times as fast", f.quantile(0) / figures_[0].quantile(0)),
               ours || std::isnan(f.difference) ? "" : fmt::format("{:.3g}", f.difference)});
  }
  fmt::print("{}", table.text());
  if (!alone) {
    fmt::print(
        "\nThe others run in {}, whose own memory is part of theirs; importing them is not part of the first "
        "result.\nOutputs: largest difference, in steps of integers or as a share of the range of floats.\n",
        python_);
  }
  if (profile_) print_profile(profile, profile_runs_, &opened.model());
}

}  // namespace

std::unique_ptr<Command> bench_command(CLI::App& program) { return std::make_unique<Bench>(program); }

}  // namespace leadline::cli

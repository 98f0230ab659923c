// SPDX-License-Identifier: Apache-2.0
// The `leadline` program: the list of its commands, and the one place where exceptions become exit codes.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/command.h"
#include "cli/progress.h"
#include "leadline/error.h"
#include "leadline/guard/devices.h"
#include "leadline/names.h"
#include "leadline/types.h"
#include "leadline/work_limit.h"

namespace {

using leadline::Error;
using leadline::ErrorCode;
using leadline::Json;
using namespace leadline::cli;

constexpr const char* kAbout =
    "Leadline loads, verifies, plans and runs .tflite models, and knows how much memory a run needs before it starts.";

constexpr const char* kFooter =
    "Examples:\n"
    "  leadline inspect model.tflite              what is in it\n"
    "  leadline plan model.tflite --html p.html   how much memory a run needs, and why\n"
    "  leadline run model.tflite --input x=x.npy --output result.npz\n"
    "  leadline ops                               which ops run\n"
    "  leadline guard --memory 2GB -- python train.py   run something else under limits\n"
    "  leadline postmortem                        why the last kernel died\n"
    "  leadline kernel install                    a Jupyter kernel that says why it died, for VS Code\n"
    "  leadline devices                           what it can run on\n"
    "  leadline doctor                            what in this Python environment kills kernels\n"
    "  leadline help run                          options of a command\n"
    "\n"
    "Exit codes:\n"
    "  0  done\n"
    "  1  the run failed (data that an op rejects, --timeout, or a defect); doctor: it found problems\n"
    "  2  usage error: unknown option, a value that does not fit the model\n"
    "  3  the model is damaged, or needs something Leadline does not have\n"
    "  4  refused: needs more memory than --memory, LEADLINE_MEMORY or the machine allow\n"
    "  5  a file cannot be read or written\n"
    "\n"
    "Errors are one message on standard error; with --json also one JSON document on standard output.\n"
    "LEADLINE_MEMORY (\"200MB\", \"50%\") sets the limit where --memory does not.";

struct Failure {
  ExitCode exit_code = kRuntimeError;
  const char* kind = "internal";
  std::string message;
  Json details = Json::object();
};

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidModel:
    case ErrorCode::kUnsupported:
      return kModelInvalid;
    case ErrorCode::kInvalidArgument:
      return kUsage;
    case ErrorCode::kBudget:
    case ErrorCode::kOutOfMemory:
      return kOverBudget;
    case ErrorCode::kIo:
      return kIoError;
    case ErrorCode::kRuntime:
    case ErrorCode::kCancelled:
    case ErrorCode::kTimeout:
    case ErrorCode::kInternal:
      break;
  }
  return kRuntimeError;
}

Failure describe(const Error& error) {
  Failure failure{exit_code_of(error.code()), leadline::error_code_name(error.code()), error.what(), Json::object()};
  if (const auto* budget = dynamic_cast<const leadline::BudgetError*>(&error)) {
    failure.details = {{"needed_bytes", budget->needed()}, {"limit_bytes", budget->limit()}};
  }
  return failure;
}

int report(const Failure& failure, bool json) {
  std::fputs(fmt::format("error: {}\n", leadline::printable(failure.message, true)).c_str(), stderr);
  if (json) {
    Json error = {
        {"kind", failure.kind}, {"message", failure.message}, {"exit_code", static_cast<int>(failure.exit_code)}};
    for (const auto& [key, value] : failure.details.members()) error[key] = value;
    const Json document = {{"error", error}};
    std::fputs((document.dump(2) + "\n").c_str(), stdout);
  }
  return failure.exit_code;
}

bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") return false;  // what follows is another program's
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

/// Runs what the arguments ask for. Throws.
int guarded_main(int argc, char** argv) {
  leadline::set_device_finder(leadline::guard::find_devices);
  Program program(kAbout, kFooter);
  program.add(inspect_command);
  program.add(plan_command);
  program.add(run_command);
  program.add(convert_command);
  program.add(quantize_command);
  program.add(debug_command);
  program.add(evaluate_command);
  program.add(tune_command);
  program.add(bench_command);
  program.add(ops_command);
  program.add(guard_command);
  program.add(postmortem_command);
  program.add(kernel_command);
  program.add(devices_command);
  program.add(doctor_command);

  Command* command = program.parse(argc, argv);
  if (command == nullptr) return program.exit_code();
  const leadline::WorkLimit limit(
      [] {
        if (leadline::StopOnSignal::stopped()) {
          throw Error(ErrorCode::kCancelled, "stopped before it was finished");
        }
      },
      command->timeout());
  command->run();
  if (std::fflush(stdout) != 0) throw Error(ErrorCode::kIo, "cannot write to standard output");
  return command->exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = wants_json(argc, argv);
  try {
    return guarded_main(argc, argv);
  } catch (const UsageError& error) {
    return report({kUsage, "usage", error.what(), Json::object()}, json);
  } catch (const Error& error) {
    return report(describe(error), json);
  } catch (const std::bad_alloc&) {
    return report({kOverBudget, "out_of_memory", "the operating system refused more memory", Json::object()}, json);
  } catch (const std::system_error& error) {
    return report({kIoError, "io", error.what(), Json::object()}, json);
  } catch (const std::exception& error) {
    return report({kRuntimeError, "internal", error.what(), Json::object()}, json);
  }
}

// SPDX-License-Identifier: Apache-2.0
// The one exception type of Leadline.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace leadline {

std::string printable(std::string_view text, bool keep_newlines);  // types.h

/// What kind of problem an Error reports. Faces map it to Python exception types and exit codes.
enum class ErrorCode {
  kInvalidModel,     ///< the file is damaged, truncated or breaks a rule of the format
  kUnsupported,      ///< the model is legal but needs an op, version or type Leadline does not have
  kInvalidArgument,  ///< a caller's value does not fit (index, shape, dtype, option)
  kBudget,           ///< the job needs more memory than its Budget allows
  kIo,               ///< the operating system refused to read, write or map a file
  kRuntime,          ///< data met while running broke a rule of an op (index out of range, division by zero)
  kCancelled,        ///< a limit on steps, or a caller's function, stopped the work
  kInternal,         ///< a defect in Leadline itself
  kOutOfMemory,      ///< the system refused memory that is too small for a Budget to count
  kTimeout,          ///< a limit on time stopped the work
};

/// Thrown by every part of Leadline. `what()` is a full sentence for the user: it names the op, node
/// and tensor, what was expected and what was got. Names come from files: control characters are escaped.
///
/// Without memory: a block that a Budget counts and the system refuses is a BudgetError; what fails below that is
/// Error(kOutOfMemory), never std::bad_alloc. Nothing leaks, no file is left half written, and the objects involved can
/// be used again once there is memory. Only copies of plain data (Plan, TensorInfo, ...), the functions that format
/// it, such as Plan::to_json(), and those of doctor.h, devices.h and postmortem.h throw std::bad_alloc, as the
/// containers they consist of do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(printable(message, true)), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// The job does not fit its Budget. `needed()` is the planned need and `limit()` the budget, in bytes;
/// `what()` ends with a table of what needs how much.
class BudgetError : public Error {
 public:
  BudgetError(const std::string& message, int64_t needed, int64_t limit)
      : Error(ErrorCode::kBudget, message), needed_(needed), limit_(limit) {}
  int64_t needed() const noexcept { return needed_; }
  int64_t limit() const noexcept { return limit_; }

 private:
  int64_t needed_;
  int64_t limit_;
};

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
// Repeats a job with the first, second, third... request refused, until it ends without meeting the refusal, as SQLite
// is tested. A job is a list of attempts. The attempt that meets the refusal must throw a leadline::Error about it; it
// is then made again, on the same objects and with everything working, and the result must be the right one.
#pragma once

#include <cstdint>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "leadline/error.h"
#include "tests/faults/fault_allocator.h"
#include "tests/faults/fault_system.h"

namespace leadline::faults {

/// Whether an injected refusal is behind the exception that is being handled; a failure of the test when the exception
/// is not of the kind it should be. Ends the injection.
bool excuse(const char* step);
/// What the test does itself.
template <typename Body>
auto own(const Body& body) {
  const Exempt exempt;
  return body();
}

/// A step of a job. `recover` runs before the step is made again.
template <typename Step>
auto attempt(const char* name, const Step& step) {
  try {
    return step();
  } catch (...) {
    if (!excuse(name)) throw;
  }
  return step();
}
template <typename Step, typename Recover>
auto attempt(const char* name, const Step& step, const Recover& recover) {
  try {
    return step();
  } catch (...) {
    if (!excuse(name)) throw;
  }
  recover();
  return step();
}

/// Values and their formatting are the caller's: std::bad_alloc may come out of them.
template <typename Step>
auto attempt_value(const Step& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    disarm_allocator();
  }
  return step();
}

/// The job returns what it computed, in any form that can be compared.
using Job = std::function<std::string()>;

/// All allocations, once with one refusal and once with nothing given from there on. `folder`: where the job may leave
/// the files that it leaves without faults, and no others.
void sweep_allocations(const char* name, const Job& job, const std::string& folder = {});

/// All system calls: refused, short, interrupted. Errors must be of kIo (or of `also`) and name `path`.
void sweep_system(const char* name, const Job& job, const std::string& folder, const std::string& path);

std::multiset<std::string> files_in(const std::string& folder);

}  // namespace leadline::faults

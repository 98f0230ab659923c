// SPDX-License-Identifier: Apache-2.0
// Asks a driver in a child process, which may crash or hang without harm: the answer, or the reason why there is none.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leadline/devices.h"

namespace leadline::guard {

struct ProbeResult {
  std::vector<Device> devices;
  std::string note;  ///< why there are none; empty: nothing to say
};

/// A probe that runs in a child from construction on.
///
/// The child is a fork that runs no fork handlers: OpenBLAS's handler, for one, stops threads that the parent is using.
/// Such a child can inherit a lock (of malloc, of the loader) that is never released, so it proves first that it can
/// allocate and look up symbols; one that cannot is replaced.
class ChildProbe {
 public:
  using Probe = std::function<ProbeResult()>;
  ChildProbe(std::string what, Probe probe);
  ~ChildProbe();
  ChildProbe(const ChildProbe&) = delete;
  ChildProbe& operator=(const ChildProbe&) = delete;

  /// Waits until `end` at most. A child that is late is killed; one that even then does not end, because a driver
  /// holds it in the kernel, is left behind.
  ProbeResult result(std::chrono::steady_clock::time_point end);

 private:
  enum class Wait { kAnswer, kEnd, kLate };
  void start();
  Wait read_until(std::chrono::steady_clock::time_point end, size_t bytes, std::string& answer);
  void finish(bool kill_it);

  std::string what_;
  Probe probe_;
  int pid_ = -1;
  int pipe_ = -1;
  std::optional<int> status_;
};

/// The wire format between child and parent, and back; text that is none becomes a note.
std::string encode(const ProbeResult& result);
ProbeResult decode(const std::string& text, const std::string& what);

}  // namespace leadline::guard

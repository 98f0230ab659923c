// SPDX-License-Identifier: Apache-2.0
// Another engine, run by a Python process that `bench` talks to in lines of JSON.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"

namespace leadline::cli {

/// The script that runs an engine; src/cli/bench_engine.py describes what it reads and writes.
extern const char* const kBenchEngine;

class Peer {
 public:
  /// Starts the engine and waits for its first result. Throws Error(kIo) when Python cannot be started, and
  /// Error(kUnsupported) with the pip command when it does not have the engine.
  Peer(const std::string& python, const std::string& engine, const std::string& model, int threads,
       const std::string& inputs_path);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& engine() const { return engine_; }
  /// What it reported after the first result: version, import_ms, first_ms, before_bytes, peak_bytes; or error.
  const Json& start() const { return start_; }
  bool works() const { return !start_.contains("error"); }
  /// Milliseconds of each of `count` runs. Throws Error(kRuntime) when the process died.
  std::vector<double> run(int count);
  /// Writes its outputs to an .npz file: output_0, output_1, ...
  void save(const std::string& path);
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  Json ask(const Json& request);
  Json answer();

  std::string engine_;
  pid_t pid_ = -1;
  FILE* requests_ = nullptr;
  FILE* answers_ = nullptr;
  Json start_;
  int64_t peak_bytes_ = 0;
};

}  // namespace leadline::cli

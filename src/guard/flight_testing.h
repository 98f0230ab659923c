// SPDX-License-Identifier: Apache-2.0
// For tests: a folder for recordings, and children that write one and end as they like.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "guard/flight_folder.h"

namespace leadline::guard {

class FlightFolder {
 public:
  FlightFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "leadline-flights-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) root_ = name;
  }
  ~FlightFolder() {
    std::error_code ignored;
    if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
  }
  FlightFolder(const FlightFolder&) = delete;
  FlightFolder& operator=(const FlightFolder&) = delete;

  std::string path() const { return root_ / "flights"; }
  std::string root() const { return root_; }
  std::string only_file() const {
    const std::vector<std::string> files = list_flights(path());
    EXPECT_EQ(files.size(), 1U);
    return files.empty() ? "" : files.front();
  }

 private:
  std::filesystem::path root_;
};

/// What waitpid reports about a forked child that ran `body`. A recorder lives as long as its process, so each test
/// that writes one has a process of its own.
template <typename Body>
int run_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace leadline::guard

// SPDX-License-Identifier: Apache-2.0
// For tests: a temporary tree that stands for /proc and /sys/fs/cgroup.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/cgroup.h"

namespace leadline {

class FakeSystem {
 public:
  FakeSystem() {
    std::string name = (std::filesystem::temp_directory_path() / "leadline-system-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) root_ = name;
  }
  ~FakeSystem() {
    std::error_code ignored;
    if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
  }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  SystemPaths paths() const {
    SystemPaths paths;
    paths.proc = root_ / "proc";
    paths.cgroup = root_ / "cgroup";
    return paths;
  }

  /// Writes a file under "proc/" or "cgroup/".
  void write(const std::string& path, std::string_view text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
// For tests: a temporary folder with made-up packages, and a machine on which nothing is wrong.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "guard/doctor_subject.h"

namespace leadline::guard {

class FakeSite {
 public:
  FakeSite() {
    std::string name = (std::filesystem::temp_directory_path() / "leadline-site-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) root_ = name;
    std::filesystem::create_directories(site());
  }
  ~FakeSite() {
    std::error_code ignored;
    if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
  }
  FakeSite(const FakeSite&) = delete;
  FakeSite& operator=(const FakeSite&) = delete;

  std::string root() const { return root_; }
  std::string site() const { return (root_ / "lib/python3.11/site-packages").string(); }

  void write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text;
  }

  /// A file of site-packages.
  void write_package_file(const std::string& path, std::string_view text) const {
    write("lib/python3.11/site-packages/" + path, text);
  }

  struct Extra {
    std::vector<std::string> requires_dist = {};
    std::map<std::string, std::string> files = {};  ///< written and listed in RECORD
    std::vector<std::string> missing = {};          ///< listed only
    std::string headers = {};
    std::string installer = "pip";
  };
  void add(const std::string& name, const std::string& version, const Extra& extra) const {
    const std::string folder = name + "-" + version + ".dist-info";
    std::string metadata = "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n" + extra.headers;
    for (const std::string& line : extra.requires_dist) metadata += "Requires-Dist: " + line + "\n";
    write_package_file(folder + "/METADATA", metadata + "\nRequires-Dist: numpy<1 is text of the description\n");
    write_package_file(folder + "/INSTALLER", extra.installer + "\n");
    std::string record = folder + "/METADATA,,\n../../../bin/tool,,\n";
    for (const auto& [path, text] : extra.files) {
      write_package_file(path, text);
      record += path + ",sha256=x,1\n";
    }
    for (const std::string& path : extra.missing) record += path + ",,\n";
    write_package_file(folder + "/RECORD", record);
  }
  void add(const std::string& name, const std::string& version) const { add(name, version, Extra()); }

  /// The environment of this folder, on a machine where all is well.
  Subject subject(const std::string& python_version = "3.11.7") const {
    Subject subject{read_environment({"", {site()}, python_version, {}}), {}};
    Machine& machine = subject.machine;
    machine.architecture = "x86_64";
    machine.cpu_features = {"sse4_2", "avx", "avx2", "fma"};
    machine.glibc = Version::parse("2.36");
    machine.memory.machine_available = int64_t{32} << 30;
    machine.swap_total = int64_t{4} << 30;
    machine.shared_memory = int64_t{8} << 30;
    machine.temporary_folder = "/tmp";
    machine.temporary_free = int64_t{100} << 30;
    return subject;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace leadline::guard

// SPDX-License-Identifier: Apache-2.0
// The models that are taken apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "random.h"
#include "tree.h"

namespace leadline::fuzz {

struct Base {
  std::string name;
  std::vector<std::byte> file;
  /// A tree of its own.
  TablePtr read() const { return read_file(file); }
};

/// Models in groups. Each group has the same chance, whatever it holds; among those of single files the large ones have
/// a smaller one.
class Bases {
 public:
  /// A file of write_bases.py, a .tflite file, or a .txt file of print_text(). Throws std::runtime_error.
  void add(const std::string& path);
  /// Throws std::runtime_error when there is none.
  const Base& pick(Random& random) const;
  size_t size() const;
  size_t groups() const { return groups_.size(); }
  /// Of all names and contents: shows whether two runs use the same models.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  void add_model(const std::string& group, Base base);
  struct Group {
    std::string name;
    std::vector<Base> models;
    double weight = 1.0;
  };
  std::vector<Group> groups_;
  uint64_t fingerprint_ = 0;
};

/// The whole file. Throws std::runtime_error.
std::vector<std::byte> read_bytes(const std::string& path);
/// The tree of a .tflite or .txt file.
TablePtr read_tree(const std::string& path);

}  // namespace leadline::fuzz

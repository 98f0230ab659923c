// SPDX-License-Identifier: Apache-2.0
// Versions of Python packages and the ranges that requirements name (PEP 440). Text comes from files that anybody may
// have written: what is not a version is "nothing", never an exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::guard {

/// A version by the order of PEP 440: 1.0.dev1 < 1.0a1 < 1.0rc1 < 1.0 < 1.0.post1 < 1.1.
class Version {
 public:
  /// Nothing when `text` is not a version; "v1.0-beta" and other spellings that PEP 440 tolerates are read.
  static std::optional<Version> parse(std::string_view text);

  /// Part `index` of the release: 2 and 16 of "2.16.1"; 0 where there is none.
  int64_t release(size_t index) const { return index < release_.size() ? release_[index] : 0; }
  size_t release_size() const { return release_.size(); }
  bool prerelease() const { return pre_ != kFinal || dev_ != kNever; }
  /// Without what follows '+'.
  Version without_local() const;

  int compare(const Version& other) const;
  bool operator==(const Version& other) const { return compare(other) == 0; }
  bool operator<(const Version& other) const { return compare(other) < 0; }
  bool operator>=(const Version& other) const { return compare(other) >= 0; }

 private:
  friend class Specifiers;
  static constexpr int64_t kNever = INT64_MAX;  // no .dev part sorts after every .dev part
  static constexpr int kFinal = 3;              // after a, b, rc

  int64_t epoch_ = 0;
  std::vector<int64_t> release_;
  int pre_ = kFinal;  // 0 a, 1 b, 2 rc; -1: dev release of a final version
  int64_t pre_number_ = 0;
  int64_t post_ = -1;
  int64_t dev_ = kNever;
  std::string local_;
};

/// ">=1.26,<2.0,!=1.26.3": every part must hold.
class Specifiers {
 public:
  /// Nothing when a part cannot be read.
  static std::optional<Specifiers> parse(std::string_view text);
  bool allows(const Version& version) const;
  /// Whether it is older than what they ask for, or another than the one that they pin (==).
  bool wants_newer_or_exact(const Version& version) const;
  bool empty() const { return parts_.empty(); }

 private:
  struct Part {
    std::string op;
    Version version;
    bool prefix = false;  // "==2.1.*"
  };
  static bool holds(const Part& part, const Version& version);

  std::vector<Part> parts_;
};

/// Names of packages compare in this form: lower case, runs of '-', '_' and '.' as one '-'.
std::string normalized_name(std::string_view name);
/// Letters, digits, '-', '_' and '.' only: a name that can stand in a command.
bool is_package_name(std::string_view name);

}  // namespace leadline::guard

// SPDX-License-Identifier: Apache-2.0
// Which op a node is. Builtin ops are identified by their code, custom ops and ops that only runs have by their name.
// Ops of different kinds are never equal: a custom op called CONV_2D is not the builtin CONV_2D.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace leadline::ir {

/// Number of a builtin op in the .tflite format.
using OpCode = int32_t;
/// The number that files give every custom op.
inline constexpr OpCode kCustomOp = 32;

/// Names one op; a constant of ops/builtins.h, or beside the op's row. Does not own the name.
class OpId {
 public:
  /// No op: what is left of a node whose work another one does.
  constexpr OpId() = default;
  static constexpr OpId builtin(OpCode code, std::string_view name) { return {code, name}; }
  static constexpr OpId custom(std::string_view name) { return {kCustomOp, name}; }
  /// An op that no file can have: it does the work of several nodes in a run.
  static constexpr OpId fused(std::string_view name) { return {kFused, name}; }

  constexpr bool is_none() const { return code_ == kNone; }
  constexpr bool is_builtin() const { return code_ >= 0 && code_ != kCustomOp; }
  constexpr bool is_custom() const { return code_ == kCustomOp; }
  constexpr bool is_fused() const { return code_ == kFused; }
  /// The number in files; negative for what files cannot have.
  constexpr OpCode code() const { return code_; }
  /// For messages, reports and files. To find out which op this is, compare ids.
  constexpr std::string_view name() const { return name_; }

 private:
  friend class OwnedOpId;
  static constexpr OpCode kNone = -1;
  static constexpr OpCode kFused = -2;
  constexpr OpId(OpCode code, std::string_view name) : code_(code), name_(name) {}

  OpCode code_ = kNone;
  std::string_view name_;
};

constexpr bool operator==(const OpId& a, const OpId& b) {
  return a.code() == b.code() && (a.is_builtin() || a.name() == b.name());
}

/// Some order, for maps.
constexpr bool operator<(const OpId& a, const OpId& b) {
  return a.code() != b.code() ? a.code() < b.code() : !a.is_builtin() && a.name() < b.name();
}

constexpr bool is_one_of(const OpId& op, std::initializer_list<OpId> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](const OpId& other) { return op == other; });
}

/// An OpId that owns its name, as nodes have it.
class OwnedOpId {
 public:
  OwnedOpId() = default;
  OwnedOpId(const OpId& id) : code_(id.code()), name_(id.name()) {}  // NOLINT(google-explicit-constructor)
  operator OpId() const { return id(); }                             // NOLINT(google-explicit-constructor)

  OpId id() const { return {code_, name_}; }
  bool is_none() const { return id().is_none(); }
  bool is_builtin() const { return id().is_builtin(); }
  bool is_custom() const { return id().is_custom(); }
  bool is_fused() const { return id().is_fused(); }
  OpCode code() const { return code_; }
  const std::string& name() const { return name_; }

 private:
  OpCode code_ = OpId().code();
  std::string name_;
};

}  // namespace leadline::ir

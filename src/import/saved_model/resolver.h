// SPDX-License-Identifier: Apache-2.0
// Follows a tensor to where it is made, as if every function call were written out: through arguments, returns,
// identities and reads of variables. The body of a call is a frame; it is made when something asks for a tensor in it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "import/saved_model/program.h"

namespace leadline::saved_model {

/// Output `output` of a node in a frame; an argument of the frame when node == Operand::kArgument.
struct Ref {
  int frame = 0;
  int node = 0;
  int output = 0;
  friend bool operator==(const Ref&, const Ref&) = default;
};
struct RefHash {
  size_t operator()(const Ref& ref) const noexcept {
    return (static_cast<size_t>(ref.frame) * 0x9E3779B1U + static_cast<size_t>(ref.node)) * 0x85EBCA6BU +
           static_cast<size_t>(ref.output);
  }
};

struct Frame {
  /// What an argument is: a tensor elsewhere, or free (a parameter of a function that stays one).
  struct Argument {
    bool free = true;
    Ref value;
  };
  const Body* body = nullptr;
  std::string path;  // names of the calls that lead here, "a/b/"
  int depth = 0;
  std::vector<Argument> arguments;
};

/// A While, If or Case: which operands its functions keep. The others are constants or variables, which the functions
/// hold themselves.
struct Control {
  bool loop = false;
  std::vector<int> kept;    // operands of the functions, by their old number
  std::vector<int> frames;  // cond and body; then and else; the branches
};

class Resolver {
 public:
  static constexpr int kMain = 0;

  /// `fed`: (node, output) of the main graph that are inputs. `kept`: names of variables that are not constants, so
  /// that reading them is computing; null: none.
  Resolver(Program& program, std::set<std::pair<int, int>> fed, const std::set<std::string>* kept = nullptr);

  /// Where the tensor is made: an input, a free argument, or an output of a node that computes, holds a constant or is
  /// a variable. Throws Error for cycles, too deep calls and calls that do not fit.
  Ref follow(Ref ref);
  Ref ref(int frame, const Operand& operand) const { return {frame, operand.node, operand.output}; }
  /// The sources of a node's data inputs.
  std::vector<Ref> inputs(int frame, int node);

  const Frame& frame(int index) const { return frames_[static_cast<size_t>(index)]; }
  int frame_count() const noexcept { return static_cast<int>(frames_.size()); }
  const NodeDef& node(const Ref& ref) const;
  bool is_fed(const Ref& ref) const { return ref.frame == kMain && fed_.contains({ref.node, ref.output}); }
  bool is_constant(const Ref& ref) const;
  bool is_variable(const Ref& ref) const;
  /// A variable that is not a constant.
  bool is_kept(const Ref& ref) const;
  bool keeps_any() const { return kept_ != nullptr && !kept_->empty(); }
  /// A table of keys and values, which is filled once.
  bool is_table(const Ref& ref) const;
  /// The name that identifies a variable.
  std::string_view variable_name(const Ref& ref) const;

  /// Whether the node calls a function that is to be written out.
  bool is_call(const NodeDef& node) const;
  static bool is_control(const NodeDef& node);
  int callee(int frame, int node);
  const Control& control(int frame, int node);
  Program& program() const noexcept { return program_; }

 private:
  static int64_t key(int frame, int node) { return static_cast<int64_t>(frame) << 32 | static_cast<uint32_t>(node); }
  bool step(Ref& ref, bool& read);
  int add_frame(std::string_view function, int caller, const NodeDef& call, size_t arguments);
  Control plan_loop(int frame, const NodeDef& node, const std::vector<Operand>& operands);
  Control plan_branches(int frame, const NodeDef& node, const std::vector<Operand>& operands);
  std::string_view function_name(const NodeDef& node, std::string_view attr) const;

  Program& program_;
  std::set<std::pair<int, int>> fed_;
  const std::set<std::string>* kept_;
  std::vector<Frame> frames_;
  std::unordered_map<int64_t, int> callees_;
  std::unordered_map<int64_t, Control> controls_;
  std::unordered_set<int64_t> planning_;
  std::unordered_map<Ref, Ref, RefHash> known_;
};

}  // namespace leadline::saved_model

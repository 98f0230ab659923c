// SPDX-License-Identifier: Apache-2.0
// `leadline ops`: which ops of the format run, for which types. docs/ops.md is its Markdown form.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/printing.h"
#include "leadline/error.h"
#include "leadline/op_list.h"

namespace leadline::cli {
namespace {

constexpr const char* kOpsExamples =
    "  leadline ops\n"
    "  leadline ops --json\n"
    "  leadline ops --markdown > docs/ops.md";

constexpr const char* kNotation =
    "Types: `f32` float32 and so on (`f16 bf16 f64`, `i8 i16 i32 i64`, `u8 u16 u32`, `bool`, `string`). For ops that "
    "compute,\n"
    "`i8 u8 i16` are quantized tensors. `i16x8`: int16 activations with int8 weights. `hybrid`: float activations "
    "with\n"
    "integer weights, quantized at run time. `f16-weights i4-weights i2-weights`: constants of that type with float or "
    "int8\n"
    "activations. `i8x8_16`: int8 with int16 state. `all` and `any` mean every type that makes sense for the op.\n"
    "\"Fast\": forms with kernels tuned for the CPU (vector instructions, packed weights); the others run plain "
    "loops.\n";

std::string version_text(const OpInfo& op) { return op.max_version == 1 ? "1" : fmt::format("1-{}", op.max_version); }

/// A cell of a Markdown table.
std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, 1, '\\');
  return text.empty() ? "-" : text;
}

class Ops final : public Command {
 public:
  explicit Ops(CLI::App& program)
      : Command(program, "ops", "List the ops of the format: which run, for which types, which do not and why",
                kOpsExamples) {
    add_flag("--markdown", markdown_, "As Markdown tables");
  }

  void run() override {
    if (json() && markdown_) throw Error(ErrorCode::kInvalidArgument, "--json and --markdown exclude each other");
    const std::vector<OpInfo> ops = known_ops();
    if (json()) {
      print_json(document(ops));
    } else if (markdown_) {
      print_markdown(ops);
    } else {
      print_text(ops);
    }
  }

 private:
  static Json document(const std::vector<OpInfo>& ops);
  static void print_markdown(const std::vector<OpInfo>& ops);
  static void print_text(const std::vector<OpInfo>& ops);

  bool markdown_ = false;
};

Json Ops::document(const std::vector<OpInfo>& ops) {
  Json list = Json::array();
  for (const OpInfo& op : ops) {
    Json entry = {{"name", op.name}, {"code", nullptr}, {"max_version", op.max_version}, {"runs", op.runs}};
    if (op.code >= 0) entry["code"] = op.code;
    if (op.runs) {
      entry["types"] = op.types;
      entry["fast"] = op.fast;
    } else {
      entry["reason"] = op.reason;
    }
    list.push_back(std::move(entry));
  }
  return {{"ops", std::move(list)}};
}

void Ops::print_markdown(const std::vector<OpInfo>& ops) {
  const auto runs = std::count_if(ops.begin(), ops.end(), [](const OpInfo& op) { return op.runs; });
  fmt::print(
      "# Ops\n\n<!-- Made by `leadline ops --markdown`; do not edit. -->\n\n"
      "Leadline runs {} of the {} ops it knows. A custom op that is not listed runs when an implementation is "
      "registered:\nsee [custom_ops.md](custom_ops.md).\n\n{}\n",
      runs, ops.size(), kNotation);
  fmt::print("## Ops that run\n| op | code | versions | types and quantized forms | fast |\n|---|---|---|---|---|\n");
  for (const OpInfo& op : ops) {
    if (!op.runs) continue;
    fmt::print("| {} | {} | {} | {} | {} |\n", op.name, op.code < 0 ? "custom" : std::to_string(op.code),
               version_text(op), cell(op.types), cell(op.fast));
  }
  fmt::print(
      "\n## Ops that do not run\nModels with these load, and can be inspected, planned and written back.\n\n"
      "| op | code | why |\n|---|---|---|\n");
  for (const OpInfo& op : ops) {
    if (!op.runs) fmt::print("| {} | {} | {} |\n", op.name, op.code, cell(op.reason));
  }
}

void Ops::print_text(const std::vector<OpInfo>& ops) {
  Table running("rlll");
  running.add({"code", "op", "versions", "types and quantized forms"});
  Table others("rll");
  others.add({"code", "op", "why not"});
  for (const OpInfo& op : ops) {
    const std::string code = op.code < 0 ? "-" : std::to_string(op.code);
    if (op.runs) {
      running.add({code, op.name, version_text(op), op.types});
    } else {
      others.add({code, op.name, op.reason});
    }
  }
  fmt::print("Ops that run\n{}\nOps that do not run\n{}", running.text(), others.text());
}

}  // namespace

std::unique_ptr<Command> ops_command(CLI::App& program) { return std::make_unique<Ops>(program); }

}  // namespace leadline::cli

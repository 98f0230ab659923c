// SPDX-License-Identifier: Apache-2.0
#include "report/debug_commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/pattern_text.h"
#include "report/page.h"

namespace leadline::report {
namespace {

/// How many suspects the last command keeps in float.
constexpr size_t kKept = 3;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./-+=:@%,").find(c) != std::string_view::npos;
}

std::string mended_name(const std::string& quantized) {
  return std::filesystem::path(quantized).stem().string() + ".mixed.tflite";
}

std::string keep_command(const DebugResult& result, const std::string& model, const std::string& quantized) {
  std::vector<std::string> names;
  for (const DebugSuspect& suspect : result.suspects) {
    const auto index = static_cast<size_t>(suspect.layer);
    if (names.size() == kKept || index >= result.layers.size()) break;
    const std::string& name = result.layers[index].float_name;
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "";
  std::string rules;
  for (const std::string& name : names) {
    rules += fmt::format("    {{\"name\": {}, \"mode\": \"float\"}},\n", python_literal(exact_pattern(name)));
  }
  return fmt::format(
      "import leadline\n\nrecipe = [\n{}]\ncontent = leadline.quantize({}, \"int8\", dataset, recipe=recipe)\n"
      "open({}, \"wb\").write(content)",
      rules, python_literal(model), python_literal(mended_name(quantized)));
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  // A word that starts with a dash would be read as an option.
  std::string result = !text.empty() && text.front() == '-' ? "'./" : "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + '\'';
}

std::string python_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::vector<Command> page_commands(const DebugResult& result, const DebugRun& run) {
  const std::string model = run.float_model.empty() ? "model.tflite" : run.float_model;
  const std::string quantized = run.quantized_model.empty() ? "model.int8.tflite" : run.quantized_model;
  std::vector<Command> commands;
  commands.push_back(
      {"Command line", fmt::format("leadline debug {} {} --data {} --report report.html", shell_word(model),
                                   shell_word(quantized), run.data.empty() ? "samples.npz" : shell_word(run.data))});
  commands.push_back({"Python", fmt::format("import leadline\n\nresult = leadline.debug({}, {}, dataset)\n"
                                            "result.save(\"report.html\")",
                                            python_literal(model), python_literal(quantized))});
  if (!result.suggestions.empty()) {
    commands.push_back(
        {"Quantize again with what helps most",
         fmt::format("import json\nimport leadline\n\nrecipe = json.loads({})\ncontent = leadline.quantize({}, "
                     "representative_dataset=dataset, recipe=recipe)\nopen({}, \"wb\").write(content)",
                     python_literal(result.suggestions.front().recipe), python_literal(model),
                     python_literal(mended_name(quantized)))});
  } else if (std::string keep = keep_command(result, model, quantized); !keep.empty()) {
    commands.push_back({"Quantize again with the first suspects in float", std::move(keep)});
  }
  return commands;
}

}  // namespace leadline::report

// SPDX-License-Identifier: Apache-2.0
#include "guard/python_stack.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

/// `  File "/tmp/x.py", line 12 in f`; nothing for other lines.
bool parse_frame(std::string_view line, PythonFrame& frame) {
  constexpr std::string_view kStart = "  File \"";
  constexpr std::string_view kMiddle = "\", line ";
  if (!line.starts_with(kStart)) return false;
  const size_t middle = line.rfind(kMiddle);
  if (middle == std::string_view::npos || middle < kStart.size()) return false;
  frame.file = line.substr(kStart.size(), middle - kStart.size());
  const std::string_view rest = line.substr(middle + kMiddle.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
  if (error != std::errc() || frame.line <= 0) return false;
  const size_t name = rest.find(" in ");
  frame.function = name == std::string_view::npos ? "" : std::string(rest.substr(name + 4));
  return true;
}

/// Line `number` of `text`, without the space around it; empty when there is none.
std::string line_of(const std::string& text, int number) {
  int count = 0;
  std::string found;
  for_each_line(text, [&](std::string_view line) {
    if (++count == number) found = line;
  });
  const size_t start = std::min(found.find_first_not_of(" \t"), found.size());
  const size_t end = found.find_last_not_of(" \t\r");
  return end == std::string::npos ? "" : found.substr(start, end + 1 - start);
}

}  // namespace

bool is_cell(const std::string& file) {
  constexpr std::string_view kFolder = "/ipykernel_";  // and the kernel's pid
  const size_t at = file.find(kFolder);
  const size_t digit = at + kFolder.size();
  const bool in_folder = at != std::string::npos && digit < file.size() && file[digit] >= '0' && file[digit] <= '9';
  return in_folder || file.starts_with("<ipython-input");
}

bool is_own_code(const std::string& file) {
  if (is_cell(file)) return true;
  constexpr std::array<std::string_view, 5> kLibraries = {"/site-packages/", "/dist-packages/", "/lib/python",
                                                          "<frozen ", "<__array_function__"};
  return std::none_of(kLibraries.begin(), kLibraries.end(),
                      [&](std::string_view part) { return file.find(part) != std::string::npos; });
}

std::vector<PythonThread> parse_python_stack(const std::string& text) {
  std::vector<PythonThread> threads;
  for_each_line(text, [&](std::string_view line) {
    if (line.find("most recent call first") != std::string_view::npos) {
      threads.push_back({std::string(line), line.starts_with("Current"), false, {}, {}});
      return;
    }
    if (threads.empty() || line.empty()) return;
    PythonThread& thread = threads.back();
    thread.lines.emplace_back(line);
    if (PythonFrame frame; parse_frame(line, frame)) {
      thread.own_code = thread.own_code || is_own_code(frame.file);
      thread.frames.push_back(std::move(frame));
    }
  });
  const auto rank = [](const PythonThread& thread) { return thread.current ? 0 : thread.own_code ? 1 : 2; };
  std::stable_sort(threads.begin(), threads.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return threads;
}

GuiltyLine find_guilty_line(const std::vector<PythonThread>& threads, const std::string& cell_source) {
  GuiltyLine guilty;
  if (threads.empty() || !(threads.front().current || threads.front().own_code)) return guilty;
  const std::vector<PythonFrame>& frames = threads.front().frames;
  const auto own =
      std::find_if(frames.begin(), frames.end(), [](const auto& frame) { return is_own_code(frame.file); });
  const auto inner = own != frames.end() ? own : frames.begin();
  if (inner == frames.end()) return guilty;
  guilty.file = inner->file;
  guilty.line = inner->line;
  guilty.function = inner->function;
  // The cell that runs is the outermost one; functions of earlier cells have files of their own.
  const auto cell = std::find_if(frames.rbegin(), frames.rend(), [](const auto& frame) { return is_cell(frame.file); });
  if (cell == frames.rend()) return guilty;
  guilty.in_cell = cell->file == guilty.file;
  if (guilty.in_cell) guilty.source = line_of(cell_source, guilty.line);
  if (guilty.in_cell && cell->line == guilty.line) return guilty;
  guilty.cell_line = cell->line;
  guilty.cell_source = line_of(cell_source, cell->line);
  return guilty;
}

std::string python_stack_text(const std::vector<PythonThread>& threads) {
  constexpr size_t kMostLines = 40;
  std::string text;
  size_t quiet = 0;
  for (const PythonThread& thread : threads) {
    if (!thread.current && !thread.own_code) {
      ++quiet;
      continue;
    }
    text += thread.title + "\n";
    for (size_t i = 0; i < std::min(thread.lines.size(), kMostLines); ++i) text += thread.lines[i] + "\n";
    if (thread.lines.size() > kMostLines) text += fmt::format("  ... {} more\n", thread.lines.size() - kMostLines);
  }
  if (quiet > 0) {
    text += fmt::format("{} {} no code of yours\n", quiet, quiet == 1 ? "other thread runs" : "other threads run");
  }
  return text;
}

}  // namespace leadline::guard

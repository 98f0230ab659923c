// SPDX-License-Identifier: Apache-2.0
#include "guard/cpu_info.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "guard/trim.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostFlags = 2000;
constexpr std::array<std::string_view, 15> kX86{"sse4_1",   "sse4_2",      "avx",      "f16c",        "fma",
                                                "avx2",     "avx512f",     "avx512bw", "avx512_vnni", "avx512_bf16",
                                                "avx_vnni", "avx512_fp16", "amx_tile", "amx_int8",    "amx_bf16"};
constexpr std::array<std::string_view, 9> kArm{"neon", "asimd", "asimdhp", "asimddp", "i8mm",
                                               "bf16", "sve",   "sve2",    "sme"};

/// The names that are in `features`, or those that are not.
std::vector<std::string> among(std::span<const std::string_view> names, const std::vector<std::string>& features,
                               bool there) {
  std::vector<std::string> result;
  for (const std::string_view name : names) {
    if ((std::find(features.begin(), features.end(), name) != features.end()) == there) result.emplace_back(name);
  }
  return result;
}

}  // namespace

CpuInfo read_cpu_info(const SystemPaths& paths) {
  CpuInfo info;
  std::string implementer;
  std::string part;
  for_each_line(read_start(paths.proc + "/cpuinfo", size_t{64} << 10).value_or(""), [&](std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view key = trim(line.substr(0, colon));
    std::string_view value = trim(line.substr(colon + 1));
    if ((key == "model name" || key == "Model") && info.model.empty()) info.model = value.substr(0, 200);
    if (key == "CPU implementer" && implementer.empty()) implementer = value.substr(0, 20);
    if (key == "CPU part" && part.empty()) part = value.substr(0, 20);
    if ((key != "flags" && key != "Features") || !info.features.empty()) return;
    while (!value.empty() && info.features.size() < kMostFlags) {
      const size_t size = std::min(value.find(' '), value.size());
      if (size > 0) info.features.emplace_back(value.substr(0, size));
      value.remove_prefix(std::min(size + 1, value.size()));
    }
  });
  if (info.model.empty() && !part.empty()) info.model = "ARM implementer " + implementer + " part " + part;
  if (info.model.empty()) info.model = "unknown";
  return info;
}

std::vector<std::string> numeric_features(const CpuInfo& cpu) {
  std::vector<std::string> result = among(kX86, cpu.features, true);
  const std::vector<std::string> arm = among(kArm, cpu.features, true);
  result.insert(result.end(), arm.begin(), arm.end());
  return result;
}

std::vector<std::string> missing_numeric_features(const std::vector<std::string>& features) {
  if (!among(kX86, features, true).empty()) return among(kX86, features, false);
  if (!among(kArm, features, true).empty()) return among(kArm, features, false);
  return {};
}

}  // namespace leadline::guard

// SPDX-License-Identifier: Apache-2.0
#include "debug/layer_names.h"

#include <algorithm>
#include <array>

namespace leadline::debug {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// "_12" at the end, or nothing.
std::string_view number_ending(std::string_view text) {
  const size_t digits = text.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == text.size() || text[digits] != '_') return {};
  return text.substr(digits);
}

/// Whether this is what TensorFlow calls a contraction inside a layer's scope.
bool names_contraction(std::string_view part) {
  constexpr std::array<std::string_view, 7> kNames = {"onv",      "depthwise", "MatMul", "atmul",
                                                      "ensordot", "einsum",    "BiasAdd"};
  const std::string_view last = part.substr(part.rfind('/') + 1);
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view n) { return last.find(n) != std::string_view::npos; });
}

}  // namespace

LayerNames::LayerNames(const std::vector<std::string_view>& names) {
  bool all = true;
  for (std::string_view name : names) {
    for (std::string_view part : split(name, ';')) {
      const auto scopes = split(part, '/');
      if (scopes.size() < 3) continue;
      const std::string_view ending = number_ending(scopes[0]);
      if (ending.empty() || (!suffix_.empty() && suffix_ != ending) || !scopes[1].ends_with(ending)) all = false;
      if (suffix_.empty()) suffix_ = ending;
    }
  }
  if (!all) suffix_.clear();
}

std::string LayerNames::layer(std::string_view name, bool contraction) const {
  const auto parts = split(name, ';');
  std::string_view chosen = parts[0];
  for (std::string_view part : parts) {
    if (!contraction || !names_contraction(part)) continue;
    chosen = part;
    break;
  }
  auto scopes = split(chosen, '/');
  // Older models open the scope of the model twice: "MobilenetV1/MobilenetV1/Conv2d_0/Relu6".
  while (scopes.size() > 1 && scopes[1] == scopes[0]) scopes.erase(scopes.begin());
  std::string_view layer = scopes.size() >= 3 ? scopes[1] : scopes[0];
  if (scopes.size() > 3 && contraction && names_contraction(chosen)) {  // a model inside the model
    const size_t inner = scopes[scopes.size() - 2] == "Tensordot" || scopes[scopes.size() - 2] == "einsum" ? 3 : 2;
    layer = scopes[scopes.size() - inner];
  }
  if (scopes.size() < 2) {
    const size_t colon = layer.rfind(':');
    if (colon != std::string_view::npos && colon > 0) layer = layer.substr(0, colon);
    return std::string(layer);
  }
  if (!suffix_.empty() && layer.size() > suffix_.size() && layer.ends_with(suffix_))
    layer.remove_suffix(suffix_.size());
  return std::string(layer);
}

}  // namespace leadline::debug

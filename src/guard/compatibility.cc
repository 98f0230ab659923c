// SPDX-License-Identifier: Apache-2.0
#include "guard/compatibility.h"

#include "core/error.h"
#include "io/json.h"

namespace leadline::guard {
namespace {

Compatibility read_table(const Json& json) {
  Compatibility table;
  table.date = json.at("date").text();
  for (const auto& [name, source] : json.at("sources").members()) table.sources[name] = source.at("url").text();
  for (const Json& entry : json.at("tensorflow").items()) {
    TensorFlowRow row{entry.at("version").text(), entry.at("python").at(0).text(), entry.at("python").at(1).text(),
                      entry.at("cuda").text(),    entry.at("cudnn").text(),        {}};
    if (const Json* required = entry.find("requires")) {
      for (const auto& [package, version] : required->members()) row.requirements[package] = version.text();
    }
    table.tensorflow.push_back(std::move(row));
  }
  table.keras3_since = json.at("tensorflow_keras3_since").text();
  table.numpy2_since = json.at("tensorflow_numpy2_since").text();
  table.tensorflow_family = json.at("tensorflow_family").texts();
  table.lite_runtimes = json.at("lite_runtimes").texts();
  table.lite_converters = json.at("lite_converters").texts();
  for (const Json& entry : json.at("cuda_drivers").items()) {
    table.cuda_drivers.emplace_back(static_cast<int>(entry.at("cuda").integer()), entry.at("driver").text());
  }
  for (const Json& entry : json.at("cpu_features").items()) {
    table.cpu.push_back({entry.at("packages").texts(), entry.at("since").text(), entry.at("machine").text(),
                         entry.at("features").texts(), entry.at("source").text()});
  }
  return table;
}

}  // namespace

const TensorFlowRow* Compatibility::row_of(const Version& tensorflow_version) const {
  for (const TensorFlowRow& row : tensorflow) {
    const std::optional<Version> version = Version::parse(row.version);
    if (version && version->release(0) == tensorflow_version.release(0) &&
        version->release(1) == tensorflow_version.release(1)) {
      return &row;
    }
  }
  return nullptr;
}

std::string Compatibility::source(const std::string& name) const {
  const auto found = sources.find(name);
  return found == sources.end() ? std::string() : found->second;
}

const Compatibility& compatibility() {
  static const Compatibility table = [] {
    try {
      return read_table(parse_json(kCompatibilityJson));
    } catch (const JsonError& error) {
      fail(ErrorCode::kInternal, "the table of compatible versions cannot be read: {}", error.what());
    }
  }();
  return table;
}

}  // namespace leadline::guard

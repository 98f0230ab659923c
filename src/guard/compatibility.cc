// SPDX-License-Identifier: Apache-2.0
#include "guard/compatibility.h"

#include "core/error.h"
#include "io/json.h"

namespace leadline::guard {
namespace {

using Json = ParsedJson;

Compatibility read(const Json& json) {
  Compatibility table;
  table.date = json.at("date");
  for (const auto& [name, source] : json.at("sources").items()) table.sources[name] = source.at("url");
  for (const Json& entry : json.at("tensorflow")) {
    TensorFlowRow row{entry.at("version"), entry.at("python").at(0), entry.at("python").at(1),
                      entry.at("cuda"),    entry.at("cudnn"),        {}};
    if (entry.contains("requires")) row.requirements = entry.at("requires").get<std::map<std::string, std::string>>();
    table.tensorflow.push_back(std::move(row));
  }
  table.keras3_since = json.at("tensorflow_keras3_since");
  table.numpy2_since = json.at("tensorflow_numpy2_since");
  table.tensorflow_family = json.at("tensorflow_family").get<std::vector<std::string>>();
  table.lite_runtimes = json.at("lite_runtimes").get<std::vector<std::string>>();
  table.lite_converters = json.at("lite_converters").get<std::vector<std::string>>();
  for (const Json& entry : json.at("cuda_drivers"))
    table.cuda_drivers.emplace_back(entry.at("cuda"), entry.at("driver"));
  for (const Json& entry : json.at("cpu_features")) {
    table.cpu.push_back({entry.at("packages").get<std::vector<std::string>>(), entry.at("since"), entry.at("machine"),
                         entry.at("features").get<std::vector<std::string>>(), entry.at("source")});
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
      return read(Json::parse(kCompatibilityJson));
    } catch (const Json::exception& error) {
      fail(ErrorCode::kInternal, "the table of compatible versions cannot be read: {}", error.what());
    }
  }();
  return table;
}

}  // namespace leadline::guard

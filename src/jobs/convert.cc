// SPDX-License-Identifier: Apache-2.0
#include "leadline/convert.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/boundary.h"
#include "core/error.h"
#include "jobs/calibration_run.h"

namespace leadline {
namespace {

Converter read(const std::string& path, const ConvertOptions& options) {
  std::error_code no_error;
  if (std::filesystem::is_directory(path, no_error)) {
    return Converter::from_saved_model(path, options.signature_keys, options.tags, options.budget, options.conversion);
  }
  require(options.signature_keys.empty() && options.tags.empty() && !options.conversion.allow_custom_ops,
          ErrorCode::kInvalidArgument,
          "signature keys, tags and custom ops are for SavedModels; '{}' is not a directory", path);
  return Converter::from_keras(path, options.budget, options.conversion);
}

}  // namespace

struct ConvertJob::State {
  ConvertResult result() const { return {{}, {}, converter.plan().result_bytes, converter.counted_peak_bytes()}; }

  Converter converter;
};

ConvertJob::ConvertJob(const std::string& path, ConvertOptions options) try
    : state_(std::make_unique<State>(read(path, options))) {
} catch (...) {
  rethrow_as_error();
}
ConvertJob::~ConvertJob() = default;
ConvertJob::ConvertJob(ConvertJob&&) noexcept = default;
ConvertJob& ConvertJob::operator=(ConvertJob&&) noexcept = default;

const Converter& ConvertJob::converter() const { return state_->converter; }
JobPlan ConvertJob::plan(ConvertTarget target) const { return state_->converter.job_plan(target); }
void ConvertJob::admit(ConvertTarget target) const { state_->converter.admit(target); }

ConvertResult ConvertJob::run_to_file(const std::string& path, const JobObserver& observer) try {
  state_->converter.convert_to(path, jobs::progress_of(observer, "convert", "bytes"));
  return state_->result();
} catch (...) {
  rethrow_as_error();
}

ConvertResult ConvertJob::run(const JobObserver& observer) try {
  std::vector<std::byte> file = state_->converter.convert(jobs::progress_of(observer, "convert", "bytes"));
  ConvertResult result = state_->result();
  result.file = std::move(file);
  return result;
} catch (...) {
  rethrow_as_error();
}

ConvertResult ConvertJob::run_to_model(const JobObserver& observer) try {
  Model model = state_->converter.convert_to_model(jobs::progress_of(observer, "convert", "bytes"));
  ConvertResult result = state_->result();
  result.model = std::move(model);
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline

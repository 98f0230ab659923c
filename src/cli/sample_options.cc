// SPDX-License-Identifier: Apache-2.0
#include "cli/sample_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "leadline/error.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

/// "224" or "224x320" (height x width).
std::pair<int64_t, int64_t> parse_size(const std::string& text) {
  if (text.empty()) return {0, 0};
  int64_t height = 0, width = 0;
  const char* end = text.data() + text.size();
  const auto [middle, problem] = std::from_chars(text.data(), end, height);
  bool good = problem == std::errc() && height > 0;
  if (good && middle == end) return {height, height};
  if (good && *middle == 'x') {
    const auto [last, second_problem] = std::from_chars(middle + 1, end, width);
    good = second_problem == std::errc() && last == end && width > 0;
    if (good) return {height, width};
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--image-size: expected a number like 224, or HEIGHTxWIDTH, got '{}'", text));
}

}  // namespace

void add_sample_options(Command& command, SampleOptions& options, const std::string& about) {
  using Numbers = std::vector<float>;
  const auto numbers = [&command](const char* name, Numbers& values, const char* help) {
    command.add_option(name, values, help).separated_by(',').placeholder("X[,X,X]");
  };
  command
      .add_option("--data", options.data,
                  about + ": a .npy or .npz file, a folder of them, or a folder of PNG and JPEG pictures")
      .placeholder("PATH");
  command.add_option("--samples", options.max_samples, "Use at most this many samples; 0: all")
      .show_default()
      .non_negative()
      .placeholder("N");
  command.add_option("--image-size", options.image_size, "Pictures: resize to this (default: the size of the input)")
      .placeholder("HxW");
  numbers("--mean", options.mean, "Pictures: subtract this from the values 0 to 255, for all channels or each");
  numbers("--scale", options.scale, "Pictures: then multiply by this");
  command.add_option("--colors", options.colors, "Pictures: auto, rgb, bgr or grey").show_default().placeholder("NAME");
  command.add_option("--resize", options.resize, "Pictures: bilinear or nearest").show_default().placeholder("NAME");
}

void add_label_options(Command& command, SampleOptions& options) {
  command
      .add_option(
          "--labels", options.labels,
          "What the model should answer: a .npy file, file.npz:ARRAY, an array of the --data files by name, or a "
          ".csv of file,label (default: the class folders that --data has)")
      .placeholder("LABELS");
  command.add_option("--classes", options.classes, "A text file with the name of one class in each line")
      .placeholder("FILE");
}

std::unique_ptr<SampleSource> SampleOptions::open(const Model& model, std::shared_ptr<Budget> budget) const {
  if (data.empty()) throw Error(ErrorCode::kInvalidArgument, "no samples to run: add --data samples.npz");
  SampleFileOptions options;
  std::tie(options.pictures.height, options.pictures.width) = parse_size(image_size);
  options.pictures.mean = mean;
  options.pictures.scale = scale;
  options.pictures.colors = parse_picture_colors(colors);
  options.pictures.resize = parse_picture_resize(resize);
  options.labels = labels;
  options.classes = classes;
  options.budget = std::move(budget);
  return open_samples(data, model, std::move(options));
}

void print_findings(const std::vector<SampleFinding>& findings, bool notes) {
  for (const SampleFinding& finding : findings) {
    const bool warning = finding.severity == SampleFinding::Severity::kWarning;
    if (warning || notes) fmt::print(stderr, "{}: {}\n", warning ? "warning" : "note", printable(finding.message));
  }
}

}  // namespace leadline::cli

// SPDX-License-Identifier: Apache-2.0
// Keras models: .keras archives and .h5 files as they lie on disk; and descriptions alone, with weights made up.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "import/hdf5/writer_testing.h"
#include "leadline/converter.h"
#include "leadline/error.h"
#include "readers/archive.h"
#include "readers/keras_models.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void convert_and_run(const Converter& converter) {
  use(converter.to_text());
  use(std::to_string(converter.plan().result_bytes));
  load_and_run(converter.convert_to_model({}, small_budget()));
}

void run_file(Bytes bytes) {
  static MemoryFile file;
  file.set(bytes);
  convert_and_run(Converter::from_keras(file.path(), small_budget()));
}

/// "2,3" as a shape; an Error for what is none.
Shape parse_shape(std::string_view text) {
  Shape shape;
  while (!text.empty()) {
    int64_t size = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (problem != std::errc() || size < 0 || size > 4096 || shape.rank() == kMaxRank) {
      throw Error(ErrorCode::kInvalidArgument, "bad shape");
    }
    shape.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  if (shape.checked_elements().value_or(INT64_MAX) > 100'000) throw Error(ErrorCode::kInvalidArgument, "large shape");
  return shape;
}

/// The description, a line "%%", and a line "path shape" for each weight.
void run_config(Bytes bytes) {
  const std::string_view text = as_text(bytes);
  const size_t end = std::min(text.find(kWeightsMark), text.size());
  std::map<std::string, std::vector<KerasWeight>, std::less<>> weights;
  std::string_view lines = text.substr(std::min(text.size(), end + kWeightsMark.size()));
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    weights[std::string(line.substr(0, space))].emplace_back(
        "", DType::kFloat32, parse_shape(line.substr(space + 1)),
        [](std::span<std::byte> out) { std::fill(out.begin(), out.end(), std::byte{0x3C}); });
  }
  const auto find = [&](const std::string& path) {
    const auto it = weights.find(path);
    return it == weights.end() ? std::vector<KerasWeight>() : it->second;
  };
  convert_and_run(Converter::from_keras_config(std::string(text.substr(0, end)), find, small_budget()));
}

/// Changes the description and leaves the weights.
bool mutate_config(std::string& bytes, Random& random) {
  const size_t end = std::min(bytes.find(kWeightsMark), bytes.size());
  std::string config = bytes.substr(0, end);
  if (!mutate_json(config, random)) return false;
  bytes.replace(0, end, config);
  return true;
}

/// The weights of a model as an HDF5 file, by path.
std::string weights_file(const KerasModel& model, bool latest, hdf5::Hdf5Writer::Store store) {
  hdf5::Hdf5Writer writer(latest);
  std::map<std::string, int> count;
  for (const auto& [path, dims] : model.weights) {
    const Shape shape = parse_shape(dims);
    std::vector<uint64_t> sizes;
    for (int i = 0; i < shape.rank(); ++i) sizes.push_back(static_cast<uint64_t>(shape[i]));
    writer.floats(fmt::format("{}/vars/{}", path, count[path]++), sizes,
                  std::vector<float>(static_cast<size_t>(shape.elements()), 0.25F), store);
  }
  writer.at("vars");
  return writer.finish();
}

/// A whole-model file of Keras 2.
std::string legacy_file() {
  hdf5::Hdf5Writer writer;
  writer.text("", "model_config",
              sequential_config("[null, 2]", R"("class_name": "Dense", "config": {"name": "d", "units": 3})"));
  writer.text("", "keras_version", "2.13.0");
  writer.text("", "backend", "tensorflow");
  writer.strings("model_weights", "layer_names", {"d"});
  writer.strings("model_weights/d", "weight_names", {"d/kernel:0", "d/bias:0"});
  writer.floats("model_weights/d/d/kernel:0", {2, 3}, {1, 2, 3, 4, 5, 6});
  writer.floats("model_weights/d/d/bias:0", {3}, {0, 0, 1});
  return writer.finish();
}

std::vector<std::string> files() {
  using Store = hdf5::Hdf5Writer::Store;
  std::vector<std::string> result = {legacy_file()};
  size_t number = 0;
  for (const KerasModel& model : keras_models()) {
    if (number++ % 8 != 0) continue;
    const bool latest = number % 16 < 8;
    const auto store = static_cast<Store>(number % 4);
    const Entries entries = {{"metadata.json", R"({"keras_version": "3.8.0", "date_saved": "2026-01-01"})"},
                             {"config.json", model.config},
                             {"model.weights.h5", weights_file(model, latest, store)}};
    result.push_back(zip(entries, number % 3 == 0));
  }
  return result;
}

std::vector<std::string> configs() {
  std::vector<std::string> result;
  for (const KerasModel& model : keras_models()) {
    std::string text = model.config;
    text += kWeightsMark;
    for (const auto& [path, shape] : model.weights) text += fmt::format("{} {}\n", path, shape);
    result.push_back(std::move(text));
  }
  return result;
}

std::vector<std::string> file_words() {
  return {"PK\3\4",
          "PK\1\2",
          std::string("PK\5\6\0\0\0\0", 8),
          "config.json",
          "metadata.json",
          "OHDR",
          "model.weights.h5",
          "TREE",
          "SNOD",
          "HEAP",
          "GCOL",
          "model_config",
          "layer_names",
          "weight_names",
          "vars",
          "layers/dense"};
}

}  // namespace

Reader keras_file_reader() {
  return {.name = "keras_file",
          .run = run_file,
          .seeds = files,
          .words = file_words,
          .repair = repair_zip,
          .most_bytes = 32768};
}
Reader keras_config_reader() {
  return {.name = "keras_config",
          .run = run_config,
          .seeds = configs,
          .words = keras_words,
          .mutate = mutate_config,
          .most_bytes = 8192};
}

}  // namespace leadline::fuzz

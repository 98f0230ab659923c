// SPDX-License-Identifier: Apache-2.0
// Samples of files: arrays, folders, labels, pictures and what becomes of their values.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "io/npy.h"
#include "jobs/picture_tensor.h"
#include "jobs/sample_values.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"
#include "tests/cpp/picture_writer.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::jpeg_file;
using testing::png_file;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

class SampleFolder : public ::testing::Test {
 protected:
  SampleFolder() : folder_(::testing::TempDir() + "/samples_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~SampleFolder() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  template <typename T>
  std::string write_npy(const std::string& name, DType type, const Shape& shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return write(name, npy_header(*npy_descr(type), shape) +
                           std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  std::string folder_;
};

Model negating(DType dtype, const Shape& shape) {
  Sketch s;
  const int x = s.input("x", dtype, shape);
  s.outputs({s.compute("NEG", {x}, "y", dtype, shape)});
  if (dtype == DType::kInt8) {
    for (ir::Value& value : s.subgraph().values) {
      value.quantization.scale = {0.5F};
      value.quantization.zero_point = {0};
    }
  }
  return s.load(Budget::with_limit(64 << 20));
}

std::vector<double> values_of(const SampleTensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.shape.elements(); ++i) values.push_back(jobs::real_at(tensor, i));
  return values;
}

/// First value of the input, and the label or -1, of each sample.
std::vector<std::pair<double, int64_t>> read_all(SampleSource& source, const Model& model) {
  std::vector<std::pair<double, int64_t>> result;
  SampleReader reader(model, source);
  for_each_sample(reader, {}, [&](const Sample& sample) {
    const int64_t label = sample.targets.empty() ? -1 : jobs::integer_at(sample.targets[0], 0).value_or(-2);
    result.emplace_back(jobs::real_at(sample.inputs[0], 0), label);
  });
  EXPECT_EQ(source.size(), std::ssize(result));
  return result;
}
using Pairs = std::vector<std::pair<double, int64_t>>;

TEST_F(SampleFolder, ArraysHoldOneSampleOrManyInTheOrderOfNames) {
  write_npy<float>("b.npy", kF32, {1, 2}, {5, 6});
  write_npy<uint8_t>("a.npy", DType::kUInt8, {2, 2}, {1, 2, 3, 4});
  const Model model = negating(kF32, {1, 2});
  const int64_t before = model.budget()->used();
  model.budget()->reset_peak();
  const auto source = open_samples(folder_, model);
  EXPECT_EQ(read_all(*source, model), (Pairs{{1, -1}, {3, -1}, {5, -1}}));
  ASSERT_TRUE(source->rewind());
  EXPECT_EQ(read_all(*source, model), (Pairs{{1, -1}, {3, -1}, {5, -1}}));
  EXPECT_LE(model.budget()->peak() - before, source->peak_bytes());
  write_npy<float>("c.npy", kF32, {1, 3}, {5, 6, 7});
  EXPECT_TRUE(thrown_by([&] { open_samples(folder_, model); }).names("c.npy has shape [1, 3], input 'x' takes [1, 2]"))
      << "known before the first sample is read";
}

TEST_F(SampleFolder, LabelsComeFromArraysAndTables) {
  const std::string data = write_npy<float>("data/a.npy", kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const std::string labels = write_npy<int32_t>("labels.npy", DType::kInt32, {3}, {7, 8, 9});
  const Model model = negating(kF32, {1, 2});
  EXPECT_EQ(read_all(*open_samples(data, model, {.labels = labels}), model), (Pairs{{1, 7}, {3, 8}, {5, 9}}));
  const std::string few = write_npy<int32_t>("few.npy", DType::kInt32, {2}, {7, 8});
  EXPECT_TRUE(thrown_by([&] { open_samples(data, model, {.labels = few}); }).names("labels for 2 samples, expected 3"));
  write_npy<float>("more/one.npy", kF32, {1, 2}, {10, 0});
  write_npy<float>("more/two.npy", kF32, {1, 2}, {20, 0});
  const std::string table = write("table.csv", "file,label\r\n\"two.npy\", 4\none.npy,5\n");
  EXPECT_EQ(read_all(*open_samples(folder_ + "/more", model, {.labels = table}), model), (Pairs{{20, 4}, {10, 5}}));
  const std::string names = write("names.csv", "one.npy,dog\n");
  EXPECT_TRUE(thrown_by([&] { open_samples(folder_ + "/more", model, {.labels = names}); }).names("the label 'dog'"));
  const std::string classes = write("classes.txt", "cat\ndog\n");
  EXPECT_EQ(read_all(*open_samples(folder_ + "/more", model, {.labels = names, .classes = classes}), model),
            (Pairs{{10, 1}}));
}

TEST_F(SampleFolder, PicturesOfClassFoldersHaveTheirLabels) {
  const auto dot = [](uint16_t value) { return png_file(1, 1, {value}, {8, 0, false, {}}); };
  write("tree/cat/1.png", dot(10));
  write("tree/dog/1.png", dot(20));
  write("tree/dog/2.PNG", dot(30));
  const Model model = negating(kF32, {1, 1, 1, 1});
  EXPECT_EQ(read_all(*open_samples(folder_ + "/tree", model), model), (Pairs{{10, 0}, {20, 1}, {30, 1}}));
  write("numbers/7/1.png", dot(10));
  write("numbers/10/1.png", dot(20));
  EXPECT_EQ(read_all(*open_samples(folder_ + "/numbers", model), model), (Pairs{{20, 10}, {10, 7}}));
  write("numbers/10/2.png", "no picture");
  EXPECT_TRUE(thrown_by([&] { open_samples(folder_ + "/numbers", model); }).names("2.png: not a PNG or JPEG"));
  std::filesystem::create_directory(folder_ + "/nothing");
  EXPECT_TRUE(thrown_by([&] { open_samples(folder_ + "/nothing", model); }).names("has no .npy, .npz, .png or .jpg"));
}

TEST_F(SampleFolder, PicturesTakeTheFormOfTheInput) {
  const std::string path = write("p.png", png_file(1, 1, {10, 20, 30}));
  const auto values = [&](const Model& model, const PictureOptions& options) {
    const auto source = open_samples(path, model, {.pictures = options});
    Sample sample;
    EXPECT_TRUE(source->next(sample));
    EXPECT_LE(0, source->peak_bytes());
    return values_of(sample.inputs[0]);
  };
  using Values = std::vector<double>;
  EXPECT_EQ(values(negating(kF32, {1, 1, 1, 3}), {}), (Values{10, 20, 30}));
  EXPECT_EQ(values(negating(kF32, {1, 3, 2, 2}), {.colors = PictureOptions::Colors::kBgr}),
            (Values{30, 30, 30, 30, 20, 20, 20, 20, 10, 10, 10, 10}));
  EXPECT_EQ(values(negating(DType::kInt8, {1, 1, 1, 3}), {}), (Values{-118, -108, -98}));
  EXPECT_EQ(values(negating(kF32, {1, 1, 1, 3}), {.mean = {10}, .scale = {0.5F}}), (Values{0, 5, 10}));
  EXPECT_EQ(values(negating(kF32, {1, 1, 1, 3}), {.mean = {1, 2, 3}}), (Values{9, 18, 27}));
  EXPECT_EQ(values(negating(kF32, {1, 1, 1, 1}), {}).size(), 1U) << "grey";
  const auto refused = [&](const Shape& shape, const PictureOptions& options) {
    return thrown_by([&] { open_samples(path, negating(kF32, shape), {.pictures = options}); }).message;
  };
  EXPECT_NE(refused({1, 8}, {}).find("not the shape of a picture"), std::string::npos);
  EXPECT_NE(refused({1, 4, 4, 3}, {.height = 5}).find("takes pictures of height 4, not of 5"), std::string::npos);
  EXPECT_NE(refused({1, 4, 4, 3}, {.mean = {1, 2}}).find("2 mean values"), std::string::npos);
  EXPECT_NE(refused({1, 4, 4, 1}, {.colors = PictureOptions::Colors::kRgb}).find("not RGB"), std::string::npos);
}

/// Plain statements of both ways to resize one channel.
double bilinear(const std::vector<uint16_t>& in, int h, int w, int oh, int ow, int y, int x) {
  const auto clamp = [](double v, int size) { return std::min(std::max(v, 0.0), size - 1.0); };
  const double sy = clamp((y + 0.5) * h / oh - 0.5, h), sx = clamp((x + 0.5) * w / ow - 0.5, w);
  double sum = 0;
  for (int r = 0; r < h; ++r) {
    for (int c = 0; c < w; ++c) {
      const double weight = std::max(0.0, 1 - std::abs(r - sy)) * std::max(0.0, 1 - std::abs(c - sx));
      sum += weight * in[static_cast<size_t>(r * w + c)];
    }
  }
  return sum;
}

TEST_F(SampleFolder, ResizingIsWhatItsStatementSays) {
  std::mt19937 random(3);
  for (const auto& [h, w, oh, ow] : std::vector<std::array<int, 4>>{
           {4, 4, 4, 4}, {5, 7, 11, 3}, {1, 9, 4, 4}, {16, 16, 5, 5}, {2, 3, 31, 17}, {13, 1, 2, 6}}) {
    std::vector<uint16_t> pixels(static_cast<size_t>(h * w));
    for (uint16_t& pixel : pixels) pixel = random() % 256;
    const std::string path = write("p.png", png_file(w, h, pixels, {8, 0, false, {}}));
    const Model model = negating(kF32, {1, oh, ow, 1});
    for (const auto resize : {PictureOptions::Resize::kBilinear, PictureOptions::Resize::kNearest}) {
      const auto source = open_samples(path, model, {.pictures = {.scale = {1}, .resize = resize}});
      Sample sample;
      ASSERT_TRUE(source->next(sample));
      const std::vector<double> got = values_of(sample.inputs[0]);
      for (int y = 0; y < oh; ++y) {
        for (int x = 0; x < ow; ++x) {
          const int near_y = static_cast<int>((y + 0.5) * h / oh), near_x = static_cast<int>((x + 0.5) * w / ow);
          const double wanted = resize == PictureOptions::Resize::kBilinear
                                    ? bilinear(pixels, h, w, oh, ow, y, x)
                                    : pixels[static_cast<size_t>(near_y * w + near_x)];
          ASSERT_NEAR(got[static_cast<size_t>(y * ow + x)], wanted, 1e-3) << h << "x" << w << " at " << y << "," << x;
        }
      }
    }
  }
}

TEST_F(SampleFolder, PicturesTakeNoMoreThanTheySay) {
  std::vector<uint8_t> pixels(200 * 100 * 3, 50);
  write("a.jpg", jpeg_file(200, 100, 3, pixels, true));
  write("b.png", png_file(30, 40, std::vector<uint16_t>(30 * 40 * 3, 9)));
  const Model model = negating(kF32, {1, 32, 32, 3});
  const int64_t before = model.budget()->used();
  model.budget()->reset_peak();
  const auto source = open_samples(folder_, model, {.pictures = {.mean = {127.5F}, .scale = {1 / 127.5F}}});
  EXPECT_EQ(model.budget()->peak(), before) << "nothing is taken before the first sample";
  EXPECT_EQ(read_all(*source, model).size(), 2U);
  EXPECT_LE(model.budget()->peak() - before, source->peak_bytes());
  EXPECT_GT(model.budget()->peak() - before, source->peak_bytes() - 4096) << "and about as much";
}

}  // namespace
}  // namespace leadline

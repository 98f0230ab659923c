// SPDX-License-Identifier: Apache-2.0
// Pictures of every kind, damaged ones, and what they take.
#include "jobs/picture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "leadline/error.h"
#include "leadline/work_limit.h"
#include "tests/cpp/picture_writer.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::jpeg_file;
using testing::png_file;
using testing::PngForm;
using testing::Thrown;
using testing::thrown_by;

class Pictures : public ::testing::Test {
 protected:
  Pictures() : path_(::testing::TempDir() + "/picture_" + std::to_string(::getpid())) {}
  ~Pictures() override { std::filesystem::remove(path_); }

  std::vector<int> decoded(const std::string& file, int channels) {
    write(file);
    const Picture picture = read_picture(path_, channels, budget_);
    EXPECT_LE(picture.width * picture.height * channels, picture.pixels.bytes());
    std::vector<int> values;
    for (int64_t y = 0; y < picture.height; ++y) {
      values.insert(values.end(), picture.row(y), picture.row(y) + picture.width * channels);
    }
    return values;
  }
  Thrown refusal(const std::string& file) {
    write(file);
    return thrown_by([&] { read_picture(path_, 3, budget_); });
  }
  void write(const std::string& file) { std::ofstream(path_, std::ios::binary) << file; }

  std::string path_;
  std::shared_ptr<Budget> budget_ = Budget::with_limit(64 << 20);
};

std::vector<uint16_t> random_samples(size_t count, int bits) {
  std::mt19937 random(7);
  std::vector<uint16_t> samples(count);
  for (uint16_t& sample : samples) sample = static_cast<uint16_t>(random() & ((1U << static_cast<unsigned>(bits)) - 1));
  return samples;
}

TEST_F(Pictures, PngOfEveryKindGivesItsValues) {
  constexpr int kWidth = 13, kHeight = 11;
  for (const bool interlaced : {false, true}) {
    for (const int bits : {8, 16}) {
      for (const int type : {0, 2, 4, 6}) {
        const int parts = type == 0 ? 1 : type == 2 ? 3 : type == 4 ? 2 : 4;
        const auto samples = random_samples(kWidth * kHeight * parts, bits);
        std::vector<int> rgb;
        for (size_t i = 0; i < samples.size(); i += static_cast<size_t>(parts)) {
          for (size_t c = 0; c < 3; ++c) {
            rgb.push_back(samples[i + (parts >= 3 ? c : 0)] >> static_cast<unsigned>(bits - 8));
          }
        }
        EXPECT_EQ(decoded(png_file(kWidth, kHeight, samples, {bits, type, interlaced, {}}), 3), rgb)
            << "type " << type << " bits " << bits << " interlaced " << interlaced;
      }
    }
    for (const int bits : {1, 2, 4}) {
      const auto samples = random_samples(kWidth * kHeight, bits);
      std::vector<int> grey;
      for (const uint16_t sample : samples) grey.push_back(sample * 255 / ((1 << bits) - 1));
      EXPECT_EQ(decoded(png_file(kWidth, kHeight, samples, {bits, 0, interlaced, {}}), 1), grey);
    }
  }
  const PngForm palette{2, 3, false, {1, 2, 3, 10, 20, 30, 100, 200, 250}};
  EXPECT_EQ(decoded(png_file(2, 1, {2, 1}, palette), 3), (std::vector<int>{100, 200, 250, 10, 20, 30}));
  // 0.299 * 100 + 0.587 * 200 + 0.114 * 250 = 175.8
  EXPECT_NEAR(decoded(png_file(2, 1, {2, 1}, palette), 1)[0], 175.8, 1);
}

TEST_F(Pictures, JpegIsNearWhatWasEncoded) {
  constexpr int kWidth = 37, kHeight = 21;
  std::vector<uint8_t> rgb, grey;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      grey.push_back(static_cast<uint8_t>(x * 4 + y * 4));
      for (const int value : {x * 6, y * 11, 255 - x * 6}) rgb.push_back(static_cast<uint8_t>(value));
    }
  }
  const auto expect_near = [](const std::vector<int>& got, const std::vector<uint8_t>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 4) << i;
  };
  for (const bool progressive : {false, true}) {
    expect_near(decoded(jpeg_file(kWidth, kHeight, 3, rgb, progressive), 3), rgb);
    expect_near(decoded(jpeg_file(kWidth, kHeight, 1, grey, progressive), 1), grey);
    std::vector<uint8_t> wide;
    for (const uint8_t value : grey) wide.insert(wide.end(), 3, value);
    expect_near(decoded(jpeg_file(kWidth, kHeight, 1, grey, progressive), 3), wide);
    // Grey of colours: 0.299 R + 0.587 G + 0.114 B.
    std::vector<uint8_t> luma;
    for (size_t i = 0; i < rgb.size(); i += 3) {
      luma.push_back(static_cast<uint8_t>(0.299 * rgb[i] + 0.587 * rgb[i + 1] + 0.114 * rgb[i + 2]));
    }
    expect_near(decoded(jpeg_file(kWidth, kHeight, 3, rgb, progressive), 1), luma);
  }
}

TEST_F(Pictures, DamagedFilesAreErrors) {
  const std::string png = png_file(16, 16, random_samples(16 * 16 * 3, 8));
  std::vector<uint8_t> noise;
  for (const uint16_t sample : random_samples(64 * 64 * 3, 8)) noise.push_back(static_cast<uint8_t>(sample));
  const std::string baseline = jpeg_file(64, 64, 3, noise), progressive = jpeg_file(64, 64, 3, noise, true);
  for (const std::string& whole : {png, baseline, progressive}) {
    for (size_t size = 0; size + 20 < whole.size(); size += 1 + size / 8) {
      const Thrown thrown = refusal(whole.substr(0, size));
      EXPECT_EQ(thrown.code, ErrorCode::kIo) << size << " of " << whole.size() << ": " << thrown.message;
    }
  }
  std::string wrong_sum = png;
  wrong_sum[png.size() / 2] = static_cast<char>(wrong_sum[png.size() / 2] ^ 1);
  EXPECT_TRUE(refusal(wrong_sum).names("damaged PNG picture"));
  EXPECT_TRUE(refusal("GIF89a..................").names("not a PNG or JPEG picture"));
  EXPECT_EQ(budget_->used(), 0);
}

TEST_F(Pictures, HugeOnesAreRefusedBeforeTheyAreDecoded) {
  std::string header = "\x89PNG\r\n\x1a\n";
  // 30,000 x 30,000 pixels in 60 bytes.
  header += testing::png_chunk("IHDR", std::string("\0\0\x75\x30\0\0\x75\x30\x08\x02\0\0\0", 13));
  header += testing::png_chunk("IDAT", "") + testing::png_chunk("IEND", "");
  const Thrown thrown = refusal(header);
  EXPECT_EQ(thrown.code, ErrorCode::kBudget);
  EXPECT_EQ(budget_->peak(), 30'000 * 40 + (128 << 10)) << "only the workspace was charged before";
  std::string larger = "\x89PNG\r\n\x1a\n";
  larger += testing::png_chunk("IHDR", std::string("\0\1\x86\xA0\0\0\0\1\x08\x02\0\0\0", 13));
  EXPECT_EQ(refusal(larger).code, ErrorCode::kIo);
}

TEST_F(Pictures, TheHeaderKnowsWhatDecodingTakes) {
  std::vector<uint8_t> pixels(300 * 200 * 3, 77);
  for (const std::string& file : {png_file(300, 200, random_samples(300 * 200 * 3, 8)), jpeg_file(300, 200, 3, pixels),
                                  jpeg_file(300, 200, 3, pixels, true)}) {
    write(file);
    const PictureHeader header = read_picture_header(path_);
    EXPECT_EQ(header.width, 300);
    EXPECT_EQ(header.height, 200);
    budget_->reset_peak();
    read_picture(path_, 3, budget_);
    EXPECT_EQ(budget_->peak(), header.decode_bytes(3));
    EXPECT_EQ(budget_->used(), 0);
  }
}

TEST_F(Pictures, DecodingCanBeStopped) {
  std::vector<uint8_t> pixels(1200 * 1200 * 3, 77);
  for (const std::string& file :
       {png_file(1200, 1200, std::vector<uint16_t>(1200 * 1200 * 3)), jpeg_file(1200, 1200, 3, pixels, true)}) {
    write(file);
    int asked = 0;
    const WorkLimit limit([&] {
      if (++asked == 2) throw Error(ErrorCode::kCancelled, "enough");
    });
    EXPECT_EQ(thrown_by([&] { read_picture(path_, 3, budget_); }).message, "enough");
    EXPECT_EQ(budget_->used(), 0);
  }
}

TEST(PictureNames, EndAsPicturesDo) {
  EXPECT_TRUE(has_picture_name("a/b.png"));
  EXPECT_TRUE(has_picture_name("b.JPG"));
  EXPECT_TRUE(has_picture_name("b.Jpeg"));
  EXPECT_FALSE(has_picture_name("b.npy"));
  EXPECT_FALSE(has_picture_name("png"));
}

}  // namespace
}  // namespace leadline

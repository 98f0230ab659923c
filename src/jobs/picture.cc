// SPDX-License-Identifier: Apache-2.0
#include "jobs/picture.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>
#include <utility>

#include "core/charge.h"
#include "core/error.h"
#include "jobs/picture_decoder.h"

namespace leadline {
namespace {

constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegStart = "\xff\xd8\xff";

std::unique_ptr<PictureDecoder> open_picture(const std::string& path) {
  auto file = std::make_shared<const InputFile>(path);
  std::array<char, kPngStart.size()> start{};
  const auto read = static_cast<size_t>(std::min<int64_t>(file->size(), start.size()));
  file->read_at(0, std::as_writable_bytes(std::span(start).first(read)));
  const std::string_view text(start.data(), read);
  const bool png = text == kPngStart;
  require(png || text.starts_with(kJpegStart), ErrorCode::kIo, "{}: not a PNG or JPEG picture", path);
  std::unique_ptr<PictureDecoder> decoder = png ? open_png(std::move(file)) : open_jpeg(std::move(file));
  const PictureHeader& header = decoder->header();
  require(header.width > 0 && header.height > 0 && header.width <= kMaxPictureSide && header.height <= kMaxPictureSide,
          ErrorCode::kIo, "{}: the picture has {} x {} pixels, expected 1 to {} on each side", path, header.width,
          header.height, kMaxPictureSide);
  return decoder;
}

}  // namespace

bool has_picture_name(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string end = path.substr(dot);
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

PictureHeader read_picture_header(const std::string& path) { return open_picture(path)->header(); }

Picture read_picture(const std::string& path, int channels, const std::shared_ptr<Budget>& budget) {
  const std::unique_ptr<PictureDecoder> decoder = open_picture(path);
  const PictureHeader& header = decoder->header();
  const Charge workspace(budget, MemoryCategory::kInputsOutputs, header.decoder_bytes);
  Picture picture{header.width, header.height, channels,
                  Buffer(budget, header.width * header.height * channels, MemoryCategory::kInputsOutputs)};
  decoder->decode(channels, picture.pixels.data());
  return picture;
}

}  // namespace leadline

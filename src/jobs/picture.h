// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG pictures -> bytes, 0 to 255. Files are untrusted: sizes are known from the header, and charged, before
// anything is decoded; what the decoders say is an Error, and nothing of them jumps over a destructor. Values are those
// of the file: no colour management, no rotation by EXIF, transparency is dropped, 16 bits become the upper 8, and grey
// is 0.299 red + 0.587 green + 0.114 blue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/buffer.h"
#include "leadline/budget.h"

namespace leadline {

/// Known before anything is decoded.
struct PictureHeader {
  int64_t width = 0;
  int64_t height = 0;
  int64_t decoder_bytes = 0;  ///< the most that its decoder takes besides the pixels

  /// What decoding into `channels` takes in all.
  int64_t decode_bytes(int channels) const { return align_up(width * height * channels) + decoder_bytes; }
};

/// Rows of pixels, top row first, channels together.
struct Picture {
  int64_t width = 0;
  int64_t height = 0;
  int channels = 3;
  Buffer pixels;

  const uint8_t* row(int64_t y) const {
    return reinterpret_cast<const uint8_t*>(pixels.data()) + static_cast<size_t>(y * width * channels);
  }
};

/// Width and height that a picture may have at most: those of JPEG.
inline constexpr int64_t kMaxPictureSide = 65'535;

/// Whether a file of this name should be a picture: it ends with .png, .jpg or .jpeg, in upper or lower case.
bool has_picture_name(const std::string& path);

/// Throws Error(kIo) for what is not a picture.
PictureHeader read_picture_header(const std::string& path);

/// Decodes into 1 (grey) or 3 (RGB) channels. Throws Error(kIo) for damaged files, BudgetError.
Picture read_picture(const std::string& path, int channels, const std::shared_ptr<Budget>& budget);

/// Whether this build has decoders; the functions above throw Error(kUnsupported) where it has none.
bool has_picture_decoders() noexcept;

}  // namespace leadline

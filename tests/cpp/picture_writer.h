// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG files for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leadline::testing {

/// What a PNG file may hold.
struct PngForm {
  int bits = 8;
  int color_type = 2;  ///< 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA
  bool interlaced = false;
  std::vector<uint8_t> palette;  ///< RGB
};

/// `samples`: values of `bits` each (16 at most), one after the other for each pixel.
std::string png_file(int64_t width, int64_t height, const std::vector<uint16_t>& samples, const PngForm& form = {});

/// A chunk of a PNG file with its checksum.
std::string png_chunk(const std::string& name, const std::string& data);

/// `channels` 1 or 3, bytes of rows.
std::string jpeg_file(int width, int height, int channels, const std::vector<uint8_t>& pixels, bool progressive = false,
                      int quality = 100);

}  // namespace leadline::testing

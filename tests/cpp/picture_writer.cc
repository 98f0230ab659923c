// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/picture_writer.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <span>

// Needs stdio.h before it.
#include <jpeglib.h>

#include "io/zip.h"

namespace leadline::testing {
namespace {

std::string big_endian(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> static_cast<unsigned>(shift));
  return text;
}

/// The pixels first, first + step, ... of every row first_row, first_row + row_step, ..., packed and unfiltered.
void add_rows(std::string& out, int64_t width, int64_t height, const std::vector<uint16_t>& samples,
              const PngForm& form, int64_t parts, const int (&pass)[4]) {
  const auto [left, top, right, down] = pass;
  if (left >= width) return;
  for (int64_t y = top; y < height; y += down) {
    out += '\0';  // no filter
    unsigned bits = 0;
    int filled = 0;
    for (int64_t x = left; x < width; x += right) {
      for (int64_t part = 0; part < parts; ++part) {
        const uint16_t value = samples[static_cast<size_t>((y * width + x) * parts + part)];
        if (form.bits >= 8) {
          if (form.bits == 16) out += static_cast<char>(value >> 8U);
          out += static_cast<char>(value & 0xFFU);
          continue;
        }
        bits = (bits << static_cast<unsigned>(form.bits)) | value;
        filled += form.bits;
        if (filled == 8) {
          out += static_cast<char>(bits);
          bits = 0;
          filled = 0;
        }
      }
    }
    if (filled > 0) out += static_cast<char>(bits << static_cast<unsigned>(8 - filled));
  }
}

}  // namespace

std::string png_chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  return big_endian(static_cast<uint32_t>(data.size())) + body +
         big_endian(update_crc(0, std::as_bytes(std::span(body))));
}

std::string png_file(int64_t width, int64_t height, const std::vector<uint16_t>& samples, const PngForm& form) {
  constexpr int kParts[7] = {1, 0, 3, 1, 2, 0, 4};
  constexpr int kWhole[4] = {0, 0, 1, 1};
  constexpr int kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  const int64_t parts = kParts[form.color_type];
  std::string rows;
  if (form.interlaced) {
    for (const auto& pass : kPasses) add_rows(rows, width, height, samples, form, parts, pass);
  } else {
    add_rows(rows, width, height, samples, form, parts, kWhole);
  }
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  std::string header = big_endian(static_cast<uint32_t>(width)) + big_endian(static_cast<uint32_t>(height));
  for (const int field : {form.bits, form.color_type, 0, 0, form.interlaced ? 1 : 0})
    header += static_cast<char>(field);
  std::string file = "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header);
  if (!form.palette.empty()) file += png_chunk("PLTE", std::string(form.palette.begin(), form.palette.end()));
  return file + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

std::string jpeg_file(int width, int height, int channels, const std::vector<uint8_t>& pixels, bool progressive,
                      int quality) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  for (int i = 0; i < info.num_components; ++i) info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data()) + info.next_scanline * static_cast<size_t>(width * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return file;
}

}  // namespace leadline::testing

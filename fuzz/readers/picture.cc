// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG pictures, decoded both ways.
#include "jobs/picture.h"

#include <cstring>

#include "io/zip.h"
#include "readers/readers.h"
#include "tests/cpp/picture_writer.h"

namespace leadline::fuzz {
namespace {

void run(Bytes bytes) {
  static MemoryFile file;
  if (!has_picture_decoders()) return;
  file.set(bytes);
  const auto budget = Budget::with_limit(kBudget);
  for (const int channels : {1, 3}) {
    const Picture picture = read_picture(file.path(), channels, budget);
    use(std::string_view(reinterpret_cast<const char*>(picture.pixels.data()),
                         static_cast<size_t>(picture.width * picture.height * channels)));
  }
}

std::vector<std::string> seeds() {
  using testing::jpeg_file;
  using testing::png_file;
  std::vector<uint16_t> wide;
  std::vector<uint8_t> narrow;
  for (int i = 0; i < 12 * 9 * 4; ++i) {
    wide.push_back(static_cast<uint16_t>(i * 37 % 256));
    narrow.push_back(static_cast<uint8_t>(i * 37));
  }
  return {png_file(12, 9, wide),
          png_file(12, 9, wide, {8, 6, true, {}}),
          png_file(12, 9, wide, {16, 4, false, {}}),
          png_file(4, 4, {0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0}, {1, 3, false, {1, 2, 3, 4, 5, 6}}),
          jpeg_file(12, 9, 3, narrow, false, 60),
          jpeg_file(12, 9, 3, narrow, true, 60),
          jpeg_file(12, 9, 1, narrow, true, 60)};
}

std::vector<std::string> words() {
  return {"IHDR",     "PLTE",     "IDAT",     "IEND",     "tRNS",    "\xff\xd8\xff",
          "\xff\xc0", "\xff\xc2", "\xff\xc4", "\xff\xda", "\xff\xdd"};
}

/// Chunks of a PNG file get the checksum of what they hold now.
void repair(std::string& bytes) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8U | static_cast<uint8_t>(bytes[at + i]);
    if (size > bytes.size() - at - 12) return;
    const std::string chunk = testing::png_chunk(bytes.substr(at + 4, 4), bytes.substr(at + 8, size));
    bytes.replace(at, chunk.size(), chunk);
    at += chunk.size();
  }
}

}  // namespace

Reader picture_reader() {
  return {.name = "picture", .run = run, .seeds = seeds, .words = words, .repair = repair, .most_bytes = 2048};
}

}  // namespace leadline::fuzz

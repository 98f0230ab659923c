// SPDX-License-Identifier: Apache-2.0
// PNG by libpng. It reports errors by longjmp: what it may jump over is `guarded` and libpng's own functions, where
// nothing has a destructor. Exceptions of our callbacks are kept and thrown behind the jump.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <exception>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "jobs/picture_decoder.h"

namespace leadline {
namespace {

constexpr png_alloc_size_t kMaxChunk = 1 << 20;
// Rows in and out of up to 8 bytes for each pixel, and zlib's window.
constexpr int64_t kPngBytesPerColumn = 40;
constexpr int64_t kPngFixedBytes = 128 << 10;
constexpr png_uint_32 kPngPixelsBetweenQuestions = 1 << 20;

class PngDecoder final : public PictureDecoder {
 public:
  explicit PngDecoder(std::shared_ptr<const InputFile> file) : file_(std::move(file)) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ == nullptr) throw_out_of_memory();
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw_out_of_memory();
    }
    try {
      guarded([this] {
        png_set_read_fn(png_, this, on_read);
        png_set_user_limits(png_, kMaxPictureSide, kMaxPictureSide);
        png_set_chunk_malloc_max(png_, kMaxChunk);
        // Colours are taken as they are: what else the file says about them is not read.
        png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
        png_read_info(png_, info_);
      });
    } catch (...) {
      destroy();
      throw;
    }
    header_.width = png_get_image_width(png_, info_);
    header_.height = png_get_image_height(png_, info_);
    header_.decoder_bytes = header_.width * kPngBytesPerColumn + kPngFixedBytes;
  }
  ~PngDecoder() override { destroy(); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  const PictureHeader& header() const override { return header_; }

  void decode(int channels, std::byte* pixels) override {
    int passes = 1;
    guarded([&] {
      png_set_expand(png_);    // palettes, fewer than 8 bits
      png_set_strip_16(png_);  // more
      png_set_strip_alpha(png_);
      if (channels == 3) png_set_gray_to_rgb(png_);
      if (channels == 1 && (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0) {
        png_set_rgb_to_gray_fixed(png_, PNG_ERROR_ACTION_NONE, 29'900, 58'700);
      }
      passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    const size_t row_bytes = static_cast<size_t>(header_.width) * static_cast<size_t>(channels);
    require(png_get_rowbytes(png_, info_) == row_bytes, ErrorCode::kInternal, "{}: rows of {} bytes, expected {}",
            file_->path(), png_get_rowbytes(png_, info_), row_bytes);
    const auto height = static_cast<png_uint_32>(header_.height);
    const png_uint_32 rows =
        std::max<png_uint_32>(1, kPngPixelsBetweenQuestions / static_cast<png_uint_32>(header_.width));
    for (int pass = 0; pass < passes; ++pass) {
      for (png_uint_32 begin = 0; begin < height; begin += rows) {
        check_cancelled();
        guarded([&] {
          for (png_uint_32 y = begin; y < std::min(height, begin + rows); ++y) {
            png_read_row(png_, reinterpret_cast<png_bytep>(pixels) + y * row_bytes, nullptr);
          }
        });
      }
    }
  }

 private:
  /// Calls `step`, whose variables are references and numbers, and turns what libpng reports into exceptions.
  template <typename Step>
  void guarded(const Step& step) {
    if (!runs_through(step)) {
      if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
      if (std::strstr(message_, "emory") != nullptr) throw_out_of_memory();  // "Out of memory", "Insufficient memory"
      fail(ErrorCode::kIo, "{}: damaged PNG picture: {}", file_->path(), static_cast<const char*>(message_));
    }
  }
  template <typename Step>
  bool runs_through(const Step& step) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;  // NOLINT(cert-err52-cpp): libpng's way
    step();
    return true;
  }

  static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self->message_, text, sizeof(message_) - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}

  static void on_read(png_structp png, png_bytep out, size_t bytes) {
    if (!static_cast<PngDecoder*>(png_get_io_ptr(png))->read(out, bytes)) png_longjmp(png, 1);
  }
  bool read(png_bytep out, size_t bytes) noexcept {
    try {
      file_->read_at(offset_, {reinterpret_cast<std::byte*>(out), bytes});
      offset_ += static_cast<int64_t>(bytes);
      return true;
    } catch (...) {
      thrown_ = std::current_exception();
      return false;
    }
  }

  void destroy() { png_destroy_read_struct(&png_, &info_, nullptr); }

  std::shared_ptr<const InputFile> file_;
  PictureHeader header_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int64_t offset_ = 0;
  std::exception_ptr thrown_;  // by a callback
  char message_[128] = {};
};

}  // namespace

std::unique_ptr<PictureDecoder> open_png(std::shared_ptr<const InputFile> file) {
  return std::make_unique<PngDecoder>(std::move(file));
}

bool has_picture_decoders() noexcept { return true; }

}  // namespace leadline

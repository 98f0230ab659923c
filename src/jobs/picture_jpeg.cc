// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg-turbo. It reports errors by calling a function that must not return: ours jumps to `guarded`, over
// nothing that has a destructor. Exceptions of our callbacks are kept and thrown behind the jump.
#include <cstdio>
// Needs stdio.h before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <exception>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "jobs/picture_decoder.h"

namespace leadline {
namespace {

// Rows of blocks of up to four components, before and after they are made larger.
constexpr int64_t kJpegBytesPerColumn = 512;
constexpr int64_t kJpegFixedBytes = 256 << 10;
constexpr int kMaxScans = 100;  // cameras and encoders write about 10; thousands only cost time
constexpr JDIMENSION kJpegPixelsBetweenQuestions = 1 << 20;

class JpegDecoder final : public PictureDecoder {
 public:
  explicit JpegDecoder(std::shared_ptr<const InputFile> file) : file_(std::move(file)) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    source_.init_source = [](j_decompress_ptr) {};
    source_.fill_input_buffer = on_empty;
    source_.skip_input_data = on_skip;
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.term_source = [](j_decompress_ptr) {};
    progress_.progress_monitor = on_progress;
    try {
      guarded([this] {
        jpeg_create_decompress(&info_);
        info_.src = &source_;
        jpeg_read_header(&info_, TRUE);
      });
    } catch (...) {
      jpeg_destroy_decompress(&info_);
      throw;
    }
    info_.progress = &progress_;
    header_.width = info_.image_width;
    header_.height = info_.image_height;
    header_.decoder_bytes = header_.width * kJpegBytesPerColumn + kJpegFixedBytes + coefficient_bytes();
    info_.mem->max_memory_to_use = static_cast<long>(header_.decoder_bytes);
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  const PictureHeader& header() const override { return header_; }

  void decode(int channels, std::byte* pixels) override {
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    require(!inks, ErrorCode::kUnsupported, "{}: a JPEG picture of four inks (CMYK), expected RGB or grey",
            file_->path());
    guarded([&] {
      info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_start_decompress(&info_);
    });
    const size_t row_bytes = static_cast<size_t>(header_.width) * static_cast<size_t>(channels);
    require(info_.output_components == channels && info_.output_width == header_.width &&
                info_.output_height == header_.height,
            ErrorCode::kInternal, "{}: decoded to {} x {} x {}", file_->path(), info_.output_width, info_.output_height,
            info_.output_components);
    const JDIMENSION rows = std::max<JDIMENSION>(1, kJpegPixelsBetweenQuestions / info_.output_width);
    for (JDIMENSION end = 0; end < info_.output_height;) {
      check_cancelled();
      end = std::min(info_.output_height, end + rows);
      guarded([&] {
        while (info_.output_scanline < end) {
          JSAMPROW row = reinterpret_cast<JSAMPROW>(pixels) + info_.output_scanline * row_bytes;
          jpeg_read_scanlines(&info_, &row, 1);
        }
      });
    }
  }

 private:
  /// All coefficients are held where a picture comes in several scans.
  int64_t coefficient_bytes() const {
    if (jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&info_)) == 0) return 0;
    int64_t bytes = 0;
    const auto round_up = [](int64_t value, int64_t to) { return (value + to - 1) / to * to; };
    for (int i = 0; i < info_.num_components; ++i) {
      const jpeg_component_info& part = info_.comp_info[i];
      bytes += round_up(part.width_in_blocks, part.h_samp_factor) *
               round_up(part.height_in_blocks, part.v_samp_factor) * static_cast<int64_t>(sizeof(JBLOCK));
    }
    return bytes;
  }

  template <typename Step>
  void guarded(const Step& step) {
    if (!runs_through(step)) {
      if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
      if (errors_.msg_code == JERR_OUT_OF_MEMORY) throw_out_of_memory();
      fail(ErrorCode::kIo, "{}: damaged JPEG picture: {}", file_->path(), static_cast<const char*>(message_));
    }
  }
  template <typename Step>
  bool runs_through(const Step& step) {
    if (setjmp(jump_) != 0) return false;  // NOLINT(cert-err52-cpp): libjpeg's way
    step();
    return true;
  }

  static JpegDecoder& of(j_common_ptr info) { return *static_cast<JpegDecoder*>(info->client_data); }

  static void on_error(j_common_ptr info) {
    JpegDecoder& self = of(info);
    info->err->format_message(info, static_cast<char*>(self.message_));
    std::longjmp(self.jump_, 1);  // NOLINT(cert-err52-cpp): libjpeg's way
  }
  static void on_message(j_common_ptr, int) {}

  /// Whether the work may continue: neither a limit nor the number of scans speaks against it.
  static void on_progress(j_common_ptr info) {
    JpegDecoder& self = of(info);
    if (self.info_.input_scan_number > kMaxScans) {
      std::snprintf(static_cast<char*>(self.message_), sizeof(message_), "more than %d scans", kMaxScans);
    } else if (self.may_continue()) {
      return;
    }
    std::longjmp(self.jump_, 1);  // NOLINT(cert-err52-cpp): libjpeg's way
  }
  bool may_continue() noexcept {
    try {
      check_cancelled();
      return true;
    } catch (...) {
      thrown_ = std::current_exception();
      return false;
    }
  }

  static boolean on_empty(j_decompress_ptr info) {
    JpegDecoder& self = of(reinterpret_cast<j_common_ptr>(info));
    if (!self.fill()) std::longjmp(self.jump_, 1);  // NOLINT(cert-err52-cpp): libjpeg's way
    return TRUE;
  }
  bool fill() noexcept {
    try {
      const int64_t left = file_->size() - offset_;
      require(left > 0, ErrorCode::kIo, "{}: the JPEG picture is cut off", file_->path());
      const auto bytes = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(buffer_.size())));
      file_->read_at(offset_, {reinterpret_cast<std::byte*>(buffer_.data()), bytes});
      offset_ += static_cast<int64_t>(bytes);
      source_.next_input_byte = buffer_.data();
      source_.bytes_in_buffer = bytes;
      return true;
    } catch (...) {
      thrown_ = std::current_exception();
      return false;
    }
  }

  static void on_skip(j_decompress_ptr info, long bytes) {
    if (bytes <= 0) return;
    JpegDecoder& self = of(reinterpret_cast<j_common_ptr>(info));
    const auto here = std::min(static_cast<size_t>(bytes), self.source_.bytes_in_buffer);
    self.source_.next_input_byte += here;
    self.source_.bytes_in_buffer -= here;
    self.offset_ += bytes - static_cast<int64_t>(here);
  }

  std::shared_ptr<const InputFile> file_;
  PictureHeader header_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  int64_t offset_ = 0;
  std::array<JOCTET, 16384> buffer_{};
  std::exception_ptr thrown_;  // by a callback
  char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

std::unique_ptr<PictureDecoder> open_jpeg(std::shared_ptr<const InputFile> file) {
  return std::make_unique<JpegDecoder>(std::move(file));
}

}  // namespace leadline

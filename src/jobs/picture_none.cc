// SPDX-License-Identifier: Apache-2.0
// For builds without libpng and libjpeg.
#include "core/error.h"
#include "jobs/picture_decoder.h"

namespace leadline {
namespace {

[[noreturn]] void refuse(const InputFile& file) {
  fail(ErrorCode::kUnsupported,
       "{}: this build of Leadline has no decoders for pictures; install libpng and libjpeg-turbo and build it again, "
       "or save the pictures as .npy files",
       file.path());
}

}  // namespace

std::unique_ptr<PictureDecoder> open_png(std::shared_ptr<const InputFile> file) { refuse(*file); }
std::unique_ptr<PictureDecoder> open_jpeg(std::shared_ptr<const InputFile> file) { refuse(*file); }
bool has_picture_decoders() noexcept { return false; }

}  // namespace leadline

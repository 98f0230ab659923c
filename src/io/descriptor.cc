// SPDX-License-Identifier: Apache-2.0
#include "io/descriptor.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace leadline {
namespace {

Descriptor above_standard(Descriptor descriptor) {
  if (descriptor.get() > 2) return descriptor;
  return Descriptor(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  require(pipe2(ends, O_CLOEXEC) == 0, ErrorCode::kIo, "cannot make a pipe: {}", std::strerror(errno));
  Pipe result{above_standard(Descriptor(ends[0])), above_standard(Descriptor(ends[1]))};
  require(result.reading && result.writing, ErrorCode::kIo, "cannot make a pipe: {}", std::strerror(errno));
  return result;
}

}  // namespace leadline

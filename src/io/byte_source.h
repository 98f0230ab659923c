// SPDX-License-Identifier: Apache-2.0
// Streams of bytes of known length, read from front to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "io/input_file.h"

namespace leadline {

/// A stream of bytes of known length, read from front to end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `out`. Throws Error(kIo) when the stream ends before or is damaged.
  virtual void read(std::span<std::byte> out) = 0;
  /// Bytes not read yet.
  virtual int64_t remaining() const = 0;
};

/// `size` bytes of the file from `offset`; the range must lie inside the file.
std::unique_ptr<ByteSource> file_source(std::shared_ptr<const RandomAccess> file, int64_t offset, int64_t size);

}  // namespace leadline

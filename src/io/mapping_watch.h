// SPDX-License-Identifier: Apache-2.0
// Mapped files that others may cut off. Reading a page of a mapping that the file no longer has, or that cannot be read
// from its disk, raises SIGBUS, which ends the process. In mappings that are registered here it is answered instead:
// zeros take the place of the rest of the mapping, and the mapping is marked. Code that used it has to look at the mark
// before a result leaves. What is written to a mapping that was cut off is lost.
#pragma once

#include <csignal>
#include <cstddef>

namespace leadline {

class MappingWatch {
 public:
  /// Installs the handler of SIGBUS with the first one; other handlers keep getting what is not ours.
  /// `address` is that of a page. Throws std::bad_alloc.
  MappingWatch(const void* address, size_t bytes, bool writable = false);
  /// Before the memory is unmapped.
  ~MappingWatch();
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

  /// Whether zeros stand for what could not be read.
  bool damaged() const noexcept;

  struct Entry;

 private:
  Entry* entry_;
};

/// For handlers of SIGBUS that come before ours: true when the fault was in a mapping and the program can continue.
/// Async-signal-safe.
bool repair_mapping(const siginfo_t* info) noexcept;

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
// File descriptors with an owner, and pipes.
#pragma once

#include <unistd.h>

#include <utility>

namespace leadline {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  /// Hands the descriptor over to the caller.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};

/// Both ends are closed by exec and lie above the standard descriptors, so that dup2 onto those overwrites neither.
/// Throws Error(kIo).
Pipe make_pipe();

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
#include "core/forks.h"

#include <pthread.h>

#include <atomic>

#include "core/error.h"

namespace leadline {
namespace {

std::atomic<uint32_t> forks{0};

}  // namespace

uint32_t fork_count() {
  static const int watching = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  require(watching == 0, ErrorCode::kRuntime, "the system refused to register a fork handler (error {})", watching);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
// Charged memory: small blocks from the heap, large ones mapped, so that freeing them returns the pages.
#include "core/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "core/error.h"

namespace leadline {
namespace {

// Below this a system call and its page faults cost more than memset; above it pages should go back at once.
constexpr int64_t kMapFrom = int64_t{256} << 10;

/// Zeroed memory, or null when the system refuses.
std::byte* allocate(int64_t bytes) noexcept {
  const auto size = static_cast<size_t>(bytes);
  if (bytes >= kMapFrom) {
    void* const block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
  }
  void* const block = ::operator new(size, std::align_val_t{kAlignment}, std::nothrow);
  if (block != nullptr) std::memset(block, 0, size);
  return static_cast<std::byte*>(block);
}

/// Advises the system that all of a mapped block will be used. In a virtual machine the first touch of a page can cost
/// 2 us, several times what is done with it; that is a third of the time to a first result. Only hints: where the
/// system does not take them, pages come one by one.
void expect_use(std::byte* block, int64_t bytes, MemoryCategory category) noexcept {
  if (bytes < kMapFrom || (category != MemoryCategory::kPackedWeights && category != MemoryCategory::kArena)) return;
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const auto end = begin + static_cast<uintptr_t>(bytes);
  const uintptr_t first = std::min(end, (begin + kHuge - 1) / kHuge * kHuge);
  const uintptr_t last = std::max(first, end / kHuge * kHuge);
  if (first < last) madvise(block + (first - begin), last - first, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  // Packed weights are written at once; of an arena, what is left of whole huge pages may wait.
  if (category != MemoryCategory::kPackedWeights) return;
  if (begin < first) madvise(block, first - begin, MADV_POPULATE_WRITE);
  if (last < end) madvise(block + (last - begin), end - last, MADV_POPULATE_WRITE);
#endif
}

void deallocate(std::byte* block, int64_t bytes) noexcept {
  if (bytes >= kMapFrom) {
    munmap(block, static_cast<size_t>(bytes));
  } else {
    ::operator delete(block, std::align_val_t{kAlignment});
  }
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Budget> budget, int64_t bytes, MemoryCategory category) : category_(category) {
  require(budget != nullptr, ErrorCode::kInvalidArgument, "a buffer needs a budget");
  require(bytes >= 0, ErrorCode::kInvalidArgument, "a buffer cannot have {} bytes", bytes);
  if (bytes == 0) return;
  // What cannot be rounded up is far above what any system has; charging it says so with the right numbers.
  const bool representable = bytes <= std::numeric_limits<int64_t>::max() - kAlignment;
  const int64_t charged = representable ? align_up(bytes) : bytes;
  budget->charge(charged, category);
  data_ = representable ? allocate(charged) : nullptr;
  if (data_ == nullptr) {
    budget->release(charged, category);
    throw BudgetError(
        fmt::format("the system refused {} for {}, although the budget of {} allows it", budget->format(charged),
                    memory_category_name(category), budget->format(budget->limit())),
        charged, budget->limit());
  }
  expect_use(data_, charged, category);
  budget_ = std::move(budget);
  bytes_ = charged;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  deallocate(data_, bytes_);
  budget_->release(bytes_, category_);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(category_, other.category_);
}

}  // namespace leadline

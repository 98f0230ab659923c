// SPDX-License-Identifier: Apache-2.0
// Invariant: the list of entries only grows, and what it holds stays where it is, so that a signal handler can walk it
// at any time; free entries have no bytes and are used again.
#include "io/mapping_watch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

namespace leadline {

struct MappingWatch::Entry {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;  // of its last page; 0: free
  std::atomic<bool> damaged = false;
  std::atomic<bool> writable = false;
  Entry* next = nullptr;
};

namespace {

std::atomic<MappingWatch::Entry*> entries = nullptr;
std::mutex entries_mutex;  // for those who change the list
struct sigaction previous{};
bool installed = false;

uintptr_t page_bytes() {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}
uintptr_t page_mask = 0;  // for the handler, which must not run an initializer

void hand_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // As if we were not here: the instruction faults again. A signal that somebody sent comes again by itself.
    sigaction(signal, &previous, nullptr);
    if (info->si_code <= 0) raise(signal);
  }
}

extern "C" void leadline_on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  if (!repair_mapping(info)) hand_on(signal, info, context);
  errno = saved;
}

void install() {
  if (installed) return;
  page_mask = ~(page_bytes() - 1);
  sigaction(SIGBUS, nullptr, &previous);
  struct sigaction action{};
  action.sa_sigaction = &leadline_on_bus_error;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  installed = sigaction(SIGBUS, &action, nullptr) == 0;
}

}  // namespace

MappingWatch::MappingWatch(const void* address, size_t bytes, bool writable) {
  const std::lock_guard lock(entries_mutex);
  install();
  Entry* entry = entries.load(std::memory_order_relaxed);
  while (entry != nullptr && entry->end.load(std::memory_order_relaxed) != 0) entry = entry->next;
  if (entry == nullptr) {
    entry = new Entry;  // for ever: see the invariant
    entry->next = entries.load(std::memory_order_relaxed);
    entries.store(entry, std::memory_order_release);
  }
  const auto begin = reinterpret_cast<uintptr_t>(address);
  entry->damaged.store(false, std::memory_order_relaxed);
  entry->writable.store(writable, std::memory_order_relaxed);
  entry->begin.store(begin, std::memory_order_relaxed);
  entry->end.store((begin + bytes + page_bytes() - 1) & page_mask, std::memory_order_release);
  entry_ = entry;
}

MappingWatch::~MappingWatch() {
  const std::lock_guard lock(entries_mutex);
  entry_->end.store(0, std::memory_order_release);
}

bool MappingWatch::damaged() const noexcept { return entry_->damaged.load(std::memory_order_acquire); }

bool repair_mapping(const siginfo_t* info) noexcept {
  if (info->si_code <= 0) return false;  // sent by a process
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (MappingWatch::Entry* entry = entries.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
    const uintptr_t end = entry->end.load(std::memory_order_acquire);
    if (address >= end || address < entry->begin.load(std::memory_order_relaxed)) continue;
    // Marked first: another thread may read zeros as soon as they are there.
    entry->damaged.store(true, std::memory_order_release);
    const uintptr_t page = address & page_mask;
    const int access = entry->writable.load(std::memory_order_relaxed) ? PROT_READ | PROT_WRITE : PROT_READ;
    return mmap(reinterpret_cast<void*>(page), end - page, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
  }
  return false;
}

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
#include "readers/reader.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <typeinfo>

#include "leadline/error.h"

namespace leadline::fuzz {
namespace {

[[noreturn]] void report(const Reader& reader, const char* type, const char* what) {
  std::fputs(fmt::format("finding: {} threw {}: {}\n", reader.name, type, what).c_str(), stderr);
  std::abort();
}

}  // namespace

std::string run_one(const Reader& reader, Bytes bytes) {
  try {
    reader.run(bytes);
    return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) report(reader, "an internal error", error.what());
    return error.what();
  } catch (const std::exception& error) {
    report(reader, typeid(error).name(), error.what());
  } catch (...) {
    report(reader, "something", "that is not an exception");
  }
}

std::shared_ptr<Budget> small_budget() { return Budget::with_limit(kBudget); }

void use(std::string_view text) {
  static volatile unsigned sink = 0;
  sink = std::accumulate(text.begin(), text.end(), sink + 0U,
                         [](unsigned sum, char c) { return sum * 31U + static_cast<unsigned char>(c); });
}

MemoryFile::MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (descriptor_ < 0) std::abort();
  path_ = fmt::format("/proc/self/fd/{}", descriptor_);
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

void MemoryFile::set(Bytes bytes) {
  if (::ftruncate(descriptor_, 0) != 0) std::abort();
  if (::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
}

}  // namespace leadline::fuzz

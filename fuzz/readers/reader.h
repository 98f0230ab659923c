// SPDX-License-Identifier: Apache-2.0
// A reader of unchecked bytes, as the fuzzers see it. The same readers run in two programs: one that
// replays seeds and mutants of them (replay.cc, part of the tests), one that libFuzzer guides (libfuzzer.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leadline/budget.h"
#include "readers/structured.h"

namespace leadline::fuzz {

using Bytes = std::span<const std::byte>;

struct Reader {
  std::string_view name;
  /// Reads the bytes and uses what they gave. Throws Error for bytes that are wrong; anything else is a finding.
  void (*run)(Bytes bytes) = nullptr;
  /// Inputs that are right, made by code.
  std::vector<std::string> (*seeds)() = nullptr;
  /// What the format spells out: names, magic numbers.
  std::vector<std::string> (*words)() = nullptr;
  /// Makes checksums right again, so that mutants get behind them; null: the format has none.
  void (*repair)(std::string& bytes) = nullptr;
  /// Changes the meaning and keeps the form; false when the bytes have no form. Null: the format has none to keep.
  bool (*mutate)(std::string& bytes, Random& random) = nullptr;
  size_t most_bytes = 4096;  ///< of a mutant
};

std::span<const Reader> readers();
/// Null: there is no such reader.
const Reader* find_reader(std::string_view name);

/// One input; what is wrong with it, or empty text. Lets nothing out: an exception that is not an Error, or is one of
/// kInternal, ends the process with a message.
std::string run_one(const Reader& reader, Bytes bytes);

/// What one input may take.
inline constexpr int64_t kBudget = 8 << 20;
std::shared_ptr<Budget> small_budget();

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline std::string as_string(Bytes bytes) { return std::string(as_text(bytes)); }

/// Makes the compiler compute what is not needed.
void use(std::string_view text);

/// A file in memory for readers that want a path.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  /// Replaces the contents.
  void set(Bytes bytes);
  const std::string& path() const { return path_; }

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace leadline::fuzz

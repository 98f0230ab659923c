// SPDX-License-Identifier: Apache-2.0
// Accounted memory: every allocation that grows with a model or its data is charged to a Budget.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace leadline {

/// What a piece of memory is for. The order is that of reports.
enum class MemoryCategory : uint8_t {
  kModelFile,      ///< the mapped (or handed over) model file
  kGraph,          ///< nodes, values, names, attributes
  kPackedWeights,  ///< weights in the layout of a fast kernel
  kArena,          ///< intermediate tensors, sharing one block
  kScratch,        ///< a kernel's own workspace, where it makes the arena larger
  kInputsOutputs,  ///< tensors the caller reads and writes
  kVariables,      ///< state kept between runs
  kStatistics,     ///< calibration, profiling and debugging data
};
inline constexpr int kMemoryCategoryCount = 8;

/// "model file", "packed weights", ...
const char* memory_category_name(MemoryCategory category) noexcept;

/// The unit family of sizes as text: a limit given as "200MB" is answered in MB, one given as "200MiB" in MiB.
enum class ByteUnits : uint8_t {
  kBinary,   ///< powers of 1024: KiB, MiB, GiB, ...
  kDecimal,  ///< powers of 1000: KB, MB, GB, ...
};

/// A limit in bytes and the count of what is charged to it. Budgets form a chain: what is charged to
/// a child is charged to its parents too, so one job's count and the process's limit are both kept.
/// Thread-safe. Budgets outlive what is charged to them (holders keep a shared_ptr).
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  /// A budget of `limit` bytes. Throws Error(kInvalidArgument) when `limit` is negative.
  static std::shared_ptr<Budget> with_limit(int64_t limit, ByteUnits units = ByteUnits::kBinary);

  /// A budget of what parse_bytes() reads, in the units of `text`.
  static std::shared_ptr<Budget> with_limit(std::string_view text);

  /// A budget of 90 % of what cgroup v2/v1, RLIMIT_AS, RLIMIT_DATA and MemAvailable leave now, or
  /// what the environment variable LEADLINE_MEMORY says ("200MB", "1.5GiB", "50%").
  static std::shared_ptr<Budget> machine_default();

  /// A budget with its own counts and no limit of its own, charged to this one too.
  std::shared_ptr<Budget> child();

  /// Charges `bytes` to this budget and all its parents, or throws BudgetError and charges nothing. The
  /// error says what would have been charged in all, the limit it passes and what is charged now.
  void charge(int64_t bytes, MemoryCategory category);
  /// Returns what was charged; more than that is ignored. Never throws.
  void release(int64_t bytes, MemoryCategory category) noexcept;

  /// Counts bytes that someone else is charged for, such as weights shared with other interpreters: used() and peak()
  /// of this budget include them, its parents do not. Negative bytes take back.
  void count_shared(int64_t bytes, MemoryCategory category) noexcept;

  /// The limit in force: the smallest along the chain.
  int64_t limit() const;
  /// The units of the limit in force: texts about what is charged to this budget use them.
  ByteUnits units() const;
  /// `bytes` in these units.
  std::string format(int64_t bytes) const;
  /// Bytes that can still be charged.
  int64_t available() const;
  /// Bytes charged now, and the most that were charged at one time.
  int64_t used() const;
  int64_t peak() const;
  int64_t used(MemoryCategory category) const;
  /// Starts a new measurement: peak = used.
  void reset_peak();

 private:
  Budget(int64_t limit, ByteUnits units, std::shared_ptr<Budget> parent);
  struct Refusal;
  bool try_charge(int64_t bytes, MemoryCategory category, Refusal* refusal);

  mutable std::mutex mutex_;
  const int64_t limit_;
  const ByteUnits units_;
  const std::shared_ptr<Budget> parent_;
  int64_t used_ = 0;
  int64_t peak_ = 0;
  std::array<int64_t, kMemoryCategoryCount> by_category_{};
};

/// used() of all budgets of this process together, each byte once: those without a parent are summed. Never blocks.
int64_t accounted_bytes() noexcept;

/// Reads "4096", "200MB", "1.5GiB", "50%" (of the memory available now). KB, MB, GB, TB are powers of
/// 1000; KiB, MiB, GiB, TiB and the short K, M, G, T powers of 1024; upper or lower case.
/// Throws Error(kInvalidArgument) with the accepted forms otherwise.
int64_t parse_bytes(std::string_view text);

/// The unit family of a text that parse_bytes() reads: kDecimal for KB, MB, GB and TB, else kBinary. Never throws.
ByteUnits byte_units(std::string_view text) noexcept;

/// "1.2 GiB", "512 KiB", "17 B"; kDecimal: "1.3 GB", "524.3 KB", "17 B".
std::string format_bytes(int64_t bytes, ByteUnits units = ByteUnits::kBinary);

/// What the machine and its limits leave to this process now, each in bytes; -1 where there is none.
struct MemoryLimits {
  int64_t machine_available = -1;  ///< MemAvailable of /proc/meminfo
  int64_t cgroup_available = -1;   ///< limit - usage of cgroup v2 or v1, reclaimable file pages not counted
  int64_t rlimit_as = -1;          ///< RLIMIT_AS - address space in use
  int64_t rlimit_data = -1;        ///< RLIMIT_DATA - data in use
  /// The smallest of those that exist; the maximum of int64 when none does.
  int64_t available() const noexcept;
};
MemoryLimits read_memory_limits();

}  // namespace leadline

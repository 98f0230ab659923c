// SPDX-License-Identifier: Apache-2.0
// The chain of budgets, and byte counts as text.
// Invariant: a charge holds the locks of the whole chain, child before parent, so that it is seen by all or by none.
#include "leadline/budget.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"

namespace leadline {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

constexpr std::array<const char*, kMemoryCategoryCount> kCategoryNames = {
    "model file", "graph", "packed weights", "arena", "scratch", "inputs/outputs", "variables", "statistics"};

size_t index_of(MemoryCategory category) noexcept {
  return std::min(static_cast<size_t>(category), static_cast<size_t>(kMemoryCategoryCount - 1));
}

/// Follows used() of every budget without a parent.
std::atomic<int64_t> accounted_in_process = 0;

int64_t add_saturated(int64_t a, int64_t b) noexcept { return a > kNoLimit - b ? kNoLimit : a + b; }

}  // namespace

const char* memory_category_name(MemoryCategory category) noexcept {
  const auto index = static_cast<size_t>(category);
  return index < kCategoryNames.size() ? kCategoryNames[index] : "unknown";
}

/// The state, at the moment of the refusal, of the budget that had no room.
struct Budget::Refusal {
  int64_t limit = 0;
  ByteUnits units = ByteUnits::kBinary;
  int64_t used = 0;
  std::array<int64_t, kMemoryCategoryCount> by_category{};

  BudgetError error(int64_t bytes, MemoryCategory category) const {
    const int64_t left = limit - used;
    const auto text = [this](int64_t size) { return format_bytes(size, units); };
    std::string message = fmt::format("{}: {} more needed, {} of the budget of {} available",
                                      memory_category_name(category), text(bytes), text(left), text(limit));
    if (text(bytes) == text(left)) message += fmt::format(" ({} bytes against {})", bytes, left);
    if (used > 0) message += "; in use:";
    for (size_t i = 0; i < by_category.size(); ++i) {
      if (by_category[i] > 0) message += fmt::format("\n  {:<16}{:>10}", kCategoryNames[i], text(by_category[i]));
    }
    return {message, add_saturated(used, bytes), limit};
  }
};

Budget::Budget(int64_t limit, ByteUnits units, std::shared_ptr<Budget> parent)
    : limit_(limit), units_(units), parent_(std::move(parent)) {}

std::shared_ptr<Budget> Budget::with_limit(int64_t limit, ByteUnits units) {
  require(limit >= 0, ErrorCode::kInvalidArgument, "the limit of a budget cannot be negative, got {}", limit);
  return {new Budget(limit, units, nullptr), [](const Budget* budget) {
            accounted_in_process -= budget->used_;  // what was never released
            delete budget;
          }};
}

std::shared_ptr<Budget> Budget::with_limit(std::string_view text) {
  return with_limit(parse_bytes(text), byte_units(text));
}

std::shared_ptr<Budget> Budget::child() {
  return std::shared_ptr<Budget>(new Budget(kNoLimit, units_, shared_from_this()));
}

void Budget::charge(int64_t bytes, MemoryCategory category) {
  require(bytes >= 0, ErrorCode::kInvalidArgument, "cannot charge {} bytes", bytes);
  Refusal refusal;
  if (!try_charge(bytes, category, &refusal)) throw refusal.error(bytes, category);
}

bool Budget::try_charge(int64_t bytes, MemoryCategory category, Refusal* refusal) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_ - used_) {
    *refusal = {limit_, units_, used_, by_category_};
    return false;
  }
  if (parent_ && !parent_->try_charge(bytes, category, refusal)) return false;
  used_ += bytes;
  by_category_[index_of(category)] += bytes;
  peak_ = std::max(peak_, used_);
  if (!parent_) accounted_in_process += bytes;
  return true;
}

void Budget::release(int64_t bytes, MemoryCategory category) noexcept {
  const std::lock_guard lock(mutex_);
  int64_t& charged = by_category_[index_of(category)];
  const int64_t given_back = std::clamp<int64_t>(bytes, 0, charged);
  charged -= given_back;
  used_ -= given_back;
  if (parent_) {
    parent_->release(given_back, category);
  } else {
    accounted_in_process -= given_back;
  }
}

void Budget::count_shared(int64_t bytes, MemoryCategory category) noexcept {
  const std::lock_guard lock(mutex_);
  used_ += bytes;
  by_category_[index_of(category)] += bytes;
  peak_ = std::max(peak_, used_);
  if (!parent_) accounted_in_process += bytes;
}

int64_t Budget::limit() const { return parent_ ? std::min(limit_, parent_->limit()) : limit_; }

ByteUnits Budget::units() const { return parent_ && parent_->limit() <= limit_ ? parent_->units() : units_; }

std::string Budget::format(int64_t bytes) const { return format_bytes(bytes, units()); }

int64_t Budget::available() const {
  const std::lock_guard lock(mutex_);
  const int64_t own = limit_ - used_;
  return parent_ ? std::min(own, parent_->available()) : own;
}

int64_t Budget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

int64_t Budget::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

int64_t Budget::used(MemoryCategory category) const {
  const std::lock_guard lock(mutex_);
  return by_category_[index_of(category)];
}

void Budget::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = used_;
}

int64_t accounted_bytes() noexcept { return accounted_in_process; }

namespace {

struct ByteUnit {
  std::string_view name;  // upper case
  int64_t bytes;
};

constexpr ByteUnit kByteUnits[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"K", int64_t{1} << 10},
    {"M", int64_t{1} << 20},
    {"G", int64_t{1} << 30},
    {"T", int64_t{1} << 40},
    {"KIB", int64_t{1} << 10},
    {"MIB", int64_t{1} << 20},
    {"GIB", int64_t{1} << 30},
    {"TIB", int64_t{1} << 40},
};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string upper_ascii(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

/// number * unit, rounded down; nothing when `number` is malformed or the product does not fit.
std::optional<int64_t> scale_number(std::string_view number, int64_t unit) {
  const char* const end = number.data() + number.size();
  if (number.find('.') == std::string_view::npos) {
    int64_t whole = 0;
    const auto [stop, error] = std::from_chars(number.data(), end, whole);
    if (error != std::errc() || stop != end || __builtin_mul_overflow(whole, unit, &whole)) return std::nullopt;
    return whole;
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(number.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != end) return std::nullopt;
  value = std::floor(value * static_cast<double>(unit));
  if (!(value < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(value);
}

/// The text's share, 0 to 100 %, of what is available now.
std::optional<int64_t> scale_percent(std::string_view number) {
  constexpr int64_t kSteps = 1'000'000;  // per percent
  const std::optional<int64_t> share = scale_number(number, kSteps);
  if (!share || *share > 100 * kSteps) return std::nullopt;
  const int64_t available = read_memory_limits().available();
  require(available != kNoLimit, ErrorCode::kInvalidArgument,
          "cannot work out {}% of the memory: the system does not say how much is available", number);
  return static_cast<int64_t>(static_cast<long double>(available) * static_cast<long double>(*share) / (100 * kSteps));
}

}  // namespace

int64_t parse_bytes(std::string_view text) {
  const std::string_view all = trim(text);
  const size_t number_size = std::min(all.find_first_not_of("0123456789."), all.size());
  const std::string_view number = all.substr(0, number_size);
  const std::string unit = upper_ascii(trim(all.substr(number_size)));
  std::optional<int64_t> bytes;
  if (unit == "%") {
    bytes = scale_percent(number);
  } else if (const auto* found = std::ranges::find(kByteUnits, unit, &ByteUnit::name); found != std::end(kByteUnits)) {
    bytes = scale_number(number, found->bytes);
  }
  require(bytes.has_value(), ErrorCode::kInvalidArgument,
          "'{}' is not an amount of memory; write for example 4096, 200MB (or KB, GB, TB: powers of 1000), 1.5GiB "
          "(or KiB, MiB, TiB, K, M, G, T: powers of 1024), or 50% (0% to 100% of the memory available)",
          text);
  return *bytes;
}

ByteUnits byte_units(std::string_view text) noexcept {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.size() < 2 || (text.back() != 'B' && text.back() != 'b')) return ByteUnits::kBinary;
  const bool decimal = std::string_view("KMGTkmgt").find(text[text.size() - 2]) != std::string_view::npos;
  return decimal ? ByteUnits::kDecimal : ByteUnits::kBinary;
}

std::string format_bytes(int64_t bytes, ByteUnits units) {
  using Names = std::array<const char*, 7>;
  constexpr Names kBinary = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr Names kDecimal = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  const Names& names = units == ByteUnits::kDecimal ? kDecimal : kBinary;
  const double step = units == ByteUnits::kDecimal ? 1000.0 : 1024.0;
  double value = std::abs(static_cast<double>(bytes));
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0 with one decimal; the next unit says it better.
  while (unit + 1 < names.size() && value >= (unit == 0 ? step : step - 0.05)) {
    value /= step;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{}{} {}", bytes < 0 ? "-" : "", number, names[unit]);
}

}  // namespace leadline

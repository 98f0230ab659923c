// SPDX-License-Identifier: Apache-2.0
#include "leadline/budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace leadline {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr auto kArena = MemoryCategory::kArena;
constexpr auto kWeights = MemoryCategory::kPackedWeights;

/// Sets LEADLINE_MEMORY for one test.
class MemoryVariable {
 public:
  explicit MemoryVariable(const char* value) { setenv("LEADLINE_MEMORY", value, 1); }
  ~MemoryVariable() { unsetenv("LEADLINE_MEMORY"); }
};

TEST(Budget, CountsPerCategoryAndRemembersThePeak) {
  const auto budget = Budget::with_limit(1000);
  budget->charge(300, kArena);
  budget->charge(200, kWeights);
  EXPECT_EQ(budget->used(), 500);
  EXPECT_EQ(budget->available(), 500);
  EXPECT_EQ(budget->used(kArena), 300);
  EXPECT_EQ(budget->used(kWeights), 200);
  budget->release(300, kArena);
  EXPECT_EQ(budget->used(), 200);
  EXPECT_EQ(budget->peak(), 500);
  budget->reset_peak();
  EXPECT_EQ(budget->peak(), 200);
}

TEST(Budget, GivesItsLastByteAndNotOneMore) {
  const auto budget = Budget::with_limit(10);
  budget->charge(10, kArena);
  budget->charge(0, kArena);
  EXPECT_THROW(budget->charge(1, kArena), BudgetError);
  EXPECT_THROW(budget->charge(kMaxInt64, kArena), BudgetError);
  EXPECT_EQ(budget->used(), 10);
}

TEST(Budget, RefusalSaysNeededAvailableLimitAndWhatIsInUse) {
  const auto budget = Budget::with_limit(200 << 20);
  budget->charge(60 << 20, MemoryCategory::kModelFile);
  try {
    budget->charge(300 << 20, kWeights);
    FAIL() << "the charge was accepted";
  } catch (const BudgetError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudget);
    EXPECT_EQ(error.needed(), 360LL << 20);
    EXPECT_EQ(error.limit(), 200LL << 20);
    const std::string text = error.what();
    EXPECT_EQ(text,
              "packed weights: 300 MiB more needed, 140 MiB of the budget of 200 MiB available; in use:\n"
              "  model file          60 MiB");
  }
}

TEST(Budget, RefusalShowsBytesWhenTheRoundedAmountsAreEqual) {
  const auto budget = Budget::with_limit(100'000'000);
  try {
    budget->charge(100'000'001, kArena);
    FAIL() << "the charge was accepted";
  } catch (const BudgetError& error) {
    EXPECT_NE(std::string(error.what()).find("(100000001 bytes against 100000000)"), std::string::npos) << error.what();
  }
}

TEST(Budget, ChildrenAreChargedToTheirParentsToo) {
  const auto root = Budget::with_limit(1000);
  const auto first = root->child();
  const auto second = root->child()->child();
  first->charge(400, kArena);
  second->charge(500, kWeights);
  EXPECT_EQ(root->used(), 900);
  EXPECT_EQ(root->used(kWeights), 500);
  EXPECT_EQ(first->used(), 400);
  EXPECT_EQ(second->used(), 500);
  EXPECT_EQ(second->limit(), 1000);
  EXPECT_EQ(second->available(), 100);
}

TEST(Budget, RefusalByAParentLeavesNothingChargedAnywhere) {
  const auto root = Budget::with_limit(1000);
  const auto middle = root->child();
  const auto leaf = middle->child();
  EXPECT_THROW(leaf->charge(1001, kArena), BudgetError);
  for (const auto& budget : {root, middle, leaf}) {
    EXPECT_EQ(budget->used(), 0);
    EXPECT_EQ(budget->peak(), 0);
    EXPECT_EQ(budget->used(kArena), 0);
  }
}

TEST(Budget, ReleasingMoreThanWasChargedTakesNothingFromOthers) {
  const auto root = Budget::with_limit(1000);
  const auto mine = root->child();
  const auto other = root->child();
  mine->charge(100, kArena);
  other->charge(300, kArena);
  mine->release(250, kArena);
  mine->release(-5, kArena);
  mine->release(50, kWeights);
  EXPECT_EQ(mine->used(), 0);
  EXPECT_EQ(root->used(), 300);
}

TEST(Budget, RefusesNegativeAmounts) {
  EXPECT_THROW(Budget::with_limit(-1), Error);
  const auto budget = Budget::with_limit(10);
  EXPECT_THROW(budget->charge(-1, kArena), Error);
  EXPECT_EQ(budget->used(), 0);
}

TEST(Budget, ThreadsNeverTakeMoreThanTheLimitTogether) {
  constexpr int kThreads = 4;
  const auto root = Budget::with_limit(100);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto own = root->child();
      for (int round = 0; round < 2000; ++round) {
        try {
          own->charge(40, kArena);
          own->release(40, kArena);
        } catch (const BudgetError&) {
          ++refused;
        }
      }
      EXPECT_EQ(own->used(), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(root->used(), 0);
  EXPECT_LE(root->peak(), 80);
}

TEST(Budget, DefaultIsNineTenthsOfWhatIsAvailable) {
  unsetenv("LEADLINE_MEMORY");
  const auto available = static_cast<double>(read_memory_limits().available());
  // Other processes take and give back memory between the two readings.
  EXPECT_NEAR(static_cast<double>(Budget::machine_default()->limit()), 0.9 * available, 0.2 * available);
}

TEST(Budget, EnvironmentVariableSetsTheDefault) {
  const MemoryVariable variable("200MB");
  EXPECT_EQ(Budget::machine_default()->limit(), 200'000'000);
}

TEST(Budget, MalformedEnvironmentVariableIsNamedInTheError) {
  const MemoryVariable variable("plenty");
  try {
    Budget::machine_default();
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("LEADLINE_MEMORY"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("'plenty'"), std::string::npos) << error.what();
  }
}

TEST(Budget, AnswersInTheUnitsOfItsLimit) {
  const auto decimal = Budget::with_limit("200MB");
  EXPECT_EQ(decimal->limit(), 200'000'000);
  EXPECT_EQ(decimal->format(1'500'000), "1.5 MB");
  EXPECT_EQ(decimal->child()->units(), ByteUnits::kDecimal);
  try {
    decimal->child()->charge(300'000'000, kArena);
    FAIL() << "the charge was accepted";
  } catch (const BudgetError& error) {
    EXPECT_STREQ(error.what(), "arena: 300 MB more needed, 200 MB of the budget of 200 MB available");
  }
  for (const char* text : {"200MiB", "200M", "200 mib", "209715200", "200000B"}) {
    EXPECT_EQ(Budget::with_limit(text)->units(), ByteUnits::kBinary) << text;
  }
  EXPECT_EQ(Budget::with_limit(" 1.5 gb ")->units(), ByteUnits::kDecimal);
  EXPECT_EQ(Budget::with_limit("50%")->units(), ByteUnits::kBinary);
  EXPECT_EQ(Budget::with_limit(1000)->units(), ByteUnits::kBinary);
}

TEST(MemoryCategory, NamesAreReadableAndNeverNull) {
  EXPECT_STREQ(memory_category_name(MemoryCategory::kModelFile), "model file");
  EXPECT_STREQ(memory_category_name(MemoryCategory::kStatistics), "statistics");
  EXPECT_STREQ(memory_category_name(static_cast<MemoryCategory>(200)), "unknown");
}

TEST(ParseBytes, ReadsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("17B"), 17);
  EXPECT_EQ(parse_bytes("2KB"), 2000);
  EXPECT_EQ(parse_bytes("200MB"), 200'000'000);
  EXPECT_EQ(parse_bytes("3GB"), 3'000'000'000);
  EXPECT_EQ(parse_bytes("2KiB"), 2048);
  EXPECT_EQ(parse_bytes("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("1K"), 1024);
  EXPECT_EQ(parse_bytes("5M"), 5 << 20);
  EXPECT_EQ(parse_bytes("1G"), 1 << 30);
  EXPECT_EQ(parse_bytes("0"), 0);
}

TEST(ParseBytes, IgnoresCaseAndBlanks) {
  EXPECT_EQ(parse_bytes(" 200 mb "), 200'000'000);
  EXPECT_EQ(parse_bytes("1gib"), 1 << 30);
}

TEST(ParseBytes, LargestNumberIsExact) {
  EXPECT_EQ(parse_bytes("9223372036854775807"), kMaxInt64);
  EXPECT_EQ(parse_bytes("8388607TiB"), int64_t{8388607} << 40);
}

TEST(ParseBytes, PercentIsOfWhatIsAvailable) {
  const auto available = static_cast<double>(read_memory_limits().available());
  EXPECT_NEAR(static_cast<double>(parse_bytes("50%")), 0.5 * available, 0.2 * available);
  EXPECT_EQ(parse_bytes("0 %"), 0);
}

TEST(ParseBytes, RefusesWhatIsNotAnAmount) {
  for (const char* text : {"",           " ",
                           "MB",         "-1",
                           "+1",         "1e9",
                           "1.2.3",      ".",
                           "12 parsecs", "0x10",
                           "nan",        "inf",
                           "1 2",        "%",
                           "101%",       "9223372036854775808",
                           "8388608TiB", "9999999.5TiB",
                           "1EiB",       "1GB extra"}) {
    try {
      parse_bytes(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("200MB"), std::string::npos) << error.what();
    }
  }
}

TEST(FormatBytes, UsesTheLargestDecimalUnitOnDemand) {
  EXPECT_EQ(format_bytes(999, ByteUnits::kDecimal), "999 B");
  EXPECT_EQ(format_bytes(1000, ByteUnits::kDecimal), "1 KB");
  EXPECT_EQ(format_bytes(999'949, ByteUnits::kDecimal), "999.9 KB");
  EXPECT_EQ(format_bytes(999'950, ByteUnits::kDecimal), "1 MB");
  EXPECT_EQ(format_bytes(-2'500'000'000, ByteUnits::kDecimal), "-2.5 GB");
}

TEST(FormatBytes, UsesTheLargestBinaryUnitWithOneDecimal) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(512 << 10), "512 KiB");
  EXPECT_EQ(format_bytes(1'300'000'000), "1.2 GiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(format_bytes(-2048), "-2 KiB");
  EXPECT_EQ(format_bytes(kMaxInt64), "8 EiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::min()), "-8 EiB");
}

TEST(Budget, TheProcessCountsWhatAllBudgetsHold) {
  const int64_t before = accounted_bytes();
  {
    const auto first = Budget::with_limit(1000);
    const auto second = Budget::with_limit(1000);
    const auto child = first->child();
    child->charge(300, MemoryCategory::kArena);
    child->count_shared(50, MemoryCategory::kPackedWeights);
    second->charge(100, MemoryCategory::kGraph);
    EXPECT_EQ(accounted_bytes() - before, 400);
    child->release(200, MemoryCategory::kArena);
    EXPECT_EQ(accounted_bytes() - before, 200);
    EXPECT_THROW(second->charge(5000, MemoryCategory::kArena), BudgetError);
    EXPECT_EQ(accounted_bytes() - before, 200);
  }
  EXPECT_EQ(accounted_bytes(), before) << "a destroyed budget takes its charges with it";
}

}  // namespace
}  // namespace leadline

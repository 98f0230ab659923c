// SPDX-License-Identifier: Apache-2.0
// The two counts of "planned equals counted", kept together: the Ledger has what was planned, the Budget what was
// taken.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/buffer.h"
#include "runtime/ledger.h"

namespace leadline::runtime {

/// Not thread-safe.
class Accounts {
 public:
  explicit Accounts(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}

  const std::shared_ptr<Budget>& budget() const { return budget_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }

  /// Takes memory of the planned size. Throws BudgetError, and enters nothing then.
  std::shared_ptr<Buffer> take(int64_t bytes, MemoryCategory category) {
    auto memory = std::make_shared<Buffer>(budget_, bytes, category);
    ledger_.enter(align_up(bytes), category);
    return memory;
  }
  /// Others may still hold the memory. Null: nothing happens.
  void give_back(std::shared_ptr<Buffer>& memory, MemoryCategory category) {
    if (memory == nullptr) return;
    ledger_.enter(-memory->bytes(), category);
    memory.reset();
  }

  /// The same for bytes that are not in a Buffer.
  void charge(int64_t bytes, MemoryCategory category) {
    budget_->charge(bytes, category);
    ledger_.enter(bytes, category);
  }
  void release(int64_t bytes, MemoryCategory category) {
    budget_->release(bytes, category);
    ledger_.enter(-bytes, category);
  }

 private:
  std::shared_ptr<Budget> budget_;
  Ledger ledger_;
};

}  // namespace leadline::runtime

// SPDX-License-Identifier: Apache-2.0
// A loaded, verified model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/conversion_record.h"
#include "leadline/error.h"
#include "leadline/model_info.h"
#include "leadline/progress.h"
#include "leadline/types.h"

namespace leadline {
namespace runtime {
class LoadedModel;
}

/// An immutable model, shared by all its interpreters together with the weights they pack. Cheap to copy (a handle).
/// Thread-safe.
class Model {
 public:
  /// Maps the file (no copy) and verifies it. The file must not change while the model lives.
  /// `budget` is charged for the file and the graph; null means Budget::machine_default().
  /// Throws Error: kIo, kInvalidModel, kUnsupported; BudgetError.
  static Model load(const std::string& path, std::shared_ptr<Budget> budget = nullptr);

  /// The same from memory. `owner` keeps `bytes` alive; without an owner the bytes are copied.
  static Model from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr,
                          std::shared_ptr<Budget> budget = nullptr);

  const std::string& description() const;
  int subgraph_count() const;
  /// Throws Error(kInvalidArgument) when there is no such subgraph.
  SubgraphInfo subgraph(int index) const;
  /// The sparsity of a tensor; nothing for a dense one. Throws Error(kInvalidArgument) when there is no such tensor.
  std::optional<SparsityInfo> sparsity(int subgraph, int tensor) const;
  std::vector<SignatureInfo> signatures() const;
  /// Names and bytes of the metadata entries.
  std::vector<std::pair<std::string, int64_t>> metadata() const;
  /// How the file was made, where it says so.
  std::optional<ConversionRecord> conversion_record() const;
  /// Ops that cannot run now, in the order of their first use; registered custom ops can.
  std::vector<MissingOp> missing_ops() const;
  /// Bytes of the file.
  int64_t file_bytes() const;
  /// Bytes charged now for this model: its file, graph and packed weights.
  int64_t memory_bytes() const;
  /// One line per node, to be read.
  std::string to_text() const;

  /// The model as a new .tflite file, in memory.
  std::vector<std::byte> to_tflite() const;
  /// Writes that file without holding it. It replaces `path` when it is whole, by renaming; an error leaves what was
  /// there. Throws Error(kIo).
  void save(const std::string& path, const Progress& progress = {}) const;

  /// What this model is charged to.
  const std::shared_ptr<Budget>& budget() const;

  /// For Leadline's own code: what this is a handle of. Not part of the API.
  explicit Model(std::shared_ptr<const runtime::LoadedModel> loaded) : loaded_(std::move(loaded)) {}
  const std::shared_ptr<const runtime::LoadedModel>& loaded() const { return loaded_; }

 private:
  std::shared_ptr<const runtime::LoadedModel> loaded_;
};

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
#include "jobs/model_writing.h"

#include <limits>
#include <optional>
#include <utility>

#include "core/charge.h"
#include "model/writer.h"
#include "runtime/loaded_model.h"

namespace leadline::jobs {
namespace {

constexpr int64_t kSmallConstant = 16 << 10;  // shapes, axes and such, which planning looks at, are far smaller

}  // namespace

PhaseMemory writing_memory(const ir::Graph& graph) {
  const model::FileWriter writer(graph);
  return PhaseMemory()
      .add(MemoryCategory::kModelFile, writer.bytes() + writer.extra_bytes())
      .add(MemoryCategory::kGraph, ir::graph_bytes(graph));
}

Model write_model(std::unique_ptr<ir::Graph> graph, const std::shared_ptr<Budget>& budget, const Progress& progress) {
  Charge graph_charge(budget, MemoryCategory::kGraph, ir::graph_bytes(*graph));
  std::optional<model::FileWriter> writer(*graph);
  Charge extra(budget, MemoryCategory::kModelFile, writer->extra_bytes());
  const auto fill = [&](std::span<std::byte> out) {
    writer->write(out, progress);
    // The model gets a graph of its own when it is read: this one is not needed any more.
    writer.reset();
    graph.reset();
    extra.resize(0);
    graph_charge.resize(0);
  };
  return Model(runtime::LoadedModel::write(writer->bytes(), fill, budget));
}

Model outline_of(const ir::Graph& graph) {
  const model::FileWriter writer(graph);
  const auto fill = [&](std::span<std::byte> out) { writer.write_outline(out, kSmallConstant); };
  return Model(
      runtime::LoadedModel::write(writer.bytes(), fill, Budget::with_limit(std::numeric_limits<int64_t>::max())));
}

}  // namespace leadline::jobs

// SPDX-License-Identifier: Apache-2.0
// Graph -> .tflite bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "leadline/progress.h"

namespace leadline::model {

/// The size from which a flatbuffer cannot grow; positions in it must fit 31 bits.
inline constexpr int64_t kFlatbufferLimit = (int64_t{1} << 31) - 2;

/// Lays the file out, so that its exact size is known before memory is taken, then writes it. Constants that share
/// their bytes or their source share a buffer. A file beyond 2 GiB keeps its constants behind the flatbuffer, where
/// LiteRT finds them by offset and size. The graph must outlive the writer.
class FileWriter {
 public:
  /// Throws Error(kUnsupported) for what the format cannot hold. `flatbuffer_limit` is for tests.
  explicit FileWriter(const ir::Graph& graph, int64_t flatbuffer_limit = kFlatbufferLimit);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  int64_t bytes() const;
  /// Memory that write() takes besides `out`: what the hungriest source says it needs.
  int64_t extra_bytes() const;
  /// `out` has exactly bytes() bytes. Sources read straight into their place, one after another from front to back.
  void write(std::span<std::byte> out, const Progress& progress = {}) const;

  /// The same without the constants of more than `largest` bytes: `out`, which holds zeros, is not touched where they
  /// would be. What is read from it has the structure of the file, which is what plans depend on.
  void write_outline(std::span<std::byte> out, int64_t largest) const;

  /// Takes the file piece by piece, from front to back.
  using Sink = std::function<void(std::span<const std::byte> piece)>;
  /// The same without holding the file: at most one constant is in memory. Takes sink_bytes() of memory.
  void write_to(const Sink& sink, const Progress& progress = {}) const;
  int64_t sink_bytes() const;

 private:
  template <typename Target>
  void emit(Target& target, const Progress& progress) const;

  struct Layout;
  std::unique_ptr<Layout> layout_;
};

/// The whole file in memory.
std::vector<std::byte> write(const ir::Graph& graph);

}  // namespace leadline::model

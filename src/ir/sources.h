// SPDX-License-Identifier: Apache-2.0
// Sources of constants that are made from other sources. Nothing is read before the result is asked for, and each
// function says how much memory its read() takes besides the result; a chain takes the sum of its links at worst, and
// no link more than one tensor.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/constant_source.h"
#include "leadline/types.h"

namespace leadline::ir {

struct Graph;
struct Value;

using Source = std::shared_ptr<const ConstantSource>;

/// A source that says what memory its read() takes besides the result, so that a conversion can be planned.
class PlannedSource : public ConstantSource {
 public:
  virtual int64_t extra_bytes() const = 0;
};
/// The same of any source; those that do not say are taken to need nothing.
int64_t extra_bytes(const ConstantSource& source);

/// A source whose bytes lie somewhere already, such as in a mapped file.
class ViewedSource : public ConstantSource {
 public:
  /// All bytes, at any alignment, for as long as the source lives; empty when they have to be made after all. Throws.
  virtual std::span<const std::byte> view() const = 0;
  /// This part of view() was used and need not stay in memory.
  virtual void drop(std::span<const std::byte> part) const = 0;
};
/// Of a view at most this much is looked at before it is dropped.
inline constexpr int64_t kViewPiece = 16 << 20;
/// The view of any source; empty when it has none. Has all bytes otherwise.
std::span<const std::byte> view_of(const ConstantSource& source);
void drop_view(const ConstantSource& source, std::span<const std::byte> part);

/// Bytes held in memory. Extra memory: none.
Source owned_source(std::vector<std::byte> bytes);
/// Bytes that `owner` keeps alive (a mapped file, a graph's storage). Extra memory: none.
Source borrowed_source(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// Output axis i is input axis permutation[i] of a tensor of `shape`, whose elements have `element_bytes` each.
/// Transpositions of transpositions become one. Extra memory: the tensor, or a piece of a view.
Source transposed_source(Source source, const Shape& shape, std::span<const int> permutation, int64_t element_bytes);

/// A float32 tensor times factors[k] wherever its index along `axis` is k. Extra memory: none.
Source scaled_source(Source source, const Shape& shape, int axis, std::vector<float> factors);

/// The sum of float32 vectors of one length, each times a vector or a number. Extra memory: two vectors.
struct VectorTerm {
  Source vector;
  Source factor;  // null: none
  float scale = 1.0F;
};
Source combined_source(std::vector<VectorTerm> terms);

/// Elements of another type: any of float16, bfloat16, float32, float64, bool and the integers of whole bytes to any of
/// them. Values outside an integer type saturate, NaN becomes 0. Extra memory: none when the elements get wider or keep
/// their size, the wide tensor otherwise.
Source converted_source(Source source, DType from, DType to);
bool convertible(DType from, DType to);

/// A tensor of float16, bfloat16, float32 or float64 with the largest finite number of its type where it is infinite.
/// Extra memory: none.
Source finite_source(Source source, DType dtype);
/// Whether the elements hold infinities.
bool has_infinities(std::span<const std::byte> elements, DType dtype);

/// The block of `size` elements at `begin` of a tensor of `shape`. Extra memory: the tensor that is cut.
Source sliced_source(Source source, const Shape& shape, std::span<const int64_t> begin, const Shape& size,
                     int64_t element_bytes);

/// Tensors one after another along `axis`; `shapes` differ only there. Extra memory: the largest part, none along
/// axis 0.
Source concatenated_source(std::vector<Source> parts, std::vector<Shape> shapes, int axis, int64_t element_bytes);

/// The contents of a constant of `graph`, wherever they are; the source keeps them alive. Extra memory: none of its
/// own.
Source source_of(const Graph& graph, const Value& value);

/// All bytes of a source, in memory.
std::vector<std::byte> read_all(const ConstantSource& source);

}  // namespace leadline::ir

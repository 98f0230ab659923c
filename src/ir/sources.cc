// SPDX-License-Identifier: Apache-2.0
#include "ir/sources.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>

#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "ir/graph.h"

namespace leadline::ir {
namespace {

/// Memory that a read takes for a moment; not zeroed.
class Temporary {
 public:
  explicit Temporary(int64_t bytes)
      : memory_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes))), bytes_(bytes) {}
  std::byte* data() const { return memory_.get(); }
  std::span<std::byte> span() const { return {memory_.get(), static_cast<size_t>(bytes_)}; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  int64_t bytes_;
};

int64_t tensor_bytes(const Shape& shape, int64_t element_bytes) {
  const auto elements = shape.checked_elements();
  require(elements && *elements <= INT64_MAX / std::max<int64_t>(element_bytes, 1), kBadArgument,
          "a constant of shape {} does not fit into memory", shape.to_string());
  return *elements * element_bytes;
}

void require_bytes(const Source& source, const Shape& shape, int64_t element_bytes) {
  require(source != nullptr && element_bytes > 0 && source->bytes() == tensor_bytes(shape, element_bytes), kBadArgument,
          "a constant of shape {} with {} bytes per element cannot come from {} bytes", shape.to_string(),
          element_bytes, source == nullptr ? 0 : source->bytes());
}

class Borrowed final : public ConstantSource {
 public:
  Borrowed(std::span<const std::byte> data, std::shared_ptr<const void> owner)
      : data_(data), owner_(std::move(owner)) {}
  int64_t bytes() const override { return static_cast<int64_t>(data_.size()); }
  void read(std::span<std::byte> out) const override {
    if (!data_.empty()) std::memcpy(out.data(), data_.data(), data_.size());
  }

 private:
  std::span<const std::byte> data_;
  std::shared_ptr<const void> owner_;
};

/// Copies a strided block, innermost axis first; `strides` count elements of the source. Neither side need be aligned.
template <typename Element>
void gather(const std::byte* from, std::byte* to, const Shape& shape, const std::array<int64_t, kMaxRank>& strides) {
  if (shape.elements() == 0) return;
  const int last = shape.rank() - 1;
  const int64_t row = last >= 0 ? shape[last] : 1;
  const int64_t step = last >= 0 ? strides[static_cast<size_t>(last)] : 0;
  std::array<int64_t, kMaxRank> index{};
  int64_t offset = 0;
  for (;;) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(Element));
    if (step == 1) {
      std::memcpy(to, from + offset * kSize, static_cast<size_t>(row) * sizeof(Element));
    } else {
      for (int64_t i = 0; i < row; ++i) {
        std::memcpy(to + i * kSize, from + (offset + i * step) * kSize, sizeof(Element));
      }
    }
    to += row * kSize;
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      offset += strides[a];
      if (++index[a] < shape[axis]) break;
      offset -= strides[a] * shape[axis];
      index[a] = 0;
    }
    if (axis < 0) return;
  }
}

/// The same for any element size: elements of a power of two bytes as numbers, others as blocks of bytes.
void gather_bytes(const std::byte* from, std::byte* to, Shape shape, std::array<int64_t, kMaxRank> strides,
                  int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return gather<uint8_t>(from, to, shape, strides);
    case 2:
      return gather<uint16_t>(from, to, shape, strides);
    case 4:
      return gather<uint32_t>(from, to, shape, strides);
    case 8:
      return gather<uint64_t>(from, to, shape, strides);
    case 16:
      return gather<std::array<std::byte, 16>>(from, to, shape, strides);
    default:
      fail(ErrorCode::kUnsupported, "elements of {} bytes cannot be moved", element_bytes);
  }
}

std::array<int64_t, kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

/// The transpose of a matrix, in blocks that stay in the cache: a large one would otherwise miss it with every element.
/// `done` is told which bytes of `in` are not needed any more, in pieces of at least kViewPiece.
template <typename Done>
void transpose_matrix(const std::byte* in, std::byte* out, int64_t rows, int64_t columns, const Done& done) {
  constexpr int64_t kBlock = 32;
  constexpr auto kSize = static_cast<int64_t>(sizeof(uint32_t));
  int64_t kept = 0;
  PacedCheck check;
  for (int64_t top = 0; top < rows; top += kBlock) {
    const int64_t bottom = std::min(top + kBlock, rows);
    for (int64_t left = 0; left < columns; left += kBlock) {
      check.count(kBlock * kBlock);
      const int64_t right = std::min(left + kBlock, columns);
      for (int64_t column = left; column < right; ++column) {
        for (int64_t row = top; row < bottom; ++row) {
          std::memcpy(out + (column * rows + row) * kSize, in + (row * columns + column) * kSize, sizeof(uint32_t));
        }
      }
    }
    if ((bottom - kept) * columns * kSize < kViewPiece && bottom < rows) continue;
    done(std::span(in + kept * columns * kSize, static_cast<size_t>((bottom - kept) * columns * kSize)));
    kept = bottom;
  }
}

class Transposed final : public PlannedSource {
 public:
  Transposed(Source source, const Shape& shape, std::span<const int> permutation, int64_t element_bytes)
      : source_(std::move(source)),
        shape_(shape),
        permutation_(permutation.begin(), permutation.end()),
        element_bytes_(element_bytes) {
    for (int axis : permutation_) result_.push_back(shape_[axis]);
  }
  int64_t bytes() const override { return source_->bytes(); }
  int64_t extra_bytes() const override {
    if (is_rotation() && !view_of(*source_).empty()) return std::min(bytes(), kViewPiece);
    return source_->bytes() + ir::extra_bytes(*source_);
  }
  void read(std::span<std::byte> out) const override {
    if (out.empty()) return;
    const auto rotate = [&](const std::byte* original, const auto& done) {
      int64_t rows = 1;
      for (int axis = 0; axis < permutation_[0]; ++axis) rows *= shape_[axis];
      transpose_matrix(original, out.data(), rows, shape_.elements() / rows, done);
    };
    if (is_rotation()) {
      if (const std::span<const std::byte> view = view_of(*source_); !view.empty()) {
        return rotate(view.data(), [&](std::span<const std::byte> done) { drop_view(*source_, done); });
      }
    }
    const Temporary original(source_->bytes());
    source_->read(original.span());
    if (is_rotation()) return rotate(original.data(), [](std::span<const std::byte>) {});
    const auto dense = dense_strides(shape_);
    std::array<int64_t, kMaxRank> strides{};
    for (size_t i = 0; i < permutation_.size(); ++i) strides[i] = dense[static_cast<size_t>(permutation_[i])];
    gather_bytes(original.data(), out.data(), result_, strides, element_bytes_);
  }

  const Source& source() const { return source_; }
  const Shape& shape() const { return shape_; }
  const Shape& result() const { return result_; }
  const std::vector<int>& permutation() const { return permutation_; }

 private:
  /// The last axes to the front, as a whole: what kernels of Keras need.
  bool is_rotation() const {
    const int rank = shape_.rank();
    if (element_bytes_ != sizeof(uint32_t) || rank == 0) return false;
    for (int i = 0; i < rank; ++i) {
      if (permutation_[static_cast<size_t>(i)] != (permutation_[0] + i) % rank) return false;
    }
    return true;
  }

  Source source_;
  Shape shape_;
  Shape result_;
  std::vector<int> permutation_;
  int64_t element_bytes_;
};

class Scaled final : public PlannedSource {
 public:
  Scaled(Source source, const Shape& shape, int axis, std::vector<float> factors)
      : source_(std::move(source)), factors_(std::move(factors)) {
    for (int a = axis + 1; a < shape.rank(); ++a) inner_ *= shape[a];
  }
  int64_t bytes() const override { return source_->bytes(); }
  int64_t extra_bytes() const override { return ir::extra_bytes(*source_); }
  void read(std::span<std::byte> out) const override {
    source_->read(out);
    const auto channels = static_cast<int64_t>(factors_.size());
    const int64_t count = static_cast<int64_t>(out.size() / sizeof(float));
    if (count == 0) return;
    auto* values = reinterpret_cast<float*>(out.data());
    for (int64_t base = 0; base < count; base += channels * inner_) {
      for (int64_t k = 0; k < channels; ++k) {
        float* row = values + base + k * inner_;
        for (int64_t i = 0; i < inner_; ++i) row[i] *= factors_[static_cast<size_t>(k)];
      }
    }
  }

 private:
  Source source_;
  std::vector<float> factors_;
  int64_t inner_ = 1;
};

class Combined final : public PlannedSource {
 public:
  explicit Combined(std::vector<VectorTerm> terms) : terms_(std::move(terms)) {}
  int64_t bytes() const override { return terms_.front().vector->bytes(); }
  int64_t extra_bytes() const override {
    int64_t largest = 0;
    for (const VectorTerm& term : terms_) {
      largest = std::max(largest, ir::extra_bytes(*term.vector));
      if (term.factor) largest = std::max(largest, ir::extra_bytes(*term.factor));
    }
    return 2 * bytes() + largest;
  }
  void read(std::span<std::byte> out) const override {
    if (out.empty()) return;
    auto* sum = reinterpret_cast<float*>(out.data());
    const size_t count = out.size() / sizeof(float);
    const Temporary vector(bytes());
    const Temporary factor(bytes());
    const auto* v = reinterpret_cast<const float*>(vector.data());
    const auto* f = reinterpret_cast<const float*>(factor.data());
    std::memset(out.data(), 0, out.size());
    for (const VectorTerm& term : terms_) {
      term.vector->read(vector.span());
      if (term.factor) term.factor->read(factor.span());
      for (size_t i = 0; i < count; ++i) sum[i] += v[i] * (term.factor ? f[i] : 1.0F) * term.scale;
    }
  }

 private:
  std::vector<VectorTerm> terms_;
};

class Sliced final : public PlannedSource {
 public:
  Sliced(Source source, const Shape& shape, std::span<const int64_t> begin, const Shape& size, int64_t element_bytes)
      : source_(std::move(source)), shape_(shape), size_(size), element_bytes_(element_bytes) {
    const auto strides = dense_strides(shape);
    for (size_t axis = 0; axis < begin.size(); ++axis) offset_ += begin[axis] * strides[axis];
  }
  int64_t bytes() const override { return size_.elements() * element_bytes_; }
  int64_t extra_bytes() const override { return source_->bytes() + ir::extra_bytes(*source_); }
  void read(std::span<std::byte> out) const override {
    if (out.empty()) return;
    const Temporary whole(source_->bytes());
    source_->read(whole.span());
    gather_bytes(whole.data() + offset_ * element_bytes_, out.data(), size_, dense_strides(shape_), element_bytes_);
  }

 private:
  Source source_;
  Shape shape_;
  Shape size_;
  int64_t element_bytes_;
  int64_t offset_ = 0;
};

class Concatenated final : public PlannedSource {
 public:
  Concatenated(std::vector<Source> parts, const std::vector<Shape>& shapes, int axis, int64_t element_bytes)
      : parts_(std::move(parts)) {
    for (int a = 0; a < axis; ++a) rows_ *= shapes[0][a];
    for (const Shape& shape : shapes) {
      int64_t row = element_bytes;
      for (int a = axis; a < shape.rank(); ++a) row *= shape[a];
      row_bytes_.push_back(row);
      all_ += row;
    }
  }
  int64_t bytes() const override { return rows_ * all_; }
  int64_t extra_bytes() const override {
    int64_t largest = 0;
    for (const Source& part : parts_) {
      largest = std::max(largest, (rows_ == 1 ? 0 : part->bytes()) + ir::extra_bytes(*part));
    }
    return largest;
  }
  void read(std::span<std::byte> out) const override {
    int64_t at = 0;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const int64_t row = row_bytes_[p];
      if (rows_ == 1) {
        parts_[p]->read(out.subspan(static_cast<size_t>(at), static_cast<size_t>(row)));
      } else if (row > 0 && rows_ > 0) {
        const Temporary part(parts_[p]->bytes());
        parts_[p]->read(part.span());
        for (int64_t r = 0; r < rows_; ++r) {
          std::memcpy(out.data() + r * all_ + at, part.data() + r * row, static_cast<size_t>(row));
        }
      }
      at += row;
    }
  }

 private:
  std::vector<Source> parts_;
  std::vector<int64_t> row_bytes_;
  int64_t rows_ = 1;
  int64_t all_ = 0;
};

void require_permutation(const Shape& shape, std::span<const int> permutation) {
  std::vector<int> sorted(permutation.begin(), permutation.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> all(static_cast<size_t>(shape.rank()));
  std::iota(all.begin(), all.end(), 0);
  require(sorted == all, kBadArgument, "[{}] does not permute the axes of shape {}", join(permutation, ", "),
          shape.to_string());
}

}  // namespace

Source owned_source(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return borrowed_source(*owner, owner);
}

Source borrowed_source(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return std::make_shared<Borrowed>(bytes, std::move(owner));
}

Source transposed_source(Source source, const Shape& shape, std::span<const int> permutation, int64_t element_bytes) {
  require_bytes(source, shape, element_bytes);
  require_permutation(shape, permutation);
  std::vector<int> order(permutation.begin(), permutation.end());
  Shape original = shape;
  if (const auto* inner = dynamic_cast<const Transposed*>(source.get()); inner != nullptr && inner->result() == shape) {
    for (int& axis : order) axis = inner->permutation()[static_cast<size_t>(axis)];
    original = inner->shape();
    source = Source(inner->source());
  }
  if (std::is_sorted(order.begin(), order.end())) return source;
  return std::make_shared<Transposed>(std::move(source), original, order, element_bytes);
}

Source scaled_source(Source source, const Shape& shape, int axis, std::vector<float> factors) {
  require_bytes(source, shape, sizeof(float));
  require(axis >= 0 && axis < shape.rank() && static_cast<int64_t>(factors.size()) == shape[axis], kBadArgument,
          "{} factors do not go with axis {} of shape {}", factors.size(), axis, shape.to_string());
  return std::make_shared<Scaled>(std::move(source), shape, axis, std::move(factors));
}

Source combined_source(std::vector<VectorTerm> terms) {
  require(!terms.empty(), kBadArgument, "a sum of constants has no terms");
  for (const VectorTerm& term : terms) {
    require(term.vector != nullptr && term.vector->bytes() == terms[0].vector->bytes() &&
                term.vector->bytes() % static_cast<int64_t>(sizeof(float)) == 0 &&
                (!term.factor || term.factor->bytes() == term.vector->bytes()),
            kBadArgument, "the vectors of a sum of constants differ in length");
  }
  return std::make_shared<Combined>(std::move(terms));
}

Source sliced_source(Source source, const Shape& shape, std::span<const int64_t> begin, const Shape& size,
                     int64_t element_bytes) {
  require_bytes(source, shape, element_bytes);
  bool inside = static_cast<int>(begin.size()) == shape.rank() && size.rank() == shape.rank();
  for (int axis = 0; inside && axis < shape.rank(); ++axis) {
    const int64_t b = begin[static_cast<size_t>(axis)];
    inside = b >= 0 && b <= shape[axis] && size[axis] <= shape[axis] - b;
  }
  require(inside, kBadArgument, "a block of {} at [{}] is not inside {}", size.to_string(), join(begin, ", "),
          shape.to_string());
  if (size == shape) return source;
  return std::make_shared<Sliced>(std::move(source), shape, begin, size, element_bytes);
}

Source concatenated_source(std::vector<Source> parts, std::vector<Shape> shapes, int axis, int64_t element_bytes) {
  require(!parts.empty() && parts.size() == shapes.size(), kBadArgument, "{} constants with {} shapes cannot be joined",
          parts.size(), shapes.size());
  int64_t size = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    require_bytes(parts[p], shapes[p], element_bytes);
    bool same = axis >= 0 && axis < shapes[p].rank() && shapes[p].rank() == shapes[0].rank();
    for (int a = 0; same && a < shapes[0].rank(); ++a) same = a == axis || shapes[p][a] == shapes[0][a];
    require(same, kBadArgument, "constants of shapes {} and {} cannot be joined along axis {}", shapes[0].to_string(),
            shapes[p].to_string(), axis);
    require(shapes[p][axis] <= INT64_MAX - size, kBadArgument, "a joined constant does not fit into memory");
    size += shapes[p][axis];
  }
  Shape result = shapes[0];
  result.set(axis, size);
  tensor_bytes(result, element_bytes);
  if (parts.size() == 1) return parts[0];
  return std::make_shared<Concatenated>(std::move(parts), shapes, axis, element_bytes);
}

std::span<const std::byte> view_of(const ConstantSource& source) {
  const auto* viewed = dynamic_cast<const ViewedSource*>(&source);
  if (viewed == nullptr) return {};
  const std::span<const std::byte> view = viewed->view();
  require(view.empty() || static_cast<int64_t>(view.size()) == source.bytes(), ErrorCode::kInternal,
          "a source of {} bytes has a view of {}", source.bytes(), view.size());
  return view;
}

void drop_view(const ConstantSource& source, std::span<const std::byte> part) {
  if (const auto* viewed = dynamic_cast<const ViewedSource*>(&source)) viewed->drop(part);
}

int64_t extra_bytes(const ConstantSource& source) {
  const auto* planned = dynamic_cast<const PlannedSource*>(&source);
  return planned == nullptr ? 0 : planned->extra_bytes();
}

Source source_of(const Graph& graph, const Value& value) {
  if (value.source) return value.source;
  const auto inside = [&](const std::vector<std::byte>& block) {
    return value.data.data() >= block.data() && value.data.data() < block.data() + block.size();
  };
  for (const auto& block : graph.storage) {
    if (inside(*block)) return borrowed_source(value.data, block);
  }
  return borrowed_source(value.data, graph.bytes);
}

std::vector<std::byte> read_all(const ConstantSource& source) {
  std::vector<std::byte> bytes(static_cast<size_t>(source.bytes()));
  source.read(bytes);
  return bytes;
}

}  // namespace leadline::ir

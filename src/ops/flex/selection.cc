// SPDX-License-Identifier: Apache-2.0
// Flex ops that pass elements on, place them or count them: Identity and its kin, Roll, TensorScatter*, DynamicStitch,
// DynamicPartition, Bincount, Unique, segments, searches in sorted rows.
#include <algorithm>
#include <cstring>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

// Identity, StopGradient, ...: output i is input i. The inputs after them do not matter.

void infer_identity(InferContext& c) {
  node_def(c);
  c.require(c.input_count() >= c.output_count(), "it has {} inputs for {} outputs", c.input_count(), c.output_count());
  for (int i = 0; i < c.output_count(); ++i) {
    require_same_type(c, c.input(i), c.output(i));
    const bool sized = dtype_bits(c.input(i).dtype()) > 0;
    if (!sized && !c.known(i)) return c.defer();
    c.set_output_shape(i, c.input(i).shape);
    if (!sized) c.set_output_bytes(i, c.input(i).bytes);
  }
}

std::unique_ptr<Kernel> prepare_identity(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    for (int i = 0; i < run.output_count(); ++i) {
      const TensorView& out = run.output(i);
      if (out.bytes > 0 && out.data != run.input(i).data) copy_bytes(out.data, run.input(i).data, out.bytes);
    }
  });
}

/// EnsureShape(input), attribute shape.
void infer_ensure_shape(InferContext& c) {
  const NodeDefAttributes::Entry* wanted = node_def(c).find("shape");
  if (wanted != nullptr && !wanted->unknown_rank) {
    const Shape& shape = c.input(0).shape;
    bool fits = static_cast<size_t>(shape.rank()) == wanted->integers.size();
    for (int i = 0; fits && i < shape.rank(); ++i) {
      const int64_t size = wanted->integers[static_cast<size_t>(i)];
      fits = size < 0 || size == shape[i];
    }
    c.require(fits, "the input has shape {}, which is not the one that it ensures", shape.to_string());
  }
  infer_identity(c);
}

// ZerosLike, OnesLike, Size, AddN

void infer_like(InferContext& c) {
  node_def(c);
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_zeros(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    if (run.output(0).bytes > 0) fill_bytes(run.output(0).data, std::byte{0}, run.output(0).bytes);
  });
}

std::unique_ptr<Kernel> prepare_ones(PrepareContext& c) {
  return visit_number(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      T* out = run.output(0).mutable_as<T>();
      for_pieces(run.output(0).elements(), 1,
                 [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, T(1)); });
    });
  });
}

void infer_size(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  c.set_output_shape(0, {});
}

std::unique_ptr<Kernel> prepare_size(PrepareContext&) {
  return make_kernel([](RunContext& run) { put_index(run.output(0), 0, run.input(0).elements()); });
}

void infer_add_n(InferContext& c) {
  node_def(c);
  c.require(c.input_count() >= 1, "it has no inputs");
  for (int i = 0; i < c.input_count(); ++i) {
    require_same_type(c, c.input(0), c.input(i));
    c.require(c.input(i).shape == c.input(0).shape, "input {} has shape {}, expected {}", i,
              c.input(i).shape.to_string(), c.input(0).shape.to_string());
  }
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_add_n(PrepareContext& c) {
  return visit_number(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      T* out = run.output(0).mutable_as<T>();
      run.pool().for_pieces(run.output(0).elements(), run.input_count(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          auto sum = static_cast<Compute<T>>(run.input(0).as<T>()[i]);
          for (int k = 1; k < run.input_count(); ++k) {
            sum = wrapping_add(sum, static_cast<Compute<T>>(run.input(k).as<T>()[i]));
          }
          out[i] = static_cast<T>(sum);
        }
      });
    });
  });
}

// Roll(input, shift, axis)

void infer_roll(InferContext& c) {
  infer_like(c);
  require_indices(c, 1);
  require_indices(c, 2);
  c.require(c.input(1).shape.elements() == c.input(2).shape.elements(), "there are {} shifts for {} axes",
            c.input(1).shape.elements(), c.input(2).shape.elements());
}

std::unique_ptr<Kernel> prepare_roll(PrepareContext& c) {
  const int64_t bytes = element_bytes(c.input(0).dtype());
  return make_kernel([bytes](RunContext& run) {
    const Shape& shape = run.input(0).shape;
    std::array<int64_t, kMaxRank> shift = {};
    for (int64_t i = 0; i < run.input(1).elements(); ++i) {
      int64_t axis = index_at(run.input(2), i);
      run.require(axis >= -shape.rank() && axis < shape.rank(), "axis {} is outside a tensor of rank {}", axis,
                  shape.rank());
      if (axis < 0) axis += shape.rank();
      const int64_t size = std::max<int64_t>(shape[static_cast<int>(axis)], 1);
      int64_t& total = shift[static_cast<size_t>(axis)];
      total = ((total + index_at(run.input(1), i) % size) % size + size) % size;
    }
    // Rows along the last axis that is shifted move as two blocks.
    int last = shape.rank() - 1;
    while (last > 0 && shift[static_cast<size_t>(last)] == 0) --last;
    if (shape.elements() == 0) return;
    const int64_t inner = span_elements(shape, last + 1, shape.rank()) * bytes;
    const int64_t size = shape.rank() == 0 ? 1 : shape[last];
    const int64_t rows = shape.rank() == 0 ? 1 : span_elements(shape, 0, last);
    const int64_t turn = shape.rank() == 0 ? 0 : shift[static_cast<size_t>(last)];
    const double cost = 16 + static_cast<double>(size * inner) * kByteCost;
    run.pool().for_pieces(rows, cost, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row;
        int64_t target = 0;
        int64_t stride = 1;
        for (int axis = last - 1; axis >= 0; --axis) {
          const int64_t at = (rest % shape[axis] + shift[static_cast<size_t>(axis)]) % shape[axis];
          rest /= shape[axis];
          target += at * stride;
          stride *= shape[axis];
        }
        const std::byte* from = run.input(0).data + row * size * inner;
        std::byte* to = run.output(0).data + target * size * inner;
        std::memcpy(to + turn * inner, from, static_cast<size_t>((size - turn) * inner));
        std::memcpy(to, from + (size - turn) * inner, static_cast<size_t>(turn * inner));
      }
    });
  });
}

// TensorScatterUpdate, Add, Sub, Max, Min (tensor, indices, updates)

void infer_scatter(InferContext& c) {
  infer_like(c);
  require_indices(c, 1);
  require_same_type(c, c.input(0), c.input(2));
  const Shape& tensor = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  c.require(indices.rank() >= 1 && indices[indices.rank() - 1] <= tensor.rank(),
            "indices of shape {} do not fit a tensor of shape {}", indices.to_string(), tensor.to_string());
  const auto depth = static_cast<int>(indices[indices.rank() - 1]);
  std::vector<int64_t> expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), tensor.begin() + depth, tensor.end());
  c.require(std::equal(expected.begin(), expected.end(), c.input(2).shape.begin(), c.input(2).shape.end()),
            "updates of shape {} do not fit indices of shape {} into a tensor of shape {}",
            c.input(2).shape.to_string(), indices.to_string(), tensor.to_string());
}

/// Changes `count` neighbours by updates: what is compiled for each function and type.
using UpdateRow = void (*)(std::byte* to, const std::byte* updates, int64_t count);

template <typename T, typename F>
void update_row(std::byte* to, const std::byte* updates, int64_t count) {
  T* values = reinterpret_cast<T*>(to);
  const T* changes = reinterpret_cast<const T*>(updates);
  for (int64_t k = 0; k < count; ++k) values[k] = F()(values[k], changes[k]);
}

std::unique_ptr<Kernel> scatter_kernel(const OpContext& c, UpdateRow update) {
  const Shape& indices = c.input(1).shape;
  const auto depth = static_cast<int>(indices[indices.rank() - 1]);
  const int64_t bytes = dtype_bits(c.input(0).dtype()) / 8;
  return make_kernel([depth, bytes, update](RunContext& run) {
    const Shape& shape = run.input(0).shape;
    const TensorView& out = run.output(0);
    if (out.bytes > 0 && out.data != run.input(0).data) copy_bytes(out.data, run.input(0).data, out.bytes);
    const int64_t inner = span_elements(shape, depth, shape.rank());
    const int64_t count =
        depth == 0 ? (inner == 0 ? 0 : run.input(2).elements() / inner) : run.input(1).elements() / depth;
    for_items(count, 8 + static_cast<double>(inner), [&](int64_t i) {
      int64_t at = 0;
      for (int k = 0; k < depth; ++k) {
        const int64_t index = index_at(run.input(1), i * depth + k);
        run.require(index >= 0 && index < shape[k], "index {} of axis {} is outside shape {}", index, k,
                    shape.to_string());
        at = at * shape[k] + index;
      }
      update(out.data + at * inner * bytes, run.input(2).data + i * inner * bytes, inner);
    });
  });
}

template <typename F>
std::unique_ptr<Kernel> prepare_scatter(PrepareContext& c) {
  const auto row = [](auto example) -> UpdateRow { return update_row<decltype(example), F>; };
  const DType type = c.input(0).dtype();
  if constexpr (!F::kOrders) {
    if (type == DType::kComplex64) return scatter_kernel(c, row(std::complex<float>{}));
    if (type == DType::kComplex128) return scatter_kernel(c, row(std::complex<double>{}));
  }
  return scatter_kernel(c, visit_numeric(c, type, row));
}

struct Replace {
  static constexpr bool kOrders = false;
  template <typename T>
  T operator()(T, T b) const {
    return b;
  }
};
struct Plus {
  static constexpr bool kOrders = false;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return wrapping_add(a, b);
  }
};
struct Minus {
  static constexpr bool kOrders = false;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a && !b;
    else
      return wrapping_sub(a, b);
  }
};
struct Larger {
  static constexpr bool kOrders = true;
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Smaller {
  static constexpr bool kOrders = true;
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

// DynamicStitch, ParallelDynamicStitch(N indices, N data)

void infer_stitch(InferContext& c) {
  node_def(c);
  const int count = c.input_count() / 2;
  c.require(c.input_count() % 2 == 0 && count > 0, "it has {} inputs, expected as many indices as tensors",
            c.input_count());
  require_movable(c, c.output(0), {});
  std::optional<Shape> row;
  int64_t rows = 0;
  for (int i = 0; i < count; ++i) {
    c.require_input_type(i, {DType::kInt32});
    require_same_type(c, c.input(count + i), c.output(0));
    if (!c.known(i)) return c.defer();
    const Shape& indices = c.input(i).shape;
    const Shape& data = c.input(count + i).shape;
    const bool fits = data.rank() >= indices.rank() && std::equal(indices.begin(), indices.end(), data.begin());
    c.require(fits, "data of shape {} does not fit indices of shape {}", data.to_string(), indices.to_string());
    const Shape inner(data.dims().subspan(static_cast<size_t>(indices.rank())));
    if (!row) row = inner;
    c.require(*row == inner, "rows have shapes {} and {}", row->to_string(), inner.to_string());
    for (int32_t index : c.input(i).values<int32_t>()) {
      c.require(index >= 0, "an index is {}, expected 0 or more", index);
      rows = std::max<int64_t>(rows, int64_t{index} + 1);
    }
  }
  c.require(row->rank() < kMaxRank, "the result has too many dimensions");
  Shape result{rows};
  for (int64_t size : *row) result.push_back(size);
  c.set_output_shape(0, result);
}

std::unique_ptr<Kernel> prepare_stitch(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const TensorView& out = run.output(0);
    if (out.bytes == 0) return;
    const int64_t bytes = out.bytes / out.shape[0];
    fill_bytes(out.data, std::byte{0}, out.bytes);
    const int count = run.input_count() / 2;
    for (int i = 0; i < count; ++i) {
      for_items(run.input(i).elements(), 4 + static_cast<double>(bytes) * kByteCost, [&](int64_t k) {
        std::memcpy(out.data + run.input(i).as<int32_t>()[k] * bytes, run.input(count + i).data + k * bytes,
                    static_cast<size_t>(bytes));
      });
    }
  });
}

// DynamicPartition(data, partitions), as many outputs as partitions

void infer_partition(InferContext& c) {
  node_def(c);
  require_movable(c, c.input(0), {});
  c.require_input_type(1, {DType::kInt32});
  const Shape& data = c.input(0).shape;
  const Shape& numbers = c.input(1).shape;
  c.require(data.rank() >= numbers.rank() && std::equal(numbers.begin(), numbers.end(), data.begin()),
            "data of shape {} does not fit partitions of shape {}", data.to_string(), numbers.to_string());
  if (!c.known(1)) return c.defer();
  std::vector<int64_t> counts(static_cast<size_t>(c.output_count()), 0);
  for (int32_t number : c.input(1).values<int32_t>()) {
    c.require(number >= 0 && number < c.output_count(), "a row goes to partition {}, but there are {}", number,
              c.output_count());
    ++counts[static_cast<size_t>(number)];
  }
  for (int i = 0; i < c.output_count(); ++i) {
    require_same_type(c, c.input(0), c.output(i));
    std::vector<int64_t> sizes = {counts[static_cast<size_t>(i)]};
    sizes.insert(sizes.end(), data.begin() + numbers.rank(), data.end());
    c.set_output_shape(i, checked_shape(c, sizes));
  }
}

std::unique_ptr<Kernel> prepare_partition(PrepareContext& c) {
  const Shape& data = c.input(0).shape;
  const int64_t bytes = span_elements(data, c.input(1).shape.rank(), data.rank()) * element_bytes(c.input(0).dtype());
  return make_kernel([bytes](RunContext& run) {
    std::vector<int64_t> filled(static_cast<size_t>(run.output_count()), 0);
    for_items(run.input(1).elements(), 4 + static_cast<double>(bytes) * kByteCost, [&](int64_t i) {
      const int32_t number = run.input(1).as<int32_t>()[i];
      std::memcpy(run.output(number).data + filled[static_cast<size_t>(number)]++ * bytes,
                  run.input(0).data + i * bytes, static_cast<size_t>(bytes));
    });
  });
}

// InvertPermutation(x)

void infer_invert(InferContext& c) {
  node_def(c);
  require_indices(c, 0);
  require_same_type(c, c.input(0), c.output(0));
  c.require(c.input(0).shape.rank() == 1, "the input has shape {}, expected a vector", c.input(0).shape.to_string());
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_invert(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const int64_t count = run.input(0).elements();
    for_items(count, 1, [&](int64_t i) { put_index(run.output(0), i, -1); });
    for_items(count, 2, [&](int64_t i) {
      const int64_t to = index_at(run.input(0), i);
      run.require(to >= 0 && to < count && index_at(run.output(0), to) == -1,
                  "the input is not a permutation: {} at place {}", to, i);
      put_index(run.output(0), to, i);
    });
  });
}

// Bincount(values, size, weights), DenseBincount(input, size, weights)

void infer_bincount(InferContext& c) {
  node_def(c);
  require_indices(c, 0);
  require_indices(c, 1);
  c.require_output_type(0, {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64});
  require_same_type(c, c.input(2), c.output(0));
  const Shape& values = c.input(0).shape;
  const int64_t weights = c.input(2).shape.elements();
  c.require(weights == 0 || weights == values.elements(), "there are {} weights for {} values", weights,
            values.elements());
  if (!c.known(1)) return c.defer();
  const int64_t size = integer_of_input(c, 1);
  c.require(size >= 0, "the number of bins is {}, expected 0 or more", size);
  const bool rows = values.rank() == 2 && c.output(0).value->shape.rank() == 2;
  c.set_output_shape(0, rows ? Shape{values[0], size} : Shape{size});
}

std::unique_ptr<Kernel> prepare_bincount(PrepareContext& c) {
  const bool binary = node_def(c).flag("binary_output", false);
  return visit_numeric(c, c.output(0).dtype(), [binary](auto type) {
    using T = decltype(type);
    return make_kernel([binary](RunContext& run) {
      const TensorView& out = run.output(0);
      if (out.bytes > 0) fill_bytes(out.data, std::byte{0}, out.bytes);
      const int64_t size = out.shape[out.shape.rank() - 1];
      const int64_t rows = out.shape.rank() == 2 ? out.shape[0] : 1;
      const int64_t each = rows == 0 ? 0 : run.input(0).elements() / rows;
      const T* weights = run.input(2).elements() > 0 ? run.input(2).as<T>() : nullptr;
      for_items(run.input(0).elements(), 4, [&](int64_t i) {
        const int64_t value = index_at(run.input(0), i);
        run.require(value >= 0, "value {} is {}, expected 0 or more", i, value);
        if (value >= size) return;
        T& bin = out.mutable_as<T>()[i / each * size + value];
        if (binary)
          bin = T(1);
        else
          bin = wrapping_add(bin, weights == nullptr ? T(1) : weights[i]);
      });
    });
  });
}

// LowerBound, UpperBound(sorted_inputs, values): rows of sorted numbers

void infer_bound(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.input(1));
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  const Shape& sorted = c.input(0).shape;
  const Shape& values = c.input(1).shape;
  c.require(sorted.rank() == 2 && values.rank() == 2 && sorted[0] == values[0],
            "inputs have shapes {} and {}, expected as many rows", sorted.to_string(), values.to_string());
  c.set_output_shape(0, values);
}

template <bool kUpper>
std::unique_ptr<Kernel> prepare_bound(PrepareContext& c) {
  return visit_numeric(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      const int64_t width = run.input(0).shape[1];
      const int64_t each = run.input(1).shape[1];
      for_items(run.output(0).elements(), 32, [&](int64_t i) {
        const T* row = run.input(0).as<T>() + i / each * width;
        const T value = run.input(1).as<T>()[i];
        const T* found = kUpper ? std::upper_bound(row, row + width, value) : std::lower_bound(row, row + width, value);
        put_index(run.output(0), i, found - row);
      });
    });
  });
}

// InTopK, InTopKV2(predictions, targets[, k])

void infer_in_top_k(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32});
  require_indices(c, 1);
  c.require_output_type(0, {DType::kBool});
  const Shape& predictions = c.input(0).shape;
  c.require(predictions.rank() == 2, "the predictions have shape {}, expected rank 2", predictions.to_string());
  require_elements(c, 1, predictions[0]);
  if (c.input_count() > 2) {
    require_indices(c, 2);
    require_elements(c, 2, 1);
  }
  c.set_output_shape(0, {predictions[0]});
}

std::unique_ptr<Kernel> prepare_in_top_k(PrepareContext& c) {
  const int64_t attribute = node_def(c).integer("k", 1);
  return make_kernel([attribute](RunContext& run) {
    const int64_t k = run.input_count() > 2 ? index_at(run.input(2), 0) : attribute;
    const int64_t classes = run.input(0).shape[1];
    for_items(run.output(0).elements(), static_cast<double>(classes), [&](int64_t row) {
      const float* values = run.input(0).as<float>() + row * classes;
      const int64_t target = index_at(run.input(1), row);
      bool in = target >= 0 && target < classes && std::isfinite(values[target]);
      int64_t larger = 0;
      for (int64_t i = 0; in && i < classes; ++i) {
        if (!std::isfinite(values[i]))
          in = false;
        else if (values[i] > values[target])
          ++larger;
      }
      run.output(0).mutable_as<bool>()[row] = in && larger < k;
    });
  });
}

// ListDiff(x, y) -> out, idx: the elements of x that are not in y

template <typename Use>
void for_differences(const OpContext& c, const Use& use) {
  visit_numeric(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    const auto x = c.input(0).values<T>();
    const auto y = c.input(1).values<T>();
    for_items(static_cast<int64_t>(x.size()), static_cast<double>(y.size()), [&](int64_t i) {
      if (std::find(y.begin(), y.end(), x[static_cast<size_t>(i)]) == y.end()) use(i);
    });
  });
}

void infer_difference(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  c.require_output_type(1, {DType::kInt32, DType::kInt64});
  if (!all_known(c)) return c.defer();
  int64_t count = 0;
  for_differences(c, [&](int64_t) { ++count; });
  c.set_output_shape(0, {count});
  c.set_output_shape(1, {count});
}

std::unique_ptr<Kernel> prepare_difference(PrepareContext& c) {
  return visit_numeric(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      const T* x = run.input(0).as<T>();
      const T* y = run.input(1).as<T>();
      const int64_t others = run.input(1).elements();
      int64_t count = 0;
      for_items(run.input(0).elements(), static_cast<double>(others), [&](int64_t i) {
        if (std::find(y, y + others, x[i]) != y + others || count == run.output(0).elements()) return;
        run.output(0).mutable_as<T>()[count] = x[i];
        put_index(run.output(1), count++, i);
      });
    });
  });
}

}  // namespace

void register_flex_selection(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare,
                       std::string_view types) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, types));
  };
  constexpr std::string_view kAny = "any of fixed size";
  for (const char* name : {"FlexIdentity", "FlexStopGradient", "FlexPreventGradient", "FlexCheckNumerics",
                           "FlexDebugGradientIdentity", "FlexDeepCopy", "FlexPlaceholderWithDefault"}) {
    add(name, 1, 1, infer_identity, prepare_identity, "any");
  }
  add("FlexIdentityN", -1, -1, infer_identity, prepare_identity, "any");
  add("FlexEnsureShape", 1, 1, infer_ensure_shape, prepare_identity, "any");
  add("FlexZerosLike", 1, 1, infer_like, prepare_zeros, kAny);
  add("FlexOnesLike", 1, 1, infer_like, prepare_ones, "all numbers");
  add("FlexSize", 1, 1, infer_size, prepare_size, "any");
  add("FlexAddN", -1, 1, infer_add_n, prepare_add_n, "all numbers");
  add("FlexRoll", 3, 1, infer_roll, prepare_roll, kAny);
  add("FlexTensorScatterUpdate", 3, 1, infer_scatter, prepare_scatter<Replace>, "real numbers");
  add("FlexTensorScatterAdd", 3, 1, infer_scatter, prepare_scatter<Plus>, "real numbers");
  add("FlexTensorScatterSub", 3, 1, infer_scatter, prepare_scatter<Minus>, "real numbers");
  add("FlexTensorScatterMax", 3, 1, infer_scatter, prepare_scatter<Larger>, "real numbers");
  add("FlexTensorScatterMin", 3, 1, infer_scatter, prepare_scatter<Smaller>, "real numbers");
  add("FlexDynamicStitch", -1, 1, infer_stitch, prepare_stitch, kAny);
  add("FlexParallelDynamicStitch", -1, 1, infer_stitch, prepare_stitch, kAny);
  add("FlexDynamicPartition", 2, -1, infer_partition, prepare_partition, kAny);
  add("FlexInvertPermutation", 1, 1, infer_invert, prepare_invert, "i32 i64");
  add("FlexBincount", 3, 1, infer_bincount, prepare_bincount, "i32 i64 f32 f64");
  add("FlexDenseBincount", 3, 1, infer_bincount, prepare_bincount, "i32 i64 f32 f64");
  add("FlexLowerBound", 2, 1, infer_bound, prepare_bound<false>, "real numbers");
  add("FlexUpperBound", 2, 1, infer_bound, prepare_bound<true>, "real numbers");
  add("FlexInTopK", 2, 1, infer_in_top_k, prepare_in_top_k, "f32");
  add("FlexInTopKV2", 3, 1, infer_in_top_k, prepare_in_top_k, "f32");
  add("FlexListDiff", 2, 2, infer_difference, prepare_difference, "real numbers");
}

}  // namespace leadline::ops

// SPDX-License-Identifier: Apache-2.0
// FlexRaggedTensorToTensor(shape, values, default, row partitions...): rows of different lengths, filled up to the
// longest. A partition says which values belong to which row: by the places where rows end (ROW_SPLITS), or by the row
// of each value (VALUE_ROWIDS, with FIRST_DIM_SIZE before it).
#include <algorithm>
#include <cstring>
#include <functional>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

constexpr int kFirstPartition = 3;

struct Extent {
  int64_t start = 0;
  int64_t count = 0;
};

/// One partition, as ops see it while they are planned and while they run.
struct Partition {
  const std::byte* data = nullptr;
  DType type = DType::kInt64;
  int64_t size = 0;
  bool splits = true;

  int64_t at(int64_t i) const { return load_index(data, type, i); }
  /// The values of a row; ids are in order.
  Extent row(int64_t r) const {
    if (splits) return r < size - 1 ? Extent{at(r), at(r + 1) - at(r)} : Extent{};
    const int64_t begin = first_not_below(r);
    return {begin, first_not_below(r + 1) - begin};
  }
  int64_t first_not_below(int64_t id) const {
    int64_t low = 0;
    for (int64_t high = size; low < high;) {
      const int64_t middle = low + (high - low) / 2;
      if (at(middle) < id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

struct Ragged {
  int64_t rows = 0;
  std::vector<Partition> levels;
};

/// How each partition tells rows apart.
std::vector<std::string> kinds_of(const OpContext& c) {
  const auto* types = node_def(c).find("row_partition_types");
  c.require(types != nullptr && !types->texts.empty(), "it does not say how rows are told apart");
  c.require(static_cast<int>(types->texts.size()) == c.input_count() - kFirstPartition,
            "it has {} kinds of rows for {} partitions", types->texts.size(), c.input_count() - kFirstPartition);
  return types->texts;
}

/// `input(i)` has data, type and the number of elements of an input. `Context`: of inference or of a run.
template <typename Context>
Ragged ragged_of(const Context& c, const std::vector<std::string>& kinds, const std::function<Partition(int)>& input) {
  Ragged ragged;
  for (size_t k = 0; k < kinds.size(); ++k) {
    const std::string& kind = kinds[k];
    Partition partition = input(kFirstPartition + static_cast<int>(k));
    if (kind == "FIRST_DIM_SIZE") {
      c.require(k == 0 && partition.size == 1, "the number of rows is not one number in front");
      ragged.rows = std::max<int64_t>(partition.at(0), 0);
      continue;
    }
    partition.splits = kind == "ROW_SPLITS";
    c.require(partition.splits || kind == "VALUE_ROWIDS", "rows by {} are not computed", printable(kind.substr(0, 80)));
    int64_t last = 0;
    for_items(partition.size, 2, [&](int64_t i) {
      c.require(partition.at(i) >= last, "a row partition has {} after {}", partition.at(i), last);
      last = partition.at(i);
    });
    if (k == 0) ragged.rows = std::max<int64_t>(partition.size - 1, 0);
    ragged.levels.push_back(partition);
  }
  c.require(!ragged.levels.empty(), "it has no partition into rows");
  return ragged;
}

/// The longest row of each level.
std::vector<int64_t> longest_rows(const Ragged& ragged) {
  std::vector<int64_t> longest;
  int64_t rows = ragged.rows;
  for (const Partition& level : ragged.levels) {
    int64_t most = 0;
    int64_t values = 0;
    // By what the partition has, not by `rows`, which a file may claim to be any number.
    if (level.splits) {
      for_items(std::clamp<int64_t>(level.size - 1, 0, rows), 40, [&](int64_t r) {
        const Extent extent = level.row(r);
        most = std::max(most, extent.count);
        values = std::max(values, extent.start + extent.count);
      });
    } else {
      int64_t run = 0;
      for_items(level.size, 4, [&](int64_t i) {
        if (level.at(i) >= rows) return;
        run = i > 0 && level.at(i) == level.at(i - 1) ? run + 1 : 1;
        most = std::max(most, run);
        values = i + 1;
      });
    }
    longest.push_back(most);
    rows = values;
  }
  return longest;
}

/// The number of the value at a place of the result; -1 where a row has ended.
int64_t value_at(const Ragged& ragged, const Shape& shape, int64_t place) {
  const auto levels = static_cast<int>(ragged.levels.size());
  int64_t inner = 1;
  for (int axis = 1; axis <= levels; ++axis) inner *= shape[axis];
  int64_t row = place / inner;
  if (row >= ragged.rows) return -1;
  for (int axis = 1; axis <= levels; ++axis) {
    place %= inner;
    inner /= shape[axis];
    const Extent extent = ragged.levels[static_cast<size_t>(axis - 1)].row(row);
    const int64_t index = place / inner;
    if (index >= extent.count) return -1;
    row = extent.start + index;
  }
  return row;
}

/// Elements that stand for one value.
int64_t elements_of_value(const Shape& values) {
  return values.rank() > 0 ? span_elements(values, 1, values.rank()) : 1;
}

Partition operand(const OpContext& c, int i) {
  return {c.input(i).data, c.input(i).dtype(), c.input(i).shape.elements(), true};
}

void check_ragged_types(const InferContext& c) {
  c.require(c.input_count() > kFirstPartition, "it has {} inputs, expected at least {}", c.input_count(),
            kFirstPartition + 1);
  require_movable(c, c.input(1), {.strings = true});
  require_indices(c, 0);
  for (int i = kFirstPartition; i < c.input_count(); ++i) require_indices(c, i);
  c.require(c.input(1).shape.rank() >= 1, "the values are a scalar");
  c.require_input_type(2, {c.input(1).dtype()});
  c.require_output_type(0, {c.input(1).dtype()});
  const int64_t size = c.input(2).shape.elements();
  c.require(size == 1 || size == elements_of_value(c.input(1).shape), "the default has shape {}, a value {} elements",
            c.input(2).shape.to_string(), elements_of_value(c.input(1).shape));
}

Shape result_shape(const InferContext& c, const Ragged& ragged) {
  std::vector<int64_t> sizes = {ragged.rows};
  for (const int64_t longest : longest_rows(ragged)) sizes.push_back(longest);
  const Shape& values = c.input(1).shape;
  for (int axis = 1; axis < values.rank(); ++axis) sizes.push_back(values[axis]);
  const Partition wanted = operand(c, 0);
  if (c.input(0).shape.rank() == 1) {
    c.require(wanted.size == static_cast<int64_t>(sizes.size()), "the shape has {} sizes, expected {}", wanted.size,
              sizes.size());
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (wanted.at(static_cast<int64_t>(axis)) >= 0) sizes[axis] = wanted.at(static_cast<int64_t>(axis));
    }
  }
  for (size_t axis = ragged.levels.size() + 1; axis < sizes.size(); ++axis) {
    c.require(sizes[axis] == values[static_cast<int>(axis - ragged.levels.size())], "values would have to be cut");
  }
  return checked_shape(c, sizes);
}

void infer_ragged(InferContext& c) {
  check_ragged_types(c);
  const bool texts = c.input(1).dtype() == DType::kString;
  for (int i = 0; i < c.input_count(); ++i) {
    if ((texts || (i != 1 && i != 2)) && !c.known(i)) return c.defer();
  }
  const Ragged ragged = ragged_of(c, kinds_of(c), [&](int i) { return operand(c, i); });
  const Shape shape = result_shape(c, ragged);
  c.set_output_shape(0, shape);
  if (!texts) return;
  c.require(c.input(1).shape.rank() == 1, "texts are in more than rows");
  const StringTensorReader values = known_strings(c, 1);
  const auto filler = static_cast<int64_t>(known_strings(c, 2)[0].size());
  int64_t characters = 0;
  for_items(shape.elements(), 60, [&](int64_t place) {
    const int64_t value = value_at(ragged, shape, place);
    c.require(value < values.size(), "a row ends at value {}, there are {}", value, values.size());
    characters = checked_add(c, characters, value < 0 ? filler : static_cast<int64_t>(values[value].size()));
  });
  set_string_bytes(c, 0, shape.elements(), characters);
}

void fill_texts(RunContext& run, const Ragged& ragged) {
  const StringTensorReader values = run_strings(run, run.input(1));
  const std::string_view filler = run_strings(run, run.input(2))[0];
  const TensorView& out = run.output(0);
  StringTensorWriter writer({out.data, static_cast<size_t>(out.bytes)}, out.elements());
  for_items(out.elements(), 60, [&](int64_t place) {
    const int64_t value = value_at(ragged, out.shape, place);
    writer.add(value < 0 || value >= values.size() ? filler : values[value]);
  });
}

void fill_numbers(RunContext& run, const Ragged& ragged) {
  const TensorView& values = run.input(1);
  const TensorView& out = run.output(0);
  const int64_t count = elements_of_value(values.shape);
  const int64_t places = count > 0 ? out.elements() / count : 0;
  const auto bytes = static_cast<size_t>(dtype_bits(out.dtype) / 8);
  const bool single = run.input(2).elements() == 1;
  for_items(places, 40 + static_cast<double>(count), [&](int64_t place) {
    const int64_t value = value_at(ragged, out.shape, place);
    run.require(value < values.shape[0], "a row ends at value {}, there are {}", value, values.shape[0]);
    std::byte* to = out.data + static_cast<size_t>(place * count) * bytes;
    if (value >= 0) {
      std::memcpy(to, values.data + static_cast<size_t>(value * count) * bytes, static_cast<size_t>(count) * bytes);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * bytes,
                  run.input(2).data + (single ? 0 : static_cast<size_t>(i) * bytes), bytes);
    }
  });
}

std::unique_ptr<Kernel> prepare_ragged(PrepareContext& c) {
  return make_kernel([kinds = kinds_of(c)](RunContext& run) {
    const Ragged ragged = ragged_of(run, kinds, [&](int i) {
      const TensorView& tensor = run.input(i);
      return Partition{tensor.data, tensor.dtype, tensor.elements(), true};
    });
    if (run.output(0).dtype == DType::kString) {
      fill_texts(run, ragged);
    } else {
      fill_numbers(run, ragged);
    }
  });
}

}  // namespace

void register_flex_ragged(Registry& registry) {
  registry.add(flex_row("FlexRaggedTensorToTensor", -1, 1, infer_ragged, prepare_ragged, "any"));
}

}  // namespace leadline::ops

// SPDX-License-Identifier: Apache-2.0
// EMBEDDING_LOOKUP: rows of a table, copied or dequantized; EMBEDDING_LOOKUP_SPARSE: weighted sums of rows.
// Row numbers are checked before a row is read.
#include "ops/embedding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/half.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace embedding {
namespace {

// EMBEDDING_LOOKUP

enum LookupInput { kIds = 0, kTable = 1 };

enum class Form : uint8_t {
  kCopy,        // table and output have the same type
  kDequantize,  // integers with a scale for the table or for each row
  kBlocks,      // integers with a float16 scale for every block of a row
  kWiden,       // float16 rows as float32
};

int64_t row_elements(const Shape& table) { return span_elements(table, 1, table.rank()); }

void check_block_scales(const OpContext& c) {
  const Operand& table = c.input(kTable);
  const Quantization& q = table.quantization();
  c.require_input_type(kTable, {DType::kInt4, DType::kInt2});
  c.require_output_type(0, {DType::kFloat32, DType::kFloat16});
  c.require(table.shape.rank() == 2, "the table '{}' is quantized in blocks and has shape {}, expected rank 2",
            table.value->name, table.shape.to_string());
  const int64_t columns = table.shape[1];
  c.require(columns % q.block_size == 0, "rows of {} values do not divide into blocks of {}", columns, q.block_size);
  const int64_t block_bits = int64_t{q.block_size} * dtype_bits(table.dtype());
  c.require(block_bits % 8 == 0, "blocks of {} {} values do not fill whole bytes", q.block_size,
            dtype_name(table.dtype()));
  const ir::Value& scales = c.value(q.block_scales);
  c.require(scales.constant && scales.dtype == DType::kFloat16, "the block scales '{}' are not a float16 constant",
            scales.name);
  const int64_t count = checked_multiply(c, table.shape[0], columns / q.block_size);
  c.require(static_cast<int64_t>(scales.data.size() / sizeof(uint16_t)) >= count,
            "the block scales '{}' have {} bytes, expected {} float16 numbers", scales.name, scales.data.size(), count);
}

void check_row_scales(const OpContext& c) {
  const Operand& table = c.input(kTable);
  const Quantization& q = table.quantization();
  c.require(c.output(0).dtype() != DType::kFloat32 || q.zero_point0() == 0,
            "the table '{}' has zero point {}, expected 0", table.value->name, q.zero_point0());
  if (!q.per_channel()) return;
  c.require(q.axis == 0 && static_cast<int64_t>(q.scale.size()) == table.shape[0],
            "the table '{}' has {} scales along axis {}, expected one for each of its {} rows", table.value->name,
            q.scale.size(), q.axis, table.shape[0]);
}

Form form_of(const OpContext& c) {
  const Operand& table = c.input(kTable);
  const DType type = table.dtype();
  const DType result = c.output(0).dtype();
  if (table.quantization().block_size > 0) {
    check_block_scales(c);
    return Form::kBlocks;
  }
  if (type == result) {
    require_movable(c, table, {.sub_byte = true});
    c.require(!table.quantization().per_channel(), "the table '{}' has a scale for each row, but its rows are copied",
              table.value->name);
    c.require(row_elements(table.shape) * dtype_bits(type) % 8 == 0, "rows of {} {} values do not fill whole bytes",
              row_elements(table.shape), dtype_name(type));
    return Form::kCopy;
  }
  if (type == DType::kFloat16 && result == DType::kFloat32) return Form::kWiden;
  c.require_input_type(kTable, {DType::kUInt8, DType::kInt8, DType::kInt4, DType::kInt2});
  c.require_output_type(0, {DType::kFloat32, DType::kFloat16});
  check_row_scales(c);
  return Form::kDequantize;
}

void infer_embedding_lookup(InferContext& c) {
  c.require_input_type(kIds, {DType::kInt32});
  const Shape& ids = c.input(kIds).shape;
  const Shape& table = c.input(kTable).shape;
  c.require(ids.rank() == 1, "the row numbers have shape {}, expected rank 1", ids.to_string());
  c.require(table.rank() >= 2, "the table has shape {}, expected rank 2 or more", table.to_string());
  form_of(c);
  std::vector<int64_t> dims(table.begin(), table.end());
  dims[0] = ids[0];
  c.set_output_shape(0, checked_shape(c, dims));
}

/// Row numbers inside the table; a table without elements has no rows to read.
void check_ids(const RunContext& run, const TensorView& ids, int64_t rows) {
  const auto* id = ids.as<int32_t>();
  for_items(ids.elements(), 1, [&](int64_t i) {
    run.require(id[i] >= 0 && id[i] < rows, "row {} is outside a table of {} rows", id[i], rows);
  });
}

inline void store(float& to, float value) { to = value; }
inline void store(uint16_t& to, float value) { to = float_to_half(value); }

/// uint8 levels are read as int8, as TFLite does.
template <typename Out>
void dequantize(const std::byte* from, DType type, int64_t count, float scale, Out* to) {
  if (const int bits = dtype_bits(type); bits < 8) {
    const int sign = 1 << (bits - 1);
    for_items(count, 1, [&](int64_t k) {
      const int level = (static_cast<int>(get_packed(from, k, bits)) ^ sign) - sign;
      store(to[k], static_cast<float>(level) * scale);
    });
    return;
  }
  const auto* levels = reinterpret_cast<const int8_t*>(from);
  for_items(count, 1, [&](int64_t k) { store(to[k], static_cast<float>(levels[k]) * scale); });
}

/// What all forms know when they read a row.
struct RowSource {
  const std::byte* data;
  const Quantization* quantization;
  const std::byte* block_scales;  // float16, perhaps not aligned
  DType type;
  int64_t columns;

  const std::byte* row(int64_t id) const {
    // Rows start at whole bytes: the second of two rows of three int4 values begins in byte 1, as TFLite reads it.
    return data + id * columns * dtype_bits(type) / 8;
  }

  template <typename Out>
  void dequantize_row(int64_t id, Out* to) const {
    const float scale = quantization->per_channel() ? quantization->scale[static_cast<size_t>(id)]  //
                                                    : quantization->scale0();
    dequantize(row(id), type, columns, scale, to);
  }

  template <typename Out>
  void dequantize_blocks(int64_t id, Out* to) const {
    const int64_t size = quantization->block_size;
    const int64_t blocks = columns / size;
    for_items(blocks, 4 * static_cast<double>(size), [&](int64_t b) {
      uint16_t scale = 0;
      std::memcpy(&scale, block_scales + (id * blocks + b) * 2, sizeof(scale));
      dequantize(row(id) + b * size * dtype_bits(type) / 8, type, size, half_to_float(scale), to + b * size);
    });
  }

  void read(Form form, int64_t id, DType to_type, std::byte* to) const {
    if (form == Form::kCopy) {
      copy_bytes(to, row(id), columns * dtype_bits(type) / 8);
    } else if (form == Form::kWiden) {
      const auto* halves = reinterpret_cast<const uint16_t*>(row(id));
      auto* floats = reinterpret_cast<float*>(to);
      for_items(columns, 1, [&](int64_t k) { floats[k] = half_to_float(halves[k]); });
    } else if (to_type == DType::kFloat32) {
      auto* floats = reinterpret_cast<float*>(to);
      form == Form::kBlocks ? dequantize_blocks(id, floats) : dequantize_row(id, floats);
    } else {
      auto* halves = reinterpret_cast<uint16_t*>(to);
      form == Form::kBlocks ? dequantize_blocks(id, halves) : dequantize_row(id, halves);
    }
  }
};

std::unique_ptr<Kernel> prepare_embedding_lookup(PrepareContext& c) {
  const Form form = form_of(c);
  const int64_t rows = c.input(kTable).shape[0];
  const int64_t columns = row_elements(c.input(kTable).shape);
  const std::byte* scales =
      form == Form::kBlocks ? c.value(c.input(kTable).quantization().block_scales).data.data() : nullptr;
  return make_kernel([=](RunContext& run) {
    const TensorView& ids = run.input(kIds);
    const TensorView& table = run.input(kTable);
    const TensorView& out = run.output(0);
    check_ids(run, ids, rows);
    if (out.elements() == 0) return;
    const RowSource source = {table.data, table.quantization, scales, table.dtype, columns};
    const int64_t row_bytes = out.bytes / ids.elements();
    run.pool().for_pieces(ids.elements(), static_cast<double>(columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        source.read(form, ids.as<int32_t>()[i], out.dtype, out.data + i * row_bytes);
    });
  });
}

// EMBEDDING_LOOKUP_SPARSE

enum SparseInput { kSparseIds = 0, kIndices = 1, kDenseShape = 2, kWeights = 3, kParams = 4 };

void infer_sparse(InferContext& c) {
  for (const int i : {kSparseIds, kIndices, kDenseShape}) c.require_input_type(i, {DType::kInt32});
  for (const int i : {kWeights, kParams}) c.require_input_type(i, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const auto require_rank = [&](int i, int rank) {
    c.require(c.input(i).shape.rank() == rank, "input {} '{}' has shape {}, expected rank {}", i,
              c.input(i).value->name, c.input(i).shape.to_string(), rank);
  };
  for (const int i : {kSparseIds, kDenseShape, kWeights}) require_rank(i, 1);
  require_rank(kIndices, 2);
  const Shape& indices = c.input(kIndices).shape;
  const Shape& params = c.input(kParams).shape;
  c.require(params.rank() >= 2, "the table has shape {}, expected rank 2 or more", params.to_string());
  c.require(indices[0] == c.input(kSparseIds).shape[0] && indices[0] == c.input(kWeights).shape[0],
            "{} row numbers, {} indices and {} weights, expected the same number of each", c.input(kSparseIds).shape[0],
            indices[0], c.input(kWeights).shape[0]);
  c.require(indices[1] >= 1 && indices[1] == c.input(kDenseShape).shape[0],
            "indices of {} numbers do not fit a dense shape of {} numbers", indices[1], c.input(kDenseShape).shape[0]);
  if (!c.known(kDenseShape)) return c.defer();
  // The last dimension of the lookups is combined away; a row's own dimensions take its place.
  std::vector<int64_t> dims = known_ints(c, kDenseShape);
  dims.pop_back();
  dims.insert(dims.end(), params.begin() + 1, params.end());
  c.set_output_shape(0, checked_shape(c, dims));
}

/// Where a lookup is added: the row-major position of all its index's numbers but the last. -1: outside.
int64_t bucket_of(const int32_t* index, const Shape& out, int lookup_dims) {
  int64_t bucket = 0;
  for (int d = 0; d < lookup_dims; ++d) {
    if (index[d] < 0 || index[d] >= out[d]) return -1;
    bucket = bucket * out[d] + index[d];
  }
  return bucket;
}

void combine(Combiner combiner, int64_t elements, float total, float squares, std::span<float> row) {
  if (combiner == Combiner::kSum || elements == 0) return;
  const float divisor = combiner == Combiner::kMean ? total : std::sqrt(squares);
  for_items(static_cast<int64_t>(row.size()), 1, [&](int64_t k) { row[static_cast<size_t>(k)] /= divisor; });
}

void run_sparse(RunContext& run, Combiner combiner) {
  const TensorView& ids = run.input(kSparseIds);
  const TensorView& indices = run.input(kIndices);
  const TensorView& params = run.input(kParams);
  const TensorView& out = run.output(0);
  const int64_t rank = indices.shape[1];
  const int lookup_dims = static_cast<int>(rank) - 1;
  const int64_t size = row_elements(params.shape);
  check_ids(run, ids, params.shape[0]);
  for_items(ids.elements(), 16, [&](int64_t i) {
    run.require(bucket_of(indices.as<int32_t>() + i * rank, out.shape, lookup_dims) >= 0,
                "index {} is outside the dense shape", i);
  });
  auto* result = out.mutable_as<float>();
  fill_bytes(out.data, std::byte{0}, out.bytes);
  if (out.elements() == 0) return;
  const auto row = [&](int64_t bucket) { return std::span<float>(result + bucket * size, static_cast<size_t>(size)); };
  // Lookups of a bucket stand together; one that comes back later is combined once more, as in TFLite.
  int64_t bucket = 0;
  int64_t elements = 0;
  float total = 0.0F;
  float squares = 0.0F;
  for_items(ids.elements(), static_cast<double>(16 + size), [&](int64_t i) {
    if (const int64_t next = bucket_of(indices.as<int32_t>() + i * rank, out.shape, lookup_dims); next != bucket) {
      combine(combiner, elements, total, squares, row(bucket));
      bucket = next;
      elements = 0;
      total = squares = 0.0F;
    }
    const float weight = run.input(kWeights).as<float>()[i];
    const float* from = params.as<float>() + ids.as<int32_t>()[i] * size;
    ++elements;
    total += weight;
    squares += weight * weight;
    const std::span<float> to = row(bucket);
    for_items(size, 1, [&](int64_t k) { to[static_cast<size_t>(k)] += from[k] * weight; });
  });
  combine(combiner, elements, total, squares, row(bucket));
}

std::unique_ptr<Kernel> prepare_sparse(PrepareContext& c) {
  const Combiner combiner = c.attributes<EmbeddingLookupSparseAttributes>().combiner;
  return make_kernel([combiner](RunContext& run) { run_sparse(run, combiner); });
}

}  // namespace
}  // namespace embedding

void register_embedding(Registry& registry) {
  using namespace embedding;
  registry.add({.id = op::kEmbeddingLookup,
                .max_version = 5,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .infer = infer_embedding_lookup,
                .prepare = prepare_embedding_lookup,
                .half_inputs = input_set({kTable}),
                .quantize = hybrid_rule({.hybrid = 1, .hybrid_per_channel = 4}, input_set({kTable})),
                .types = "all but strings; u8 i8 i4 i2 to f32 f16"});
  registry.add({.id = op::kEmbeddingLookupSparse,
                .min_inputs = 5,
                .max_inputs = 5,
                .required_inputs = 5,
                .options = builtin_options(20),
                .make_attributes = make_attributes<EmbeddingLookupSparseAttributes>,
                .infer = infer_sparse,
                .prepare = prepare_sparse,
                .types = "f32"});
}

}  // namespace leadline::ops

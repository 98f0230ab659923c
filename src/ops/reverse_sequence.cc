// SPDX-License-Identifier: Apache-2.0
// REVERSE_SEQUENCE: the first elements of an axis backwards, as many as a length given for each batch says.
#include "ops/reverse_sequence.h"

#include <algorithm>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

/// The input as [outer, first, middle, second, inner]; first and second are the batch and the sequence axis.
struct SequenceSizes {
  int64_t outer = 0, first = 0, middle = 0, second = 0;
  int64_t inner = 0;  // bytes
  bool sequence_first = false;
  int64_t longest = 0;
};

SequenceSizes sequence_sizes(const OpContext& c) {
  const auto& a = c.attributes<ReverseSequenceAttributes>();
  const Shape& shape = c.input(0).shape;
  const int first = std::min(a.seq_dim, a.batch_dim);
  const int second = std::max(a.seq_dim, a.batch_dim);
  SequenceSizes s;
  s.longest = shape[a.seq_dim];
  if (shape.elements() == 0) return s;
  s.outer = span_elements(shape, 0, first);
  s.first = shape[first];
  s.middle = span_elements(shape, first + 1, second);
  s.second = shape[second];
  s.inner = span_elements(shape, second + 1, shape.rank()) * element_bytes(c.input(0).dtype());
  s.sequence_first = a.seq_dim < a.batch_dim;
  return s;
}

void infer_reverse_sequence(InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  const auto& a = c.attributes<ReverseSequenceAttributes>();
  const Shape& shape = c.input(0).shape;
  const Shape& lengths = c.input(1).shape;
  for (const int32_t axis : {a.seq_dim, a.batch_dim}) {
    c.require(axis >= 0 && axis < shape.rank(), "axis {} is outside a tensor of rank {}", axis, shape.rank());
  }
  c.require(a.seq_dim != a.batch_dim, "the sequence axis and the batch axis are both {}", a.seq_dim);
  c.require(lengths.rank() == 1 && lengths[0] == shape[a.batch_dim], "the lengths have shape {}, expected [{}]",
            lengths.to_string(), shape[a.batch_dim]);
  c.set_output_shape(0, shape);
}

/// Where element `at` of a sequence comes from. TFLite leaves sequences of negative length as they are.
int64_t source(int64_t at, int64_t length) { return at < length ? length - 1 - at : at; }

void run(const RunContext& c, const SequenceSizes& s) {
  const TensorView& lengths = c.input(1);
  for_items(lengths.elements(), 2, [&](int64_t i) {
    const int64_t length = load_index(lengths.data, lengths.dtype, i);
    c.require(length <= s.longest, "length {} of sequence {} is above {}", length, i, s.longest);
  });
  const std::byte* from = c.input(0).data;
  std::byte* to = c.output(0).data;
  const double cost = kByteCost * static_cast<double>(s.inner) + 8;
  const int64_t row_items = s.middle * s.second;
  c.pool().for_pieces(s.outer * s.first * row_items, cost, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t row = at / row_items;
      const int64_t m = at % row_items / s.second;
      const int64_t j = at % s.second;
      const int64_t i = row % s.first;
      const int64_t length = load_index(lengths.data, lengths.dtype, s.sequence_first ? j : i);
      const int64_t from_row = s.sequence_first ? row - i + source(i, length) : row;
      const int64_t from_j = s.sequence_first ? j : source(j, length);
      copy_bytes(to + at * s.inner, from + ((from_row * s.middle + m) * s.second + from_j) * s.inner, s.inner);
    }
  });
}

std::unique_ptr<Kernel> prepare_reverse_sequence(PrepareContext& c) {
  return make_kernel([s = sequence_sizes(c)](RunContext& context) { run(context, s); });
}

}  // namespace

void register_reverse_sequence(Registry& registry) {
  registry.add({.id = op::kReverseSequence,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(87),
                .make_attributes = make_attributes<ReverseSequenceAttributes>,
                .infer = infer_reverse_sequence,
                .prepare = prepare_reverse_sequence,
                .types = "all but sub-byte and strings"});
}

}  // namespace leadline::ops

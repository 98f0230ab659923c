// SPDX-License-Identifier: Apache-2.0
// Rows of different lengths, filled up to the longest: RaggedTensorToTensor.
#include "import/saved_model/op_functions.h"
#include "ops/cumsum.h"

namespace leadline::saved_model {
namespace {

/// Where rows start in the values, and how long they are: int32 vectors.
struct Rows {
  int starts = 0;
  int lengths = 0;
};

Rows rows_of_splits(OpCall& call, int splits) {
  Emitter& e = call.e;
  const int starts = e.slice(splits, 0, 0, -1);
  return {starts, e.sub(e.slice(splits, 0, 1, INT64_MAX), starts)};
}

Rows rows_of_ids(OpCall& call, int count, int ids) {
  Emitter& e = call.e;
  const int ones = e.add(e.mul(ids, 0.0), 1.0);
  const int lengths = call.sized("UNSORTED_SEGMENT_SUM", {ones, ids, count}, DType::kInt32, {-1});
  ops::CumsumAttributes before;
  before.exclusive = true;
  return {call.builder().node("CUMSUM", {lengths, e.integer(0)}, e.name("Cumsum"), before), lengths};
}

Rows rows_of(OpCall& call) {
  const AttrValue* types = find_attr(call.node.attrs, "row_partition_types");
  call.refuse_if(types == nullptr || types->kind != AttrValue::Kind::kList, "does not say how rows are told apart");
  const std::vector<std::string_view>& kinds = types->parts->strings;
  if (kinds.size() == 1 && kinds[0] == "ROW_SPLITS") return rows_of_splits(call, call.in32(3));
  if (kinds.size() == 2 && kinds[0] == "FIRST_DIM_SIZE" && kinds[1] == "VALUE_ROWIDS") {
    return rows_of_ids(call, call.in32(3), call.in32(4));
  }
  call.unsupported("has rows of rows, which is not converted; call to_tensor() on the inner rows first");
}

}  // namespace

/// Values get one element more, the default, which is where places beyond the end of a row point to.
Outputs ragged_to_tensor(OpCall& call) {
  Emitter& e = call.e;
  const int values = call.in(1);
  call.refuse_if(e.rank(values) != 1, "has rows of more than numbers, which is not converted");
  const std::vector<int64_t> shape = call.ints(0, "the shape");
  call.refuse_if(!shape.empty() && shape[0] >= 0 && shape.size() > 1, "cuts or adds rows, which is not converted");
  const Rows rows = rows_of(call);
  const int longest = e.binary("MAXIMUM", e.reduce("REDUCE_MAX", rows.lengths, {0}, false), e.integer(0));
  const bool fixed = shape.size() == 2 && shape[1] >= 0;
  const int width = fixed ? e.integer(small(shape[1])) : longest;
  const int columns = call.sized("RANGE", {e.integer(0), width, e.integer(1)}, DType::kInt32, {fixed ? shape[1] : -1});
  const int across = e.expand_dims(columns, 0);
  const int inside = e.compare("LESS", across, e.expand_dims(rows.lengths, 1));
  const int places = e.add(e.expand_dims(rows.starts, 1), across);
  const int end = e.take(e.shape_part(values, 0, 1), 0, 0);
  const int table = e.concat({values, e.reshape(e.cast(call.in(2), e.dtype(values)), {1})}, 0);
  return {e.gather(table, e.select(inside, places, end), 0)};
}

}  // namespace leadline::saved_model

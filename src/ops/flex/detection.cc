// SPDX-License-Identifier: Apache-2.0
// Flex ops at the end of detectors and recognisers: NonMaxSuppression V1 to V5, CombinedNonMaxSuppression,
// CTCGreedyDecoder. How many boxes or labels come out depends on the data: those are counted when the inputs are known.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

struct Box {
  float top, left, bottom, right;
  explicit Box(const float* corners)
      : top(std::min(corners[0], corners[2])),
        left(std::min(corners[1], corners[3])),
        bottom(std::max(corners[0], corners[2])),
        right(std::max(corners[1], corners[3])) {}
  float area() const { return (bottom - top) * (right - left); }
};

/// Intersection over union.
float overlap(const Box& a, const Box& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0;
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0F);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0F);
  const float common = height * width;
  return common / (a.area() + b.area() - common);
}

/// What a selection takes and what it works on; scores may be `step` apart.
struct Candidates {
  const float* boxes;
  const float* scores;
  int64_t count;
  int64_t box_step = 4;
  int64_t score_step = 1;
  Box box(int64_t i) const { return Box(boxes + i * box_step); }
  float score(int64_t i) const { return scores[i * score_step]; }
};
struct Limits {
  int64_t most;
  float overlap;
  float score;
  float sigma = 0;  // of soft suppression
};

/// Greedy selection in the order of scores, of equal ones the first first. `order`, `current` and `begin` have a place
/// for each candidate. Writes the chosen ones and their scores; returns how many there are.
int64_t select_boxes(const Candidates& from, const Limits& limits, int64_t* order, float* current, int64_t* begin,
                     int64_t* chosen, float* chosen_scores) {
  int64_t left = 0;
  for (int64_t i = 0; i < from.count; ++i) {
    if (!(from.score(i) > limits.score)) continue;
    order[left++] = i;
    current[i] = from.score(i);
    begin[i] = 0;
  }
  const auto worse = [&](int64_t a, int64_t b) { return current[a] != current[b] ? current[a] < current[b] : a > b; };
  std::make_heap(order, order + left, worse);
  const float factor = limits.sigma > 0 ? -0.5F / limits.sigma : 0;
  int64_t found = 0;
  repeat_while(32, [&] {
    if (found >= limits.most || left == 0) return false;
    std::pop_heap(order, order + left, worse);
    const int64_t next = order[--left];
    const float original = current[next];
    bool dropped = false;
    // Only boxes chosen since it was looked at last matter.
    for (int64_t k = found - 1; k >= begin[next] && !dropped; --k) {
      const float common = overlap(from.box(next), from.box(chosen[k]));
      if (limits.sigma > 0)
        current[next] *= common <= limits.overlap ? std::exp(factor * common * common) : 0.0F;
      else
        dropped = common > limits.overlap;
      if (limits.sigma > 0 && current[next] <= limits.score) dropped = true;
    }
    begin[next] = found;
    if (dropped) return true;
    if (current[next] == original) {
      chosen[found] = next;
      if (chosen_scores != nullptr) chosen_scores[found] = original;
      ++found;
      return true;
    }
    if (current[next] > limits.score) {
      order[left++] = next;
      std::push_heap(order, order + left, worse);
    }
    return true;
  });
  return found;
}

/// Workspace of select_boxes(): per candidate.
struct SelectionSpace {
  int64_t* order;
  int64_t* begin;
  int64_t* chosen;
  float* current;
  float* scores;
  SelectionSpace(std::byte* memory, int64_t count)
      : order(reinterpret_cast<int64_t*>(memory)),
        begin(order + count),
        chosen(begin + count),
        current(reinterpret_cast<float*>(chosen + count)),
        scores(current + count) {}
  static int64_t bytes(const OpContext& c, int64_t count) { return checked_multiply(c, count, 32); }
};

// NonMaxSuppression(boxes, scores, max_output_size[, iou_threshold[, score_threshold[, soft_nms_sigma]]])

float number_of_input(const OpContext& c, int i) {
  c.require_input_type(i, {DType::kFloat32});
  require_elements(c, i, 1);
  return c.input(i).values<float>()[0];
}

Limits limits_of(const OpContext& c) {
  Limits limits{std::max<int64_t>(integer_of_input(c, 2), 0), node_def(c).number("iou_threshold", 0.5F),
                std::numeric_limits<float>::lowest()};
  if (c.input_count() > 3) limits.overlap = number_of_input(c, 3);
  if (c.input_count() > 4) limits.score = number_of_input(c, 4);
  if (c.input_count() > 5) limits.sigma = number_of_input(c, 5);
  c.require(limits.overlap >= 0 && limits.overlap <= 1, "the overlap allowed is {}, expected 0 to 1", limits.overlap);
  return limits;
}

/// V4 and V5 pad their results when asked.
bool pads(const OpContext& c) { return node_def(c).flag("pad_to_max_output_size", false); }

void infer_suppression(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32});
  c.require_input_type(1, {DType::kFloat32});
  c.require_input_type(2, {DType::kInt32});
  const Shape& boxes = c.input(0).shape;
  c.require(boxes.rank() == 2 && boxes[1] == 4, "the boxes have shape {}, expected [n, 4]", boxes.to_string());
  require_elements(c, 1, boxes[0]);
  c.require_output_type(0, {DType::kInt32});
  for (int i = 0; i < c.input_count(); ++i) {
    if (!c.known(i) && (i >= 2 || !pads(c))) return c.defer();
  }
  const Limits limits = limits_of(c);
  int64_t count = limits.most;
  if (!pads(c)) {
    const Workspace workspace(c.host().resources(), SelectionSpace::bytes(c, boxes[0]));
    const SelectionSpace space(workspace.data(), boxes[0]);
    count = select_boxes({c.input(0).values<float>().data(), c.input(1).values<float>().data(), boxes[0]}, limits,
                         space.order, space.current, space.begin, space.chosen, nullptr);
  }
  c.set_output_shape(0, {count});
  for (int i = 1; i < c.output_count(); ++i) {
    const bool last = i == c.output_count() - 1;
    c.require_output_type(i, {last ? DType::kInt32 : DType::kFloat32});
    c.set_output_shape(i, last ? Shape() : Shape{count});
  }
}

std::unique_ptr<Kernel> prepare_suppression(PrepareContext& c) {
  const int64_t boxes = c.input(0).shape[0];
  const Limits limits = limits_of(c);
  c.request_scratch(SelectionSpace::bytes(c, boxes));
  return make_kernel([boxes, limits](RunContext& run) {
    const SelectionSpace space(run.scratch(), boxes);
    const int64_t found = select_boxes({run.input(0).as<float>(), run.input(1).as<float>(), boxes}, limits, space.order,
                                       space.current, space.begin, space.chosen, space.scores);
    const int64_t size = run.output(0).elements();
    for (int64_t i = 0; i < size; ++i) {
      run.output(0).mutable_as<int32_t>()[i] = i < found ? static_cast<int32_t>(space.chosen[i]) : 0;
    }
    if (run.output_count() == 3) {
      for (int64_t i = 0; i < size; ++i) run.output(1).mutable_as<float>()[i] = i < found ? space.scores[i] : 0.0F;
    }
    if (run.output_count() > 1) {
      *run.output(run.output_count() - 1).mutable_as<int32_t>() = static_cast<int32_t>(std::min(found, size));
    }
  });
}

// CombinedNonMaxSuppression(boxes [b, n, q, 4], scores [b, n, classes], max_output_size_per_class, max_total_size,
// iou_threshold, score_threshold) -> boxes, scores, classes, valid detections

struct CombinedPlan {
  int64_t batch, count, groups, classes, per_class, total;
  Limits limits;
  bool clip;

  explicit CombinedPlan(const OpContext& c)
      : batch(c.input(0).shape[0]),
        count(c.input(0).shape[1]),
        groups(c.input(0).shape[2]),
        classes(c.input(1).shape[2]),
        per_class(integer_of_input(c, 2)),
        total(integer_of_input(c, 3)),
        limits{per_class, number_of_input(c, 4), number_of_input(c, 5)},
        clip(node_def(c).flag("clip_boxes", true)) {
    c.require(per_class > 0 && total > 0, "it keeps {} boxes of a class and {} in all, expected more than none",
              per_class, total);
    if (!node_def(c).flag("pad_per_class", false)) return;
    int64_t all = 0;
    if (!__builtin_mul_overflow(per_class, classes, &all)) total = std::min(total, all);
  }
};

void infer_combined(InferContext& c) {
  node_def(c);
  const Shape& boxes = c.input(0).shape;
  const Shape& scores = c.input(1).shape;
  for (int i = 0; i < 2; ++i) c.require_input_type(i, {DType::kFloat32});
  c.require(boxes.rank() == 4 && boxes[3] == 4 && scores.rank() == 3 && boxes[0] == scores[0] &&
                boxes[1] == scores[1] && (boxes[2] == 1 || boxes[2] == scores[2]),
            "boxes of shape {} and scores of shape {} do not fit", boxes.to_string(), scores.to_string());
  for (int i = 2; i < 6; ++i) {
    if (!c.known(i)) return c.defer();
  }
  const CombinedPlan plan(c);
  c.set_output_shape(0, {plan.batch, plan.total, 4});
  c.set_output_shape(1, {plan.batch, plan.total});
  c.set_output_shape(2, {plan.batch, plan.total});
  for (int i = 0; i < 3; ++i) c.require_output_type(i, {DType::kFloat32});
  c.require_output_type(3, {DType::kInt32});
  c.set_output_shape(3, {plan.batch});
}

struct Detection {
  int64_t box;
  int32_t label;
  float score;
};

std::unique_ptr<Kernel> prepare_combined(PrepareContext& c) {
  const CombinedPlan plan(c);
  const int64_t selection = SelectionSpace::bytes(c, plan.count);
  const int64_t found =
      checked_multiply(c, checked_multiply(c, std::min(plan.per_class, plan.count), plan.classes), sizeof(Detection));
  c.request_scratch(checked_add(c, selection, found));
  return make_kernel([plan, selection](RunContext& run) {
    const SelectionSpace space(run.scratch(), plan.count);
    auto* detections = reinterpret_cast<Detection*>(run.scratch() + selection);
    for (int i = 0; i < 4; ++i) {
      if (run.output(i).bytes > 0) fill_bytes(run.output(i).data, std::byte{0}, run.output(i).bytes);
    }
    for (int64_t b = 0; b < plan.batch; ++b) {
      const float* boxes = run.input(0).as<float>() + b * plan.count * plan.groups * 4;
      int64_t count = 0;
      for (int64_t label = 0; label < plan.classes; ++label) {
        const int64_t group = plan.groups == 1 ? 0 : label;
        const Candidates from{boxes + group * 4, run.input(1).as<float>() + b * plan.count * plan.classes + label,
                              plan.count, plan.groups * 4, plan.classes};
        const int64_t some =
            select_boxes(from, plan.limits, space.order, space.current, space.begin, space.chosen, space.scores);
        for (int64_t i = 0; i < some; ++i) {
          detections[count++] = {space.chosen[i] * plan.groups + group, static_cast<int32_t>(label), space.scores[i]};
        }
      }
      std::stable_sort(detections, detections + count,
                       [](const Detection& x, const Detection& y) { return x.score > y.score; });
      const int64_t kept = std::min(count, plan.total);
      run.output(3).mutable_as<int32_t>()[b] = static_cast<int32_t>(kept);
      for (int64_t i = 0; i < kept; ++i) {
        const int64_t at = b * plan.total + i;
        for (int64_t k = 0; k < 4; ++k) {
          const float corner = boxes[detections[i].box * 4 + k];
          run.output(0).mutable_as<float>()[at * 4 + k] = plan.clip ? std::clamp(corner, 0.0F, 1.0F) : corner;
        }
        run.output(1).mutable_as<float>()[at] = detections[i].score;
        run.output(2).mutable_as<float>()[at] = static_cast<float>(detections[i].label);
      }
    }
  });
}

// CTCGreedyDecoder(inputs [time, batch, classes], sequence_length) -> indices, values, shape, log probability

/// Calls use(batch, place, label) for the labels of each sequence: the best of each step, without repetitions and
/// blanks; blank is the last class.
template <typename T, typename Use>
void decode(const T* logits, const Shape& shape, const int32_t* lengths, bool merge, int64_t blank, const Use& use) {
  for_items(shape[1], static_cast<double>(shape[0] * shape[2]), [&](int64_t b) {
    int64_t previous = -1;
    int64_t place = 0;
    for (int64_t t = 0; t < lengths[b]; ++t) {
      const T* row = logits + (t * shape[1] + b) * shape[2];
      const int64_t best = std::max_element(row, row + shape[2]) - row;
      if (best != blank && !(merge && best == previous)) use(b, place++, best);
      previous = best;
    }
  });
}

int64_t blank_of(const OpContext& c) {
  const int64_t given = node_def(c).integer("blank_index", -1);
  return given < 0 ? given + c.input(0).shape[2] : given;
}

void infer_ctc(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  c.require_input_type(1, {DType::kInt32});
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() == 3 && shape[2] > 0, "the inputs have shape {}, expected [time, batch, classes]",
            shape.to_string());
  require_elements(c, 1, shape[1]);
  for (int i = 0; i < 3; ++i) c.require_output_type(i, {DType::kInt64});
  require_same_type(c, c.input(0), c.output(3));
  if (!c.known(0) || !c.known(1)) return c.defer();
  const auto lengths = c.input(1).values<int32_t>();
  for (int32_t length : lengths) {
    c.require(length >= 0 && length <= shape[0], "a sequence has length {}, expected 0 to {}", length, shape[0]);
  }
  int64_t count = 0;
  const bool merge = node_def(c).flag("merge_repeated", false);
  const auto note = [&](int64_t, int64_t, int64_t) { ++count; };
  if (c.input(0).dtype() == DType::kFloat32) {
    decode(c.input(0).values<float>().data(), shape, lengths.data(), merge, blank_of(c), note);
  } else {
    decode(c.input(0).values<double>().data(), shape, lengths.data(), merge, blank_of(c), note);
  }
  c.set_output_shape(0, {count, 2});
  c.set_output_shape(1, {count});
  c.set_output_shape(2, {2});
  c.set_output_shape(3, {shape[1], 1});
}

template <typename T>
std::unique_ptr<Kernel> ctc_kernel(bool merge, int64_t blank) {
  return make_kernel([merge, blank](RunContext& run) {
    const Shape& shape = run.input(0).shape;
    const T* logits = run.input(0).as<T>();
    const auto* lengths = run.input(1).as<int32_t>();
    int64_t count = 0;
    int64_t longest = 0;
    decode(logits, shape, lengths, merge, blank, [&](int64_t b, int64_t place, int64_t label) {
      if (count == run.output(1).elements()) return;
      run.output(0).mutable_as<int64_t>()[2 * count] = b;
      run.output(0).mutable_as<int64_t>()[2 * count + 1] = place;
      run.output(1).mutable_as<int64_t>()[count++] = label;
      longest = std::max(longest, place + 1);
    });
    run.output(2).mutable_as<int64_t>()[0] = shape[1];
    run.output(2).mutable_as<int64_t>()[1] = longest;
    for (int64_t b = 0; b < shape[1]; ++b) {
      T sum = 0;
      for (int64_t t = 0; t < lengths[b]; ++t) {
        const T* row = logits + (t * shape[1] + b) * shape[2];
        sum -= *std::max_element(row, row + shape[2]);
      }
      run.output(3).mutable_as<T>()[b] = sum;
    }
  });
}

std::unique_ptr<Kernel> prepare_ctc(PrepareContext& c) {
  const bool merge = node_def(c).flag("merge_repeated", false);
  return c.input(0).dtype() == DType::kFloat32 ? ctc_kernel<float>(merge, blank_of(c))
                                               : ctc_kernel<double>(merge, blank_of(c));
}

}  // namespace

void register_flex_detection(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, "f32"));
  };
  add("FlexNonMaxSuppression", 3, 1, infer_suppression, prepare_suppression);
  add("FlexNonMaxSuppressionV2", 4, 1, infer_suppression, prepare_suppression);
  add("FlexNonMaxSuppressionV3", 5, 1, infer_suppression, prepare_suppression);
  add("FlexNonMaxSuppressionV4", 5, 2, infer_suppression, prepare_suppression);
  add("FlexNonMaxSuppressionV5", 6, 3, infer_suppression, prepare_suppression);
  add("FlexCombinedNonMaxSuppression", 6, 4, infer_combined, prepare_combined);
  add("FlexCTCGreedyDecoder", 2, 4, infer_ctc, prepare_ctc);
}

}  // namespace leadline::ops

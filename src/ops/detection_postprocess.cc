// SPDX-License-Identifier: Apache-2.0
// TFLite_Detection_PostProcess: decodes the boxes of an SSD model and keeps the best that do not overlap.
//
// Regular: suppression for every class by itself, then the best of all classes. Fast: every box stands for its best
// class, one suppression for all. What is not found is filled with zeros.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "io/flexbuffer_map.h"
#include "ops/families.h"
#include "ops/loops/sort.h"

namespace leadline::ops {
namespace detection_postprocess {
namespace {

struct Options {
  int64_t max_detections = 0;
  int64_t classes_per_detection = 0;  // fast
  int64_t detections_per_class = 0;   // regular
  bool regular = false;
  float score_threshold = 0.0F;
  float overlap_threshold = 0.0F;
  int64_t classes = 0;
  float y_scale = 0.0F, x_scale = 0.0F, h_scale = 0.0F, w_scale = 0.0F;
};

Options read_options(const OpContext& c) {
  const auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  Options o;
  o.max_detections = map->get_int("max_detections", 0);
  o.classes_per_detection = map->get_int("max_classes_per_detection", 0);
  o.detections_per_class = std::min<int64_t>(map->get_int("detections_per_class", 100), o.max_detections);
  o.regular = map->get_bool("use_regular_nms", false);
  o.score_threshold = map->get_float("nms_score_threshold", 0.0F);
  o.overlap_threshold = map->get_float("nms_iou_threshold", 0.0F);
  o.classes = map->get_int("num_classes", 0);
  o.y_scale = map->get_float("y_scale", 0.0F);
  o.x_scale = map->get_float("x_scale", 0.0F);
  o.h_scale = map->get_float("h_scale", 0.0F);
  o.w_scale = map->get_float("w_scale", 0.0F);
  c.require(o.max_detections > 0, "max_detections is {}, expected at least 1", o.max_detections);
  c.require(o.classes_per_detection > 0, "max_classes_per_detection is {}, expected at least 1",
            o.classes_per_detection);
  c.require(!o.regular || o.detections_per_class > 0, "detections_per_class is {}, expected at least 1",
            o.detections_per_class);
  c.require(o.classes > 0, "num_classes is {}, expected at least 1", o.classes);
  c.require(o.overlap_threshold > 0.0F && o.overlap_threshold <= 1.0F, "nms_iou_threshold is {}, expected 0 to 1",
            o.overlap_threshold);
  c.require(o.y_scale != 0.0F && o.x_scale != 0.0F && o.h_scale != 0.0F && o.w_scale != 0.0F,
            "a box scale is missing or 0");
  return o;
}

void infer(InferContext& c) {
  const Options o = read_options(c);
  for (int i = 0; i < 3; ++i) {
    c.require_input_type(i, {DType::kFloat32, DType::kUInt8, DType::kInt8});
    if (c.input(i).dtype() != DType::kFloat32) c.require_quantized(c.input(i), "input");
  }
  for (int i = 0; i < 4; ++i) c.require_output_type(i, {DType::kFloat32});
  const Shape& boxes = c.input(0).shape;
  const Shape& scores = c.input(1).shape;
  const Shape& anchors = c.input(2).shape;
  c.require(boxes.rank() == 3 && boxes[0] == 1 && boxes[2] >= 4, "boxes have shape {}, expected [1, n, 4 or more]",
            boxes.to_string());
  c.require(scores.rank() == 3 && scores[0] == 1 && scores[1] == boxes[1], "scores have shape {}, expected [1, {}, n]",
            scores.to_string(), boxes[1]);
  c.require(anchors.rank() == 2 && anchors[0] >= boxes[1] && anchors[1] == 4, "anchors have shape {}, expected [{}, 4]",
            anchors.to_string(), boxes[1]);
  c.require(boxes[1] <= std::numeric_limits<int32_t>::max(), "there are {} boxes, which is too many", boxes[1]);
  c.require(scores[2] == o.classes || scores[2] == o.classes + 1,
            "scores are for {} classes, expected {}, or one more for the background", scores[2], o.classes);
  const int64_t found = o.max_detections * o.classes_per_detection;
  c.set_output_shape(0, {1, found, 4});
  c.set_output_shape(1, {1, found});
  c.set_output_shape(2, {1, found});
  c.set_output_shape(3, {1});
}

struct Box {
  float ymin = 0.0F, xmin = 0.0F, ymax = 0.0F, xmax = 0.0F;
};

struct Found {
  int32_t box = 0;
  int32_t category = 0;
  float score = 0.0F;
};

/// Workspace, cut out of the kernel's scratch memory.
struct Workspace {
  Box* boxes;
  float* scores;        // of one class, or the best of each box
  int32_t* order;       // boxes above the threshold, best first
  uint8_t* suppressed;  // by place in `order`
  int32_t* selected;
  int32_t* categories;  // of one box
  Found* found;         // regular: the best so far

  static int64_t bytes(int64_t boxes, const Options& o) {
    return boxes * static_cast<int64_t>(sizeof(Box) + 3 * sizeof(float) + 1) + o.classes * 4 +
           (o.regular ? o.max_detections * static_cast<int64_t>(sizeof(Found)) : 0);
  }
  Workspace(std::byte* memory, int64_t count, const Options& o) {
    auto take = [&]<typename T>(T*& pointer, int64_t n) {
      pointer = reinterpret_cast<T*>(memory);
      memory += n * static_cast<int64_t>(sizeof(T));
    };
    take(boxes, count);
    take(scores, count);
    take(order, count);
    take(selected, count);
    take(categories, o.classes);
    take(found, o.regular ? o.max_detections : 0);
    take(suppressed, count);
  }
};

/// Element `i` of a tensor as a float.
float real_at(const TensorView& view, int64_t i) {
  if (view.dtype == DType::kFloat32) return view.as<float>()[i];
  const int32_t level = view.dtype == DType::kUInt8 ? view.as<uint8_t>()[i] : view.as<int8_t>()[i];
  return static_cast<float>(level - view.quantization->zero_point0()) * view.quantization->scale0();
}

/// Boxes are given as offsets of centre and size from their anchors.
void decode_boxes(const RunContext& c, const Options& o, int64_t count, Box* decoded) {
  const TensorView& boxes = c.input(0);
  const TensorView& anchors = c.input(2);
  const int64_t stride = boxes.shape[2];
  for_items(count, 64, [&](int64_t i) {
    auto offset = [&](int64_t k) { return static_cast<double>(real_at(boxes, i * stride + k)); };
    auto anchor = [&](int64_t k) { return static_cast<double>(real_at(anchors, i * 4 + k)); };
    const double h = anchor(2);
    const double w = anchor(3);
    const auto y = static_cast<float>(offset(0) / o.y_scale * h + anchor(0));
    const auto x = static_cast<float>(offset(1) / o.x_scale * w + anchor(1));
    const auto half_h = static_cast<float>(0.5 * std::exp(offset(2) / o.h_scale) * h);
    const auto half_w = static_cast<float>(0.5 * std::exp(offset(3) / o.w_scale) * w);
    decoded[i] = {y - half_h, x - half_w, y + half_h, x + half_w};
    c.require(!(decoded[i].ymin > decoded[i].ymax || decoded[i].xmin > decoded[i].xmax),
              "box {} is inside out: its anchor has a negative size", i);
  });
}

/// Intersection over union.
float overlap(const Box& a, const Box& b) {
  const float area_a = (a.ymax - a.ymin) * (a.xmax - a.xmin);
  const float area_b = (b.ymax - b.ymin) * (b.xmax - b.xmin);
  if (area_a <= 0.0F || area_b <= 0.0F) return 0.0F;
  const float h = std::max(std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin), 0.0F);
  const float w = std::max(std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin), 0.0F);
  return h * w / (area_a + area_b - h * w);
}

/// Fills `selected` with at most `limit` boxes, best first, none of which overlaps a better one too much.
int64_t suppress(const Options& o, int64_t count, int64_t limit, const Workspace& w) {
  int64_t kept = 0;
  for_items(count, 1, [&](int64_t i) {
    if (w.scores[i] >= o.score_threshold) w.order[kept++] = static_cast<int32_t>(i);  // never NaN
  });
  sort_in_pieces(w.order, kept,
                 [&](int32_t a, int32_t b) { return w.scores[a] != w.scores[b] ? w.scores[a] > w.scores[b] : a < b; });
  fill_bytes(reinterpret_cast<std::byte*>(w.suppressed), std::byte{0}, kept);
  int64_t selected = 0;
  for_items(kept, 8 * static_cast<double>(kept), [&](int64_t i) {
    if (selected == limit) return false;
    if (w.suppressed[i]) return true;
    const Box& best = w.boxes[w.order[i]];
    w.selected[selected++] = w.order[i];
    for_items(kept - i - 1, 8, [&](int64_t k) {
      const int64_t j = i + 1 + k;
      if (!w.suppressed[j] && overlap(best, w.boxes[w.order[j]]) > o.overlap_threshold) w.suppressed[j] = 1;
    });
    return true;
  });
  return selected;
}

void write_detection(const RunContext& c, int64_t place, const Box& box, int64_t category, float score) {
  float* to = c.output(0).mutable_as<float>() + 4 * place;
  to[0] = box.ymin;
  to[1] = box.xmin;
  to[2] = box.ymax;
  to[3] = box.xmax;
  c.output(1).mutable_as<float>()[place] = static_cast<float>(category);
  c.output(2).mutable_as<float>()[place] = score;
}

int64_t run_regular(const RunContext& c, const Options& o, int64_t count, const Workspace& w) {
  const TensorView& scores = c.input(1);
  const int64_t columns = scores.shape[2];
  int64_t found = 0;
  for_items(o.classes, 16 * static_cast<double>(count), [&](int64_t category) {
    for_items(count, 4,
              [&](int64_t i) { w.scores[i] = real_at(scores, i * columns + columns - o.classes + category); });
    const int64_t selected = suppress(o, count, o.detections_per_class, w);
    // Merged behind detections of the same score, of which the best max_detections stay.
    for_items(selected, 64 + static_cast<double>(o.max_detections), [&](int64_t k) {
      const Found entry{w.selected[k], static_cast<int32_t>(category), w.scores[w.selected[k]]};
      Found* const end = w.found + found;
      Found* const place =
          std::upper_bound(w.found, end, entry, [](const Found& a, const Found& b) { return a.score > b.score; });
      if (place - w.found >= o.max_detections) return false;  // the rest of this class is not better
      found = std::min(found + 1, o.max_detections);
      std::move_backward(place, std::min(end, w.found + found - 1), w.found + found);
      *place = entry;
      return true;
    });
  });
  for_items(found, 8,
            [&](int64_t k) { write_detection(c, k, w.boxes[w.found[k].box], w.found[k].category, w.found[k].score); });
  return found;
}

int64_t run_fast(const RunContext& c, const Options& o, int64_t count, const Workspace& w) {
  const TensorView& scores = c.input(1);
  const int64_t columns = scores.shape[2];
  auto score = [&](int64_t box, int64_t category) {
    const float s = real_at(scores, box * columns + columns - o.classes + category);
    return std::isnan(s) ? -std::numeric_limits<float>::infinity() : s;
  };
  for_items(count, 8 * static_cast<double>(o.classes), [&](int64_t i) {
    w.scores[i] = score(i, 0);
    for_items(o.classes, 8, [&](int64_t k) { w.scores[i] = std::max(w.scores[i], score(i, k)); });
  });
  const int64_t categories = std::min(o.classes_per_detection, o.classes);
  const int64_t selected = suppress(o, count, o.max_detections, w);
  for_items(selected, 64 * static_cast<double>(o.classes), [&](int64_t s) {
    const int32_t box = w.selected[s];
    std::iota(w.categories, w.categories + o.classes, 0);
    std::partial_sort(w.categories, w.categories + categories, w.categories + o.classes, [&](int32_t a, int32_t b) {
      const float score_a = score(box, a);
      const float score_b = score(box, b);
      return score_a != score_b ? score_a > score_b : a < b;
    });
    for (int64_t k = 0; k < categories; ++k) {
      const int32_t category = w.categories[k];
      write_detection(c, s * o.classes_per_detection + k, w.boxes[box], category, score(box, category));
    }
  });
  return selected;
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const Options o = read_options(c);
  const int64_t count = c.input(0).shape[1];
  c.request_scratch(Workspace::bytes(count, o));
  return make_kernel([o, count](RunContext& run) {
    const Workspace w(run.scratch(), count, o);
    for (int i = 0; i < 4; ++i) std::fill_n(run.output(i).mutable_as<float>(), run.output(i).elements(), 0.0F);
    decode_boxes(run, o, count, w.boxes);
    const int64_t found = o.regular ? run_regular(run, o, count, w) : run_fast(run, o, count, w);
    run.output(3).mutable_as<float>()[0] = static_cast<float>(found);
  });
}

}  // namespace
}  // namespace detection_postprocess

void register_detection_postprocess(Registry& registry) {
  using namespace detection_postprocess;
  registry.add({.id = ir::OpId::custom("TFLite_Detection_PostProcess"),
                .max_version = 1,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .min_outputs = 4,
                .max_outputs = 4,
                .infer = infer,
                .prepare = prepare,
                .types = "f32 u8 i8"});
}

}  // namespace leadline::ops

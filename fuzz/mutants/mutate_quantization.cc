// SPDX-License-Identifier: Apache-2.0
// Mutations of scales, zero points and the forms of quantization.
#include <algorithm>
#include <cfloat>

#include "mutation.h"

namespace leadline::fuzz {
namespace {

TablePtr pick_quantized(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  for (int i = 0; i < 8; ++i) {
    const TablePtr tensor = pick_tensor(subgraph, random);
    if (tensor == nullptr) return nullptr;
    const TablePtr q = tensor->table("quantization");
    if (q != nullptr && !q->bytes("scale").empty()) return tensor;
  }
  return nullptr;
}

float odd_scale(Random& random, float now) {
  switch (random.below(3)) {
    case 0:
      return now * random.pick<float>({0.5F, 2.0F, 1.0001F, 1e-6F, 1e6F, 1e-20F, 1e20F, 256.0F, 1.0F / 65536});
    case 1:
      return random.pick<float>({1e-38F, 1e38F, FLT_MIN, FLT_MAX, 1e-45F, 1.0F, 1.0F / 128, 1.0F / 256, 1.0F / 32768});
    default:
      return odd_float(random);
  }
}

bool change_scale(Subject& subject, Random& random) {
  const TablePtr tensor = pick_quantized(subject, random);
  if (tensor == nullptr) return false;
  const TablePtr q = tensor->table("quantization");
  auto scales = q->floats("scale");
  if (random.once_in(2)) {
    for (float& scale : scales) scale = odd_scale(random, scale);
  } else {
    float& scale = scales[random.below(scales.size())];
    scale = odd_scale(random, scale);
  }
  q->set_floats("scale", scales);
  return true;
}

bool change_zero_point(Subject& subject, Random& random) {
  const TablePtr tensor = pick_quantized(subject, random);
  if (tensor == nullptr) return false;
  const TablePtr q = tensor->table("quantization");
  auto points = q->integers("zero_point");
  if (points.empty()) points.assign(q->floats("scale").size(), 0);
  int64_t& point = points[random.below(points.size())];
  point = random.once_in(2) ? random.pick<int64_t>({-128, 127, 0, 255, 1, -1, 32767, -32768, 128})
                            : odd_integer(random, point);
  if (random.once_in(3)) points.assign(points.size(), point);
  q->set_integers("zero_point", points);
  return true;
}

bool drop_quantization(Subject& subject, Random& random) {
  const TablePtr tensor = pick_quantized(subject, random);
  if (tensor == nullptr) return false;
  const TablePtr q = tensor->table("quantization");
  switch (random.below(3)) {
    case 0:
      tensor->clear("quantization");
      break;
    case 1:
      q->clear("scale");
      break;
    default:
      q->clear("zero_point");
  }
  return true;
}

bool add_per_tensor(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  set_per_tensor(*tensor, odd_scale(random, 0.1F), random.between(-2, 2) * random.pick<int64_t>({0, 1, 64}));
  return true;
}

bool make_per_channel(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  const auto shape = tensor->integers("shape");
  if (shape.empty()) return false;
  const size_t axis = random.below(shape.size());
  int64_t count = shape[axis];
  if (random.once_in(6)) count = odd_integer(random, count);
  if (count < 0 || count > 4096) return false;
  TablePtr q = tensor->table("quantization");
  if (q == nullptr) {
    q = new_table("QuantizationParameters");
    (*tensor)["quantization"] = q;
  }
  std::vector<float> scales(static_cast<size_t>(count));
  for (float& scale : scales) scale = static_cast<float>(0.001 + random.unit());
  if (random.once_in(4) && count > 0) scales[random.below(scales.size())] = odd_scale(random, 1.0F);
  q->set_floats("scale", scales);
  q->set_integers("zero_point", std::vector<int64_t>(scales.size(), random.pick<int64_t>({0, 0, 0, 1, -128})));
  q->set("quantized_dimension", static_cast<int64_t>(axis));
  return true;
}

bool change_counts(Subject& subject, Random& random) {
  const TablePtr tensor = pick_quantized(subject, random);
  if (tensor == nullptr) return false;
  const TablePtr q = tensor->table("quantization");
  switch (random.below(4)) {
    case 0: {
      auto scales = q->floats("scale");
      scales.resize(random.pick<size_t>({0, 1, 2, scales.size() + 1, scales.size() - 1}), 0.5F);
      q->set_floats("scale", scales);
      break;
    }
    case 1: {
      auto points = q->integers("zero_point");
      points.resize(random.pick<size_t>({0, 1, 2, points.size() + 1}), 0);
      q->set_integers("zero_point", points);
      break;
    }
    case 2:
      q->set("quantized_dimension", odd_integer(random, q->integer("quantized_dimension")));
      break;
    default: {
      q->set_floats("min", {odd_float(random)});
      q->set_floats("max", {odd_float(random), odd_float(random)});
    }
  }
  return true;
}

bool copy_quantization(Subject& subject, Random& random) {
  const TablePtr from = pick_quantized(subject, random);
  const TablePtr to = pick_tensor(subject.subgraph(random), random);
  if (from == nullptr || to == nullptr || from == to) return false;
  (*to)["quantization"] = clone(from->table("quantization"));
  return true;
}

/// Blocks that share a scale, with tensors of scales and zero points that fit or do not.
bool make_blockwise(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr tensor = pick_tensor(subgraph, random);
  if (tensor == nullptr) return false;
  auto shape = tensor->integers("shape");
  if (shape.empty()) return false;
  const int64_t block = random.once_in(4) ? odd_integer(random, 32) : random.pick<int64_t>({1, 2, 4, 16, 32});
  if (block > 0) shape.back() = std::max<int64_t>(shape.back() / block, random.once_in(4) ? 0 : 1);
  const auto companion = [&](int64_t type) {
    const TablePtr scales = new_table("Tensor");
    scales->set_integers("shape", shape);
    scales->set("type", random.once_in(8) ? 2 : type);
    const int64_t wanted = wanted_bytes(*scales);
    if (wanted > 0 && !random.once_in(8)) {
      // 0x3c00 is one in float16, and a small number in others.
      std::string bytes(static_cast<size_t>(wanted), '\x3c');
      set_contents(subject, *scales, bytes);
    }
    return add_tensor(subgraph, scales);
  };
  const TablePtr details = new_table(random.once_in(8) ? "MultiAxisQuantization" : "BlockwiseQuantization");
  details->set("scales", random.once_in(6) ? odd_integer(random, 1) : companion(random.pick<int64_t>({0, 1, 1, 18})));
  details->set("zero_points", random.once_in(4) ? companion(random.pick<int64_t>({1, 9, 17}))
                                                : random.pick<int64_t>({-1, -1, 0, 1000}));
  details->set("block_size", block);
  TablePtr q = tensor->table("quantization");
  if (q == nullptr || random.once_in(2)) q = new_table("QuantizationParameters");
  q->set("details_type", random.once_in(8) ? random.pick<int64_t>({1, 3, 4, 255}) : 2);
  (*q)["details"] = details;
  if (random.once_in(10)) q->clear("details");
  q->set("quantized_dimension", random.pick<int64_t>({0, 0, 1, static_cast<int64_t>(shape.size()), -1}));
  (*tensor)["quantization"] = q;
  if (random.once_in(2)) {
    tensor->set("type", random.pick<int64_t>({9, 17, 19}));
    refit(subject, *tensor, random);
  }
  return true;
}

bool scale_everything(Subject& subject, Random& random) {
  const float factor = random.pick<float>({1e-10F, 1e-3F, 0.5F, 3.0F, 1e3F, 1e10F, 1e30F});
  bool any = false;
  for (const TablePtr& subgraph : subject.subgraphs()) {
    for (const TablePtr& tensor : subgraph->tables("tensors")) {
      const TablePtr q = tensor->table("quantization");
      if (q == nullptr || random.once_in(3)) continue;
      auto scales = q->floats("scale");
      for (float& scale : scales) scale *= factor;
      any = any || !scales.empty();
      q->set_floats("scale", scales);
    }
  }
  return any;
}

}  // namespace

std::vector<Mutation> quantization_mutations() {
  return {{"change_scale", 9, change_scale},           {"change_zero_point", 6, change_zero_point},
          {"drop_quantization", 4, drop_quantization}, {"add_per_tensor", 3, add_per_tensor},
          {"make_per_channel", 6, make_per_channel},   {"change_counts", 5, change_counts},
          {"copy_quantization", 3, copy_quantization}, {"make_blockwise", 4, make_blockwise},
          {"scale_everything", 3, scale_everything}};
}

}  // namespace leadline::fuzz

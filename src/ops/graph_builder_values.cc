// SPDX-License-Identifier: Apache-2.0
// The part of GraphBuilder that makes values - inputs, variables, constants - with the checks of what they are given,
// and answers what is known about them.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/join.h"
#include "ir/sources.h"
#include "ops/graph_builder.h"

namespace leadline::ops {

void GraphBuilder::check_dims(const std::string& name, const Dims& dims, bool may_be_unknown) {
  require(dims.size() <= kMaxRank, ErrorCode::kUnsupported, "'{}' has rank {}, Leadline handles up to {}", name,
          dims.size(), kMaxRank);
  for (int64_t size : dims) {
    require(size >= (may_be_unknown ? -1 : 0) && size <= INT32_MAX, kBadArgument,
            "'{}' has a dimension of {}, expected one that fits int32", name, size);
  }
}

void GraphBuilder::check_index(int value) const {
  require(value >= 0 && value < static_cast<int>(subgraph().values.size()), kBadArgument,
          "value {} does not exist: subgraph '{}' has {}", value, subgraph().name, subgraph().values.size());
}

std::string GraphBuilder::unique_name(const std::string& name) {
  auto& names = state().names;
  const auto [it, is_new] = names.try_emplace(name, 0);
  if (is_new) return name;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", name, ++names[name]);
    if (names.try_emplace(candidate, 0).second) return candidate;
  }
}

bool GraphBuilder::is_input(int index) const {
  const std::vector<int>& inputs = subgraph().inputs;
  return std::find(inputs.begin(), inputs.end(), index) != inputs.end();
}

void GraphBuilder::rename(int index, const std::string& name) {
  check_index(index);
  ir::Value& value = subgraph().value(index);
  if (value.name == name) return;
  state().names.erase(value.name);
  value.name = unique_name(name);
}

int GraphBuilder::add_value(const std::string& name, DType dtype, Quantization quantization) {
  ir::Value value;
  value.name = unique_name(name);
  value.dtype = dtype;
  value.has_rank = true;
  value.quantization = std::move(quantization);
  subgraph().values.push_back(std::move(value));
  return static_cast<int>(subgraph().values.size()) - 1;
}

int GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims, Quantization quantization) {
  return add_input(name, dtype, dims, std::move(quantization), subgraph().inputs.size());
}

int GraphBuilder::add_input(const std::string& name, DType dtype, const Dims& dims, Quantization quantization,
                            size_t apart) {
  return in_context([&] {
    check_dims(name, dims, true);
    const int index = add_value(name, dtype, std::move(quantization));
    tell_samples_apart(dims);
    SizeSamples shapes;
    const auto number = static_cast<int>(subgraph().inputs.size());
    for (size_t s = 0; s < kSizeSamples; ++s) {
      shapes[s] = sample_shape(dims, s, subgraph().inputs.size(), apart);
      for (int axis = 0; axis < shapes[s]->rank(); ++axis) {
        const auto chosen = choices_.find({current_.back(), number, axis});
        if (chosen != choices_.end()) shapes[s]->set(axis, chosen->second[s]);
      }
    }
    set_sample_shapes(index, shapes);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis] < 0) state().unknown_inputs.emplace_back(index, static_cast<int>(axis));
    }
    subgraph().inputs.push_back(index);
    return index;
  });
}

int GraphBuilder::unranked_input(const std::string& name, DType dtype) {
  return in_context([&] {
    const int index = add_value(name, dtype, {});
    tell_samples_apart({-1});
    state().unranked = true;
    SizeSamples shapes;
    constexpr size_t kRanks = 6;
    for (size_t s = 0; s < kSizeSamples; ++s) shapes[s] = sample_shape(Dims((s + 2) % kRanks, -1), s);
    set_sample_shapes(index, shapes);
    subgraph().inputs.push_back(index);
    return index;
  });
}

int GraphBuilder::input(const std::string& name, DType dtype, const Dims& dims, const SizeSamples& samples) {
  const int index = add_input(name, dtype, dims, {}, 0);
  state().is_body = true;
  SizeSamples shapes = this->samples(index);
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (!samples[s]) state().possible[s] = false;
    if (!samples[s] || samples[s]->rank() != static_cast<int>(dims.size())) continue;
    for (int axis = 0; axis < samples[s]->rank(); ++axis) {
      if (dims[static_cast<size_t>(axis)] >= 0 || !shapes[s]) continue;
      const auto common = samples.common_size(axis);
      if (!common) shapes[s]->set(axis, (*samples[s])[axis]);
      // It starts as this size and may become another: any, or, where the body cuts it into tiles, a multiple.
      if (common && *common > 0 && s % 2 == 1) shapes[s]->set(axis, *common * static_cast<int64_t>(1 + s / 2));
    }
  }
  set_sample_shapes(index, shapes);
  return index;
}

int GraphBuilder::variable(const std::string& name, DType dtype, const Dims& dims, Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, false);
    const int index = add_value(name, dtype, std::move(quantization));
    subgraph().values.back().variable = true;
    set_dims(index, dims);
    return index;
  });
}

void GraphBuilder::make_constant(int index, std::vector<std::byte> bytes) {
  graph_->storage.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  ir::Value& value = subgraph().value(index);
  value.constant = true;
  value.data = *graph_->storage.back();
}

int GraphBuilder::constant(const std::string& name, DType dtype, const Dims& dims, std::span<const std::byte> bytes,
                           Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, false);
    const auto needed = storage_bytes(dtype, Shape(std::span<const int64_t>(dims)));
    require(dtype_bits(dtype) == 0 || needed == static_cast<int64_t>(bytes.size()), kBadArgument,
            "constant '{}' of type {} and shape [{}] needs {} bytes, it is given {}", name, dtype_name(dtype),
            join(dims, ", "), needed.value_or(-1), bytes.size());
    const int index = add_value(name, dtype, std::move(quantization));
    set_dims(index, dims);
    make_constant(index, {bytes.begin(), bytes.end()});
    return index;
  });
}

int GraphBuilder::constant(const std::string& name, DType dtype, const Dims& dims,
                           std::shared_ptr<const ir::ConstantSource> source, Quantization quantization) {
  return in_context([&] {
    check_dims(name, dims, false);
    const auto needed = storage_bytes(dtype, Shape(std::span<const int64_t>(dims)));
    require(dtype_bits(dtype) > 0 && source != nullptr && needed == source->bytes(), kBadArgument,
            "constant '{}' of type {} and shape [{}] needs {} bytes, its source has {}", name, dtype_name(dtype),
            join(dims, ", "), needed.value_or(-1), source == nullptr ? 0 : source->bytes());
    std::vector<std::byte> small;
    const bool read_now = *needed <= kSmallConstant;
    if (read_now) small = ir::read_all(*source);
    const int index = add_value(name, dtype, std::move(quantization));
    set_dims(index, dims);
    if (read_now) {
      make_constant(index, std::move(small));
    } else {
      subgraph().values.back().constant = true;
      subgraph().values.back().source = std::move(source);
    }
    return index;
  });
}

bool GraphBuilder::has_rank(int index) const {
  check_index(index);
  return value(index).has_rank;
}

Dims GraphBuilder::dims(int index) const {
  const ir::Value& v = value(index);
  require(has_rank(index), ErrorCode::kUnsupported,
          "'{}' has an unknown rank, which this needs to know; save the model with an input signature that has it",
          v.name);
  if (v.signature) return Dims(v.signature->begin(), v.signature->end());
  return Dims(v.shape);
}

std::optional<std::span<const std::byte>> GraphBuilder::known(int index) const {
  check_index(index);
  const ir::Value& v = value(index);
  if (!v.constant || v.source != nullptr) return {};
  return v.data;
}

std::optional<std::vector<int64_t>> GraphBuilder::known_ints(int index) const {
  const auto bytes = known(index);
  const DType type = value(index).dtype;
  if (!bytes || (type != DType::kInt32 && type != DType::kInt64)) return {};
  const size_t size = type == DType::kInt32 ? 4 : 8;
  std::vector<int64_t> numbers(bytes->size() / size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    int32_t narrow = 0;
    if (type == DType::kInt32) {
      std::memcpy(&narrow, bytes->data() + i * size, size);
      numbers[i] = narrow;
    } else {
      std::memcpy(&numbers[i], bytes->data() + i * size, size);
    }
  }
  return numbers;
}

}  // namespace leadline::ops

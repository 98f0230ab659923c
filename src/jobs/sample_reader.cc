// SPDX-License-Identifier: Apache-2.0
// Finds the inputs that the tensors of a sample are for, and checks that they fit.
#include "leadline/sample_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/boundary.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "core/string_tensor.h"
#include "jobs/sample_lint.h"
#include "jobs/sample_shapes.h"
#include "jobs/sample_values.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

using jobs::Conversion;
using jobs::SampleInput;

/// What samples may call the inputs of a signature.
struct Signature {
  std::string key;
  int subgraph = 0;
  std::map<std::string, size_t> by_name;
};

std::string quoted_names(const std::vector<SampleInput>& inputs) {
  std::string names;
  for (const SampleInput& input : inputs) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", input.name);
  return names;
}

std::string type_of(const SampleTensor& tensor) {
  return tensor.type_name.empty() ? dtype_name(tensor.dtype) : tensor.type_name;
}

/// "[0, 3]": the place of element `index`.
std::string place_text(const Shape& shape, int64_t index) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[static_cast<size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return fmt::format("[{}]", join(place, ", "));
}

std::vector<SampleInput> inputs_of(const Model& model, int subgraph) {
  const SubgraphInfo info = model.subgraph(subgraph);
  const ir::Subgraph& graph = model.loaded()->graph()->subgraphs[static_cast<size_t>(subgraph)];
  std::vector<SampleInput> inputs;
  for (const int index : info.inputs) {
    SampleInput& input = inputs.emplace_back();
    input.tensor = info.tensors[static_cast<size_t>(index)];
    input.name = input.tensor.name;
    const auto reader = std::find_if(info.nodes.begin(), info.nodes.end(), [&](const NodeInfo& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), index) != node.inputs.end();
    });
    if (reader == info.nodes.end()) continue;
    input.first_op = graph.nodes[static_cast<size_t>(reader->index)].op;
    if (!reader->outputs.empty()) input.first_output = reader->outputs[0];
  }
  return inputs;
}

}  // namespace

struct SampleReader::State {
  State(const Model& read_for, SampleSource& read_from, SampleReaderOptions chosen)
      : model(read_for), source(read_from), options(chosen) {
    require(options.limit >= 0, kBadArgument, "the limit of samples is {}, expected 0 (all) or more", options.limit);
    for (const SignatureInfo& signature : model.signatures()) add_signature(signature);
    // Samples without a key are for the main subgraph; the names of a signature are known when it is the only one.
    if (signatures.size() != 1 || signatures[0].subgraph != 0) {
      main = add_signature({"", 0, {}, {}});
      signatures.pop_back();
    } else {
      main = signatures[0];
    }
  }

  Signature add_signature(const SignatureInfo& info) {
    Signature signature{info.key, info.subgraph, {}};
    const auto at = static_cast<size_t>(info.subgraph);
    if (inputs.size() <= at) inputs.resize(at + 1);
    if (inputs[at].empty()) inputs[at] = inputs_of(model, info.subgraph);
    for (size_t i = 0; i < inputs[at].size(); ++i) {
      SampleInput& input = inputs[at][i];
      for (const auto& [name, tensor] : info.inputs) {
        if (tensor == input.tensor.index) input.name = name;
      }
      const std::string& full = input.tensor.name;
      const std::string plain = full.substr(0, full.find(':'));
      const std::string prefix = info.key + "_";
      signature.by_name.try_emplace(full, i);
      signature.by_name.try_emplace(plain, i);
      signature.by_name.try_emplace(plain.starts_with(prefix) ? plain.substr(prefix.size()) : plain, i);
    }
    for (size_t i = 0; i < inputs[at].size(); ++i) signature.by_name[inputs[at][i].name] = i;
    signatures.push_back(signature);
    return signature;
  }

  std::string sample_text() const {
    return sample.name.empty() ? fmt::format("sample {}", count) : fmt::format("sample {} ({})", count, sample.name);
  }

  std::string known_signatures() const {
    std::string known;
    for (const Signature& s : signatures) known += fmt::format("{}'{}'", known.empty() ? "" : ", ", s.key);
    return known.empty() ? "none" : known;
  }

  /// The signature the sample is for; puts its inputs into order.
  void assign() {
    const bool named = std::any_of(sample.inputs.begin(), sample.inputs.end(),
                                   [](const SampleTensor& tensor) { return !tensor.name.empty(); });
    const Signature* signature = &main;
    if (!sample.signature.empty()) {
      const auto found = std::find_if(signatures.begin(), signatures.end(),
                                      [&](const Signature& s) { return s.key == sample.signature; });
      require(found != signatures.end(), kBadArgument, "{}: the model has no signature '{}'; it has {}", sample_text(),
              sample.signature, known_signatures());
      signature = &*found;
    } else {
      require(!named || signatures.size() <= 1, kBadArgument,
              "{}: the model has several signatures ({}): name the one that a sample is for", sample_text(),
              known_signatures());
    }
    sample.subgraph = signature->subgraph;
    const std::vector<SampleInput>& wanted = inputs[static_cast<size_t>(sample.subgraph)];
    if (named || sample.inputs.empty()) {
      order_by_name(*signature, wanted);
    } else if (sample.inputs.size() != wanted.size()) {
      std::string hint;
      if (sample.inputs.size() == wanted.size() + 1) {
        hint = "; leave out the labels if it has any";
      } else if (wanted.size() == 1 && sample.inputs[0].shape.rank() < wanted[0].tensor.shape.rank()) {
        hint = "; a sample is a list of arrays, one for each input";
      }
      fail(kBadArgument, "{}: {} arrays for {} inputs ({}){}", sample_text(), sample.inputs.size(), wanted.size(),
           quoted_names(wanted), hint);
    }
  }

  void order_by_name(const Signature& signature, const std::vector<SampleInput>& wanted) {
    std::vector<std::optional<SampleTensor>> found(wanted.size());
    for (SampleTensor& tensor : sample.inputs) {
      const auto place = signature.by_name.find(tensor.name);
      require(place != signature.by_name.end(), kBadArgument, "{}: the model has no input '{}'; the inputs are {}",
              sample_text(), tensor.name, quoted_names(wanted));
      found[place->second] = std::move(tensor);
    }
    sample.inputs.clear();
    for (size_t i = 0; i < wanted.size(); ++i) {
      require(found[i].has_value(), kBadArgument, "{}: input '{}' is missing; the inputs are {}", sample_text(),
              wanted[i].name, quoted_names(wanted));
      sample.inputs.push_back(std::move(*found[i]));
    }
  }

  void check(int position) {
    const SampleInput& input = inputs[static_cast<size_t>(sample.subgraph)][static_cast<size_t>(position)];
    SampleTensor& tensor = sample.inputs[static_cast<size_t>(position)];
    const std::string where = fmt::format("{}, input '{}'", sample_text(), input.name);
    drop_single_dimension(input, tensor.shape);
    check_shape(where, input, tensor.shape);
    const Conversion conversion = jobs::conversion_of(tensor.dtype, input.tensor);
    require(conversion != Conversion::kRefused, kBadArgument, "{}: the type is {}, the model takes {}", where,
            type_of(tensor), input.tensor.dtype == DType::kString ? "strings" : dtype_name(input.tensor.dtype));
    check_bytes(where, tensor);
    if (conversion == Conversion::kInteger || conversion == Conversion::kPack) {
      require(jobs::integers_fit(tensor, input.tensor.dtype), kBadArgument,
              "{}: the type is {}, and its values do not fit the {} that the model takes", where, type_of(tensor),
              dtype_name(input.tensor.dtype));
    }
    const bool real = jobs::is_real(input.tensor.dtype);
    if (!options.lint || tensor.data.empty() || !(real || conversion == Conversion::kQuantize)) return;
    const jobs::ValueSummary values = jobs::summarize(tensor, real ? input.tensor.dtype : tensor.dtype);
    require(values.not_finite == 0, kBadArgument, "{}: {} of {} values are NaN or infinite, the first at {}", where,
            values.not_finite, tensor.shape.elements(), place_text(tensor.shape, values.first_not_finite));
    if (finished || !real) return;
    if (jobs::is_integer(tensor.dtype)) lint.add_integers(sample.subgraph, position, input, where, count, tensor);
    lint.add_values(sample.subgraph, position, input, where, count, tensor, values);
  }

  /// A batch of one sample of a model without a batch dimension is that sample.
  static void drop_single_dimension(const SampleInput& input, Shape& shape) {
    if (shape.rank() != input.tensor.shape.rank() + 1 || shape[0] != 1) return;
    const std::vector<int64_t> rest(shape.begin() + 1, shape.end());
    shape = Shape(std::span<const int64_t>(rest));
  }

  static void check_shape(const std::string& where, const SampleInput& input, const Shape& shape) {
    const Shape& wanted = input.tensor.shape;
    bool fits = shape.rank() == wanted.rank(), same_tail = fits;
    for (int axis = 0; fits && axis < shape.rank(); ++axis) {
      fits = input.takes_any(axis) || shape[axis] == wanted[axis];
    }
    if (fits) return;
    for (int axis = 1; same_tail && axis < shape.rank(); ++axis) same_tail = shape[axis] == wanted[axis];
    std::string hint;
    if (shape.rank() + 1 == wanted.rank()) {
      hint = "; add the batch dimension with array[None]";
    } else if (same_tail) {
      hint = "; the model's batch size is fixed: give samples one by one";
    }
    fail(kBadArgument, "{}: the shape is {}, the model takes {}{}", where, shape.to_string(), input.shape_text(), hint);
  }

  static void check_bytes(const std::string& where, const SampleTensor& tensor) {
    if (tensor.dtype == DType::kString) {
      const std::string problem = string_tensor_problem(tensor.data, tensor.shape.elements());
      require(problem.empty(), kBadArgument, "{}: {}", where, problem);
      return;
    }
    const std::optional<int64_t> elements = tensor.shape.checked_elements();
    const int64_t item = std::max(8, dtype_bits(tensor.dtype)) / 8;
    int64_t bytes = 0;
    const bool fits =
        elements && !__builtin_mul_overflow(*elements, item, &bytes) && std::cmp_equal(bytes, tensor.data.size());
    require(fits, kBadArgument, "{}: shape {} of {} takes {} bytes, got {}", where, tensor.shape.to_string(),
            type_of(tensor), bytes, tensor.data.size());
  }

  Model model;
  SampleSource& source;
  SampleReaderOptions options;
  std::vector<Signature> signatures;
  Signature main;
  std::vector<std::vector<SampleInput>> inputs;  // by subgraph; empty where no signature leads
  jobs::SampleLint lint;
  Sample sample;
  int64_t count = 0;
  bool finished = false;  // all samples were read once
};

SampleReader::SampleReader(const Model& model, SampleSource& source, SampleReaderOptions options) try
    : state_(std::make_unique<State>(model, source, options)) {
} catch (...) {
  rethrow_as_error();
}
SampleReader::~SampleReader() = default;
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;

const Sample* SampleReader::next() try {
  State& s = *state_;
  check_cancelled();
  s.sample = {};
  const bool more = (s.options.limit == 0 || s.count < s.options.limit) && s.source.next(s.sample);
  if (!more) {
    require(s.count > 0, kBadArgument, "the representative dataset is empty: it has no samples");
    if (!s.finished && s.options.lint) s.lint.finish(s.count, s.inputs);
    s.finished = true;
    return nullptr;
  }
  s.assign();
  for (size_t i = 0; i < s.sample.inputs.size(); ++i) s.check(static_cast<int>(i));
  if (!s.finished && s.options.lint) s.lint.add_sample(s.sample);
  ++s.count;
  return &s.sample;
} catch (...) {
  rethrow_as_error();
}

int64_t SampleReader::count() const { return state_->count; }

std::optional<int64_t> SampleReader::size() const {
  const std::optional<int64_t> all = state_->source.size();
  if (!all || state_->options.limit == 0) return all;
  return std::min(*all, state_->options.limit);
}

bool SampleReader::rewind() {
  if (!state_->source.rewind()) return false;
  state_->count = 0;
  return true;
}

const std::vector<SampleFinding>& SampleReader::findings() const { return state_->lint.findings(); }

void SampleReader::look_at(const Calibration& calibration, const std::optional<NotFiniteValue>& first_not_finite) try {
  state_->lint.look_at(calibration, state_->inputs);
  if (first_not_finite) state_->lint.add_not_finite(state_->model, *first_not_finite);
} catch (...) {
  rethrow_as_error();
}

std::vector<Shape> sample_shapes(const Model& model, const SampleSource& source) try {
  if (!jobs::leaves_sizes_open(model, 0)) return {};
  struct Nothing final : SampleSource {
    bool next(Sample&) override { return false; }
  } nothing;
  SampleReader::State state(model, nothing, {});
  state.sample = source.sizes();
  if (state.sample.inputs.empty()) return {};
  try {
    state.assign();
    const std::vector<SampleInput>& inputs = state.inputs[static_cast<size_t>(state.sample.subgraph)];
    for (size_t i = 0; i < inputs.size(); ++i) {
      Shape& shape = state.sample.inputs[i].shape;
      SampleReader::State::drop_single_dimension(inputs[i], shape);
      SampleReader::State::check_shape("the largest sample", inputs[i], shape);
    }
  } catch (const Error& error) {
    if (error.code() != kBadArgument) throw;
    return {};
  }
  return state.sample.subgraph == 0 ? jobs::shapes_of(state.sample) : std::vector<Shape>();
} catch (...) {
  rethrow_as_error();
}

void set_inputs(Interpreter& interpreter, const Sample& sample) try {
  const std::vector<int>& indices = interpreter.inputs();
  require(sample.inputs.size() == indices.size(), kBadArgument, "the sample has {} tensors, the model {} inputs",
          sample.inputs.size(), indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const TensorInfo input = interpreter.tensor_info(indices[i]);
    const bool fixed = input.constant || input.variable;
    if (!fixed || input.shape != sample.inputs[i].shape) {
      interpreter.resize_input(indices[i], sample.inputs[i].shape);  // also where the sample has the file's placeholder
    }
  }
  interpreter.allocate();
  for (size_t i = 0; i < indices.size(); ++i) {
    if (sample.inputs[i].dtype == DType::kString) {
      interpreter.set_tensor(indices[i], sample.inputs[i].data);
      continue;
    }
    const TensorMemory memory = interpreter.tensor(indices[i]);
    jobs::convert(sample.inputs[i], interpreter.tensor_info(indices[i]),
                  {memory.data, static_cast<size_t>(memory.bytes)});
  }
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> input_bytes(const SampleTensor& tensor, const TensorInfo& input) try {
  if (tensor.dtype == DType::kString) return {tensor.data.begin(), tensor.data.end()};
  const std::optional<int64_t> bytes = storage_bytes(input.dtype, tensor.shape);
  require(bytes.has_value(), kBadArgument, "shape {} does not fit into memory", tensor.shape.to_string());
  std::vector<std::byte> result(static_cast<size_t>(*bytes));
  jobs::convert(tensor, input, result);
  return result;
} catch (...) {
  rethrow_as_error();
}

int64_t for_each_sample(SampleReader& reader, const Progress& progress, const std::function<void(const Sample&)>& use) {
  const int64_t total = reader.size().value_or(-1);
  while (const Sample* sample = reader.next()) {
    const int64_t number = reader.count() - 1;
    try {
      use(*sample);
    } catch (const BudgetError& error) {
      throw BudgetError(fmt::format("sample {}: {}", number, error.what()), error.needed(), error.limit());
    } catch (const Error& error) {
      if (is_about_memory(error)) throw;
      throw Error(error.code(), fmt::format("sample {}: {}", number, error.what()));
    }
    if (progress && !progress(reader.count(), total)) {
      throw Error(ErrorCode::kCancelled, "stopped before it was finished");
    }
  }
  return reader.count();
}

}  // namespace leadline

// SPDX-License-Identifier: Apache-2.0
// Classes of Keras that cannot be converted, each with why and what to do instead.
#include <algorithm>

#include "import/keras/layer.h"

namespace leadline::keras {
namespace {

struct Refused {
  std::string_view name;
  std::string_view reason;
};

constexpr std::string_view kStrings =
    "works on text or by hashing, which no tensor of the converted model can do; do it before the model is called";
constexpr std::string_view kForeign = "runs code of another library; export the model as a SavedModel instead";

constexpr Refused kRefused[] = {
    {"Lambda", "runs Python code, which a file does not hold; use layers or operations of keras.ops instead"},
    {"Hashing", kStrings},
    {"HashedCrossing", kStrings},
    {"StringLookup", kStrings},
    {"TextVectorization", kStrings},
    {"IntegerLookup", "looks values up in a table; do it before the model is called"},
    {"TFSMLayer", kForeign},
    {"TorchModuleWrapper", kForeign},
    {"JaxLayer", kForeign},
    {"FlaxLayer", kForeign},
    {"ContrastLimitedAdaptiveHistogramEqualization",
     "counts histograms of parts of images, for which there is no op; do it before the model is called"},
    {"LSTMCell", "is a cell, which runs inside a layer; put it into keras.layers.RNN"},
    {"GRUCell", "is a cell, which runs inside a layer; put it into keras.layers.RNN"},
    {"SimpleRNNCell", "is a cell, which runs inside a layer; put it into keras.layers.RNN"},
    {"StackedRNNCells", "is a cell, which runs inside a layer; put it into keras.layers.RNN"},
    {"Layer", "computes nothing of its own; use a layer of a class that does"},
    {"Wrapper", "computes nothing of its own; use the layer inside it"},
    {"DenseFeatures", "reads feature columns, which are not converted; use preprocessing layers or plain inputs"},
    {"RandomFourierFeatures", "is experimental in Keras 2 and not converted; export the model as a SavedModel"},
};

}  // namespace

std::string_view refusal_of(std::string_view class_name) {
  const auto* it = std::find_if(std::begin(kRefused), std::end(kRefused),
                                [&](const Refused& row) { return row.name == class_name; });
  return it == std::end(kRefused) ? std::string_view() : it->reason;
}

}  // namespace leadline::keras

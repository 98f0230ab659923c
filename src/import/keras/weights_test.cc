// SPDX-License-Identifier: Apache-2.0
// Layers and variables in the layouts Keras writes; tests/python/test_containers.py has files of Keras itself.
#include "import/keras/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "import/hdf5/writer_testing.h"
#include "leadline/error.h"

namespace leadline::keras {
namespace {

using hdf5::Hdf5Writer;

KerasFile open(const std::string& bytes, int64_t limit = 1 << 24) {
  return KerasFile::from_bytes("model", ModelBytes::copy(std::as_bytes(std::span(bytes))), Budget::with_limit(limit));
}

std::vector<float> floats(const Variable& variable) {
  std::vector<std::byte> data(static_cast<size_t>(variable.source->bytes()));
  variable.source->read(data);
  std::vector<float> values(data.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), data.data(), values.size() * 4);
  return values;
}

/// An archive of stored entries.
std::string zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  std::string directory;
  for (const auto& [name, data] : entries) {
    std::string common("\x14\0\0\0\0\0\0\0\0\0", 10);
    Hdf5Writer::put<uint32_t>(
        common, static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size())));
    Hdf5Writer::put<uint32_t>(common, static_cast<uint32_t>(data.size()));
    Hdf5Writer::put<uint32_t>(common, static_cast<uint32_t>(data.size()));
    Hdf5Writer::put<uint32_t>(common, static_cast<uint32_t>(name.size()));
    directory += std::string("PK\1\2\x14\0", 6) + common + std::string(10, '\0');
    Hdf5Writer::put<uint32_t>(directory, static_cast<uint32_t>(out.size()));
    directory += name;
    out += std::string("PK\3\4", 4) + common + name + data;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  Hdf5Writer::put<uint16_t>(end, static_cast<uint16_t>(entries.size()));
  Hdf5Writer::put<uint16_t>(end, static_cast<uint16_t>(entries.size()));
  Hdf5Writer::put<uint32_t>(end, static_cast<uint32_t>(directory.size()));
  Hdf5Writer::put<uint32_t>(end, static_cast<uint32_t>(out.size()));
  return out + directory + end + std::string(2, '\0');
}

std::string weights_by_path(const std::string& container) {
  Hdf5Writer writer;
  writer.at("vars");
  writer.text("vars", "name", "functional");
  for (int i = 0; i < 12; ++i) {
    writer.floats(container + "/dense/vars/" + std::to_string(i), {1}, {static_cast<float>(i)});
  }
  writer.text(container + "/dense/vars", "name", "first");
  writer.floats(container + "/gru/cell/vars/0", {2, 2}, {1, 2, 3, 4});
  writer.at(container + "/dropout/vars");
  writer.floats("optimizer/vars/0", {1}, {1});
  return writer.finish();
}

TEST(KerasFile, ArchiveGivesConfigurationVersionAndLayers) {
  const KerasFile file = open(zip({{"metadata.json", R"({"keras_version": "3.15.1", "date_saved": "x"})"},
                                   {"config.json", R"({"class_name": "Functional"})"},
                                   {"model.weights.h5", weights_by_path("layers")},
                                   {"assets/layers/lookup/vocabulary.txt", "a\nb\n"}}));
  EXPECT_EQ(file.layout(), Layout::kByPath);
  EXPECT_EQ(file.config(), R"({"class_name": "Functional"})");
  EXPECT_EQ(file.keras_version(), "3.15.1");
  EXPECT_EQ(file.asset("assets/layers/lookup/vocabulary.txt"), "a\nb\n");
  EXPECT_EQ(file.asset("assets/none"), std::nullopt);
  EXPECT_EQ(file.layers(), (std::vector<std::string>{"", "layers/dense", "layers/dropout", "layers/gru/cell"}));
  EXPECT_EQ(file.parts("layers/gru"), (std::vector<std::string>{"cell"}));
  EXPECT_TRUE(file.parts("layers/dense").empty());
  EXPECT_EQ(file.saved_name("layers/dense"), "first");
  EXPECT_EQ(file.saved_name("layers/gru/cell"), std::nullopt);
  EXPECT_TRUE(file.has_layer("layers/dropout"));
  EXPECT_FALSE(file.has_layer("layers/none"));
}

TEST(KerasFile, VariablesAreInTheOrderOfTheirNumbers) {
  const KerasFile file = open(weights_by_path("layers"));
  const std::vector<Variable> variables = file.variables("layers/dense");
  ASSERT_EQ(variables.size(), 12U);
  for (size_t i = 0; i < variables.size(); ++i) {
    EXPECT_EQ(floats(variables[i]), (std::vector<float>{static_cast<float>(i)}));
    EXPECT_EQ(variables[i].name, "layers/dense/vars/" + std::to_string(i));
  }
  EXPECT_TRUE(file.variables("").empty());
  EXPECT_TRUE(file.variables("layers/dropout").empty());
  EXPECT_TRUE(file.variables("layers/none").empty());
}

TEST(KerasFile, LayersAreFoundUnderTheirOlderName) {
  const KerasFile file = open(weights_by_path("_layer_checkpoint_dependencies"));
  EXPECT_EQ(file.variables("layers/dense").size(), 12U);
  const std::vector<Variable> cell = file.variables("layers/gru/cell");
  ASSERT_EQ(cell.size(), 1U);
  EXPECT_EQ(cell[0].shape, Shape({2, 2}));
  EXPECT_EQ(floats(cell[0]), (std::vector<float>{1, 2, 3, 4}));
}

std::string weights_by_name() {
  Hdf5Writer writer;
  writer.text("", "model_config", "{}");
  writer.text("", "keras_version", "2.13.0");
  writer.strings("model_weights", "layer_names0", {"zeta", "alpha"});
  writer.strings("model_weights", "layer_names1", {"input"});
  writer.strings("model_weights/zeta", "weight_names", {"zeta/kernel:0", "zeta/bias:0"});
  writer.floats("model_weights/zeta/zeta/kernel:0", {2}, {1, 2});
  writer.floats("model_weights/zeta/zeta/bias:0", {1}, {3});
  writer.strings("model_weights/top_level_model_weights", "weight_names", {"scale"});
  writer.floats("model_weights/top_level_model_weights/scale", {}, {4});
  writer.at("model_weights/alpha");
  return writer.finish();
}

TEST(KerasFile, LegacyFileListsVariablesByName) {
  const KerasFile file = open(weights_by_name());
  EXPECT_EQ(file.layout(), Layout::kByName);
  EXPECT_EQ(file.config(), "{}");
  EXPECT_EQ(file.keras_version(), "2.13.0");
  EXPECT_EQ(file.layers(), (std::vector<std::string>{"zeta", "alpha", "input"}));
  const std::vector<Variable> variables = file.variables("zeta");
  ASSERT_EQ(variables.size(), 2U);
  EXPECT_EQ(variables[0].name, "zeta/kernel:0");
  EXPECT_EQ(floats(variables[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(variables[1]), (std::vector<float>{3}));
  EXPECT_TRUE(file.variables("alpha").empty());
  EXPECT_FALSE(file.has_layer("input"));
  ASSERT_EQ(file.variables("").size(), 1U);
}

TEST(KerasFile, MissingVariableIsNamed) {
  Hdf5Writer writer;
  writer.strings("", "layer_names", {"dense"});
  writer.strings("dense", "weight_names", {"dense/kernel:0"});
  const KerasFile file = open(writer.finish());
  try {
    file.variables("dense");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("dense/kernel:0"), std::string::npos) << error.what();
  }
}

TEST(KerasFile, OpaqueBytesAreBfloat16WhereTheFileSaysSo) {
  Hdf5Writer writer;
  writer.opaque("layers/dense/vars/0", 2, {2}, std::string("\x80\x3f\0\x40", 4));
  writer.text("layers/dense/vars/0", "dtype", "bfloat16");
  writer.opaque("layers/other/vars/0", 2, {2}, "abcd");
  const KerasFile file = open(writer.finish());
  EXPECT_EQ(file.variables("layers/dense").at(0).dtype, DType::kBFloat16);
  EXPECT_THROW(file.variables("layers/other"), Error);
}

TEST(KerasFile, SourcesOutliveTheFile) {
  std::vector<Variable> variables;
  {
    const KerasFile file = open(weights_by_path("layers"));
    variables = file.variables("layers/gru/cell");
  }
  EXPECT_EQ(floats(variables.at(0)), (std::vector<float>{1, 2, 3, 4}));
}

TEST(KerasFile, EveryCutOfAnArchiveIsRefused) {
  const std::string bytes = zip({{"config.json", "{}"}, {"model.weights.h5", weights_by_path("layers")}});
  EXPECT_EQ(open(bytes).layers().size(), 4U);
  for (size_t size = 0; size < bytes.size(); size += 97) EXPECT_THROW(open(bytes.substr(0, size)), Error) << size;
  EXPECT_THROW(open(zip({{"config.json", "{}"}})), Error);
  EXPECT_THROW(open(zip({{"config.json", "{}"}, {"model.weights.h5", "no HDF5 at all"}})), Error);
}

TEST(KerasFile, MutatedFilesGiveAnErrorOrAnAnswer) {
  std::mt19937 random(3);
  for (const std::string& bytes : {weights_by_path("layers"), weights_by_name()}) {
    for (int round = 0; round < 2000; ++round) {
      std::string mutated = bytes;
      for (unsigned i = 0; i <= random() % 3; ++i) mutated[random() % mutated.size()] = static_cast<char>(random());
      try {
        const KerasFile file = open(mutated);
        for (const std::string& layer : file.layers()) {
          file.saved_name(layer);
          for (const Variable& variable : file.variables(layer)) {
            if (variable.source->bytes() < 1 << 20) floats(variable);
          }
        }
      } catch (const Error&) {
      }
    }
  }
}

TEST(KerasNames, AreThoseOfKeras) {
  for (const auto& [name, expected] :
       std::vector<std::pair<std::string, std::string>>{{"Dense", "dense"},
                                                        {"Conv2D", "conv2d"},
                                                        {"SeparableConv2D", "separable_conv2d"},
                                                        {"Conv2DTranspose", "conv2d_transpose"},
                                                        {"ConvLSTM1D", "conv_lstm1d"},
                                                        {"LSTM", "lstm"},
                                                        {"GRUCell", "gru_cell"},
                                                        {"PReLU", "p_re_lu"},
                                                        {"ReLU", "re_lu"},
                                                        {"LeakyReLU", "leaky_re_lu"},
                                                        {"MultiHeadAttention", "multi_head_attention"},
                                                        {"StackedRNNCells", "stacked_rnn_cells"},
                                                        {"UpSampling2D", "up_sampling2d"},
                                                        {"TFSMLayer", "tfsm_layer"},
                                                        {"My-Layer", "my_layer"},
                                                        {"", ""}}) {
    EXPECT_EQ(snake_case(name), expected);
  }
  const std::vector<std::string> classes{"Dense", "Conv2D", "Dense", "Dense"};
  EXPECT_EQ(container_names(classes), (std::vector<std::string>{"dense", "conv2d", "dense_1", "dense_2"}));
}

}  // namespace
}  // namespace leadline::keras

// SPDX-License-Identifier: Apache-2.0
// What Leadline reads from an HDF5 or Keras file, for tests/python/test_containers.py to compare with h5py and Keras.
// usage: container_dump hdf5|keras FILE OUT      writes a line of JSON and the raw bytes for each array
//        container_dump fuzz FILE COUNT SEED     reads mutated copies; must end with exit code 0
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "import/hdf5/file.h"
#include "import/keras/weights.h"
#include "leadline/error.h"

namespace {

using leadline::Budget;
using leadline::Error;
using leadline::hdf5::DatasetInfo;
using leadline::hdf5::Hdf5File;
using nlohmann::json;

constexpr int64_t kBudget = int64_t{1} << 30;
constexpr int64_t kMaxRead = 64 << 20;
const std::vector<const char*> kAttributes{"model_config", "layer_names", "weight_names", "name", "large", "a3"};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_array(std::ostream* out, json head, const std::vector<std::byte>& data) {
  if (out == nullptr) return;
  head["bytes"] = data.size();
  *out << head.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  out->write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
}

/// Reads all that can be reached; `left` bounds the groups, which may hold each other. Errors are written, too.
void dump_group(const Hdf5File& file, const std::string& path, int depth, int& left, std::ostream* out) {
  if (depth > 32 || --left < 0) return;
  for (const char* name : kAttributes) {
    try {
      const auto strings = file.strings_attribute(path, name);
      if (strings) write_array(out, {{"attribute", name}, {"path", path}, {"strings", *strings}}, {});
    } catch (const Error& error) {
      write_array(out, {{"path", path}, {"error", error.what()}}, {});
    }
  }
  for (const std::string& child : file.children(path)) {
    const std::string inner = path.empty() ? child : path + "/" + child;
    try {
      if (file.is_group(inner)) {
        dump_group(file, inner, depth + 1, left, out);
        continue;
      }
      const DatasetInfo info = file.dataset(inner);
      if (info.bytes > kMaxRead) continue;
      std::vector<std::byte> data(static_cast<size_t>(info.bytes));
      file.read(inner, data);
      const auto view = file.view(inner);
      const bool same =
          !view || (view->size() == data.size() && std::memcmp(view->data(), data.data(), data.size()) == 0);
      if (!same) throw std::runtime_error(inner + ": view and data differ");
      write_array(out, {{"path", inner}, {"type", info.type_text}, {"shape", info.shape.dims()}}, data);
    } catch (const Error& error) {
      write_array(out, {{"path", inner}, {"error", error.what()}}, {});
    }
  }
}

void dump_keras(const std::string& path, std::ostream& out) {
  const auto file = leadline::keras::KerasFile::open(path, Budget::with_limit(kBudget));
  write_array(&out, {{"config", file.config()}, {"version", file.keras_version()}}, {});
  std::vector<std::string> layers = file.layers();
  if (file.layout() == leadline::keras::Layout::kByName) layers.emplace_back();
  for (const std::string& layer : layers) {
    for (const auto& variable : file.variables(layer)) {
      std::vector<std::byte> data(static_cast<size_t>(variable.source->bytes()));
      variable.source->read(data);
      write_array(&out,
                  {{"layer", layer},
                   {"saved_name", file.saved_name(layer).value_or("")},
                   {"name", variable.name},
                   {"type", leadline::dtype_name(variable.dtype)},
                   {"shape", variable.shape.dims()}},
                  data);
    }
  }
}

void fuzz(const std::string& path, int count, unsigned seed) {
  const std::string bytes = read_file(path);
  std::mt19937 random(seed);
  constexpr std::array<unsigned char, 7> kEdges{0, 1, 2, 8, 0x7F, 0x80, 0xFF};
  for (int round = 0; round < count; ++round) {
    std::vector<char> mutated(bytes.begin(), bytes.end());
    for (unsigned i = 0; i <= random() % 4; ++i) {
      size_t place = random() % mutated.size();
      // Most of a file is zeros that nothing reads.
      for (int again = 0; again < 20 && mutated[place] == 0; ++again) place = random() % mutated.size();
      mutated[place] = static_cast<char>(random() % 2 == 0 ? random() : kEdges[random() % kEdges.size()]);
    }
    if (random() % 20 == 0) mutated.resize(random() % mutated.size());
    try {
      const Hdf5File file(std::as_bytes(std::span(mutated)), Budget::with_limit(kBudget),
                          {.verify_checksums = random() % 4 == 0});
      int left = 20000;
      dump_group(file, "", 0, left, nullptr);
    } catch (const Error&) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  try {
    if (argc == 5 && arguments[1] == "fuzz") {
      fuzz(arguments[2], std::atoi(argv[3]), static_cast<unsigned>(std::atoi(argv[4])));
      return 0;
    }
    if (argc != 4) throw std::runtime_error("usage: container_dump hdf5|keras FILE OUT | fuzz FILE COUNT SEED");
    std::ofstream out(arguments[3], std::ios::binary);
    if (arguments[1] == "keras") {
      dump_keras(arguments[2], out);
    } else {
      const std::string bytes = read_file(arguments[2]);
      int left = 1000000;
      dump_group(Hdf5File(std::as_bytes(std::span(bytes)), Budget::with_limit(kBudget)), "", 0, left, &out);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "bases.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace leadline::fuzz {
namespace {

uint64_t hash(uint64_t state, std::string_view bytes) {
  for (const char c : bytes) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return state;
}

}  // namespace

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path);
  stream.seekg(0, std::ios::end);
  std::vector<std::byte> bytes(static_cast<size_t>(std::max<std::streamoff>(stream.tellg(), 0)));
  stream.seekg(0);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))) {
    throw std::runtime_error("cannot read " + path);
  }
  return bytes;
}

TablePtr read_tree(const std::string& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  try {
    if (!path.ends_with(".txt")) return read_file(bytes);
    return parse_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

void Bases::add_model(const std::string& group, Base base) {
  const TablePtr root = base.read();
  if (root->count("subgraphs") == 0) return;
  fingerprint_ =
      hash(hash(fingerprint_, base.name), {reinterpret_cast<const char*>(base.file.data()), base.file.size()});
  auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.name == group; });
  if (found == groups_.end()) found = groups_.insert(groups_.end(), Group{.name = group, .models = {}});
  if (group.starts_with("file ")) {
    constexpr double kOrdinary = 32768.0;  // bytes: larger ones are slower and get fewer mutants
    found->weight = 1.0 / (1.0 + static_cast<double>(base.file.size()) / kOrdinary);
  }
  found->models.push_back(std::move(base));
}

void Bases::add(const std::string& path) {
  if (path.ends_with(".txt") || path.ends_with(".tflite")) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return add_model("file " + name, {.name = name, .file = write_file(read_tree(path))});
  }
  const std::vector<std::byte> bytes = read_bytes(path);
  size_t at = 0;
  const auto next = [&]() -> std::vector<std::byte> {
    uint32_t size = 0;
    if (bytes.size() - at < sizeof(size)) throw std::runtime_error(path + " is not a file of write_bases.py");
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    at += sizeof(size);
    if (bytes.size() - at < size) throw std::runtime_error(path + " is not a file of write_bases.py");
    const auto start = bytes.begin() + static_cast<ptrdiff_t>(at);
    at += size;
    return {start, start + size};
  };
  const auto text = [](const std::vector<std::byte>& part) {
    return std::string(reinterpret_cast<const char*>(part.data()), part.size());
  };
  while (at < bytes.size()) {
    const std::string group = text(next());
    std::string name = text(next());
    try {
      add_model(group, {.name = std::move(name), .file = next()});
    } catch (const std::runtime_error&) {
      continue;  // no flatbuffer of this format: nothing to take apart
    }
  }
}

const Base& Bases::pick(Random& random) const {
  double total = 0.0;
  for (const Group& group : groups_) total += group.weight;
  double left = random.unit() * total;
  for (const Group& group : groups_) {
    left -= group.weight;
    if (left <= 0.0) return random.pick(group.models);
  }
  if (groups_.empty()) throw std::runtime_error("there are no models to take apart");
  return groups_.back().models.front();
}

size_t Bases::size() const {
  size_t count = 0;
  for (const Group& group : groups_) count += group.models.size();
  return count;
}

}  // namespace leadline::fuzz

// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/file.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "import/hdf5/dataset.h"

namespace leadline::hdf5 {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are read as little-endian numbers");

/// Runs `work`, naming the object in its errors.
template <typename Work>
auto about(std::string_view path, const Work& work) {
  try {
    return work();
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'/{}': {}", printable(path), error.what()));
  }
}

Dataset open_dataset(const FileBytes& file, const std::vector<Message>& messages) {
  std::optional<Dataset> dataset = read_dataset(file, messages);
  if (!dataset) fail(ErrorCode::kInvalidModel, "this is not a dataset");
  return *std::move(dataset);
}

bool swapped(const Datatype& type) { return type.big_endian && type.item_bytes > 1; }

}  // namespace

Hdf5File::Hdf5File(std::span<const std::byte> bytes, std::shared_ptr<Budget> budget, Hdf5Options options)
    : superblock_(read_superblock(bytes, options.verify_checksums)), budget_(std::move(budget)) {}

std::shared_ptr<const Links> Hdf5File::links(uint64_t address) const {
  {
    const std::lock_guard lock(mutex_);
    const auto known = groups_.find(address);
    if (known != groups_.end()) return known->second;
  }
  std::optional<Links> found = read_links(superblock_.file, read_object_header(superblock_.file, address));
  std::shared_ptr<const Links> result;
  if (found) result = std::make_shared<const Links>(*std::move(found));
  const std::lock_guard lock(mutex_);
  return groups_.emplace(address, std::move(result)).first->second;
}

uint64_t Hdf5File::locate(std::string_view path) const {
  uint64_t address = superblock_.root;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (name.empty()) continue;
    const std::shared_ptr<const Links> group = links(address);
    if (group == nullptr) return kUndefined;
    const auto found = group->find(name);
    if (found == group->end()) return kUndefined;
    if (found->second == kUndefined) {
      fail(ErrorCode::kUnsupported, "'{}' is a soft or external link, which is not followed", printable(name));
    }
    address = found->second;
  }
  return address;
}

std::vector<Message> Hdf5File::messages(std::string_view path) const {
  const uint64_t address = locate(path);
  if (address == kUndefined) fail(ErrorCode::kInvalidModel, "the HDF5 file has no such object");
  return read_object_header(superblock_.file, address);
}

bool Hdf5File::exists(std::string_view path) const {
  return about(path, [&] { return locate(path) != kUndefined; });
}

bool Hdf5File::is_group(std::string_view path) const {
  return about(path, [&] {
    const uint64_t address = locate(path);
    return address != kUndefined && links(address) != nullptr;
  });
}

bool Hdf5File::is_dataset(std::string_view path) const { return exists(path) && !is_group(path); }

std::vector<std::string> Hdf5File::children(std::string_view path) const {
  return about(path, [&] {
    const uint64_t address = locate(path);
    const std::shared_ptr<const Links> group = address == kUndefined ? nullptr : links(address);
    if (group == nullptr) fail(ErrorCode::kInvalidModel, "the HDF5 file has no such group");
    std::vector<std::string> names;
    for (const auto& [name, target] : *group) names.push_back(name);
    return names;
  });
}

DatasetInfo Hdf5File::dataset(std::string_view path) const {
  return about(path, [&] {
    const Dataset dataset = open_dataset(superblock_.file, messages(path));
    DatasetInfo info;
    info.dtype = dataset.type.dtype;
    info.type_text = dataset.type.text();
    info.item_bytes = static_cast<int64_t>(dataset.type.item_bytes);
    if (dataset.space.dims.size() > kMaxRank) {
      fail(ErrorCode::kUnsupported, "{} dimensions; at most {} are supported", dataset.space.dims.size(), kMaxRank);
    }
    for (const uint64_t size : dataset.space.dims) info.shape.push_back(static_cast<int64_t>(size));
    info.bytes = static_cast<int64_t>(dataset.bytes);
    return info;
  });
}

void Hdf5File::read(std::string_view path, std::span<std::byte> out) const {
  about(path, [&] {
    const Dataset dataset = open_dataset(superblock_.file, messages(path));
    read_elements(superblock_.file, dataset, budget_, out);
    if (!swapped(dataset.type)) return;
    const auto item = static_cast<std::ptrdiff_t>(dataset.type.item_bytes);
    for (auto at = out.begin(); at != out.end(); at += item) std::reverse(at, at + item);
  });
}

std::optional<std::span<const std::byte>> Hdf5File::view(std::string_view path) const {
  return about(path, [&]() -> std::optional<std::span<const std::byte>> {
    const Dataset dataset = open_dataset(superblock_.file, messages(path));
    if (swapped(dataset.type) || dataset.stored.size() < dataset.bytes || dataset.bytes == 0) return std::nullopt;
    return dataset.stored.first(static_cast<size_t>(dataset.bytes));
  });
}

std::optional<std::vector<std::string>> Hdf5File::strings_attribute(std::string_view path,
                                                                    std::string_view name) const {
  return about(path, [&]() -> std::optional<std::vector<std::string>> {
    const std::optional<Attribute> attribute = find_attribute(superblock_.file, messages(path), name);
    if (!attribute) return std::nullopt;
    return attribute_strings(superblock_.file, *attribute);
  });
}

std::optional<std::string> Hdf5File::string_attribute(std::string_view path, std::string_view name) const {
  std::optional<std::vector<std::string>> strings = strings_attribute(path, name);
  if (!strings) return std::nullopt;
  if (strings->size() != 1) {
    fail(ErrorCode::kInvalidModel, "'/{}': attribute '{}' has {} elements, expected 1", printable(path),
         printable(name), strings->size());
  }
  return std::move(strings->front());
}

}  // namespace leadline::hdf5

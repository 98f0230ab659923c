// SPDX-License-Identifier: Apache-2.0
// Reads HDF5 files as h5py writes them (superblock 0 to 3, old and new groups, dense links and attributes, contiguous,
// compact and chunked datasets with deflate, shuffle and fletcher32). The file is untrusted: any bytes give an Error or
// an answer. Soft, external and virtual parts are not followed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/hdf5/object.h"
#include "leadline/budget.h"
#include "leadline/types.h"

namespace leadline::hdf5 {

struct DatasetInfo {
  std::optional<DType> dtype;  ///< nothing for strings, opaque elements and numbers Leadline does not have
  std::string type_text;       ///< "float32", "opaque of 2 bytes"
  int64_t item_bytes = 0;
  Shape shape;
  int64_t bytes = 0;
};

struct Hdf5Options {
  bool verify_checksums = true;  ///< of the structures; off, mutated files get past the first gate (for tests)
};

/// Thread-safe. Paths are separated by '/'; "" is the root. Errors name the path.
class Hdf5File {
 public:
  /// `bytes` must stay alive and unchanged; unpacking chunks is charged to `budget`.
  Hdf5File(std::span<const std::byte> bytes, std::shared_ptr<Budget> budget, Hdf5Options options = {});

  bool exists(std::string_view path) const;
  bool is_group(std::string_view path) const;
  bool is_dataset(std::string_view path) const;
  /// Names in a group, sorted. Throws Error(kInvalidModel) when there is no such group.
  std::vector<std::string> children(std::string_view path) const;

  DatasetInfo dataset(std::string_view path) const;
  /// Reads all elements, in the byte order of the machine. `out` has dataset(path).bytes bytes.
  void read(std::string_view path, std::span<std::byte> out) const;
  /// The elements where they lie in the file, if they do so contiguously and in the byte order of the machine (nothing
  /// otherwise). They may be unaligned.
  std::optional<std::span<const std::byte>> view(std::string_view path) const;

  /// An attribute with one string; nothing when there is none of that name.
  std::optional<std::string> string_attribute(std::string_view path, std::string_view name) const;
  std::optional<std::vector<std::string>> strings_attribute(std::string_view path, std::string_view name) const;

 private:
  std::shared_ptr<const Links> links(uint64_t address) const;
  /// Object header of `path`; kUndefined when there is none.
  uint64_t locate(std::string_view path) const;
  std::vector<Message> messages(std::string_view path) const;

  Superblock superblock_;
  std::shared_ptr<Budget> budget_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, std::shared_ptr<const Links>> groups_;  // null: the object is not a group
};

}  // namespace leadline::hdf5

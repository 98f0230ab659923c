// SPDX-License-Identifier: Apache-2.0
// HDF5 files. Checksums of structures are not compared, so that mutants get past them.
#include "import/hdf5/file.h"
#include "import/hdf5/writer_testing.h"
#include "leadline/error.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

constexpr int kMostObjects = 200;

/// One damaged part of a file does not keep the others from being read.
template <typename Work>
void try_to(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

void visit(const hdf5::Hdf5File& file, const std::string& path, int depth, int& left) {
  if (left-- <= 0 || depth > 8) return;
  for (const char* name : {"names", "text"}) {
    try_to(
        [&] { use(std::to_string(file.strings_attribute(path, name).value_or(std::vector<std::string>()).size())); });
    try_to([&] { use(file.string_attribute(path, name).value_or("")); });
  }
  if (file.is_dataset(path)) {
    const hdf5::DatasetInfo info = file.dataset(path);
    use(info.type_text);
    if (const auto view = file.view(path)) use(as_text(*view));
    if (info.bytes > kBudget) return;
    std::vector<std::byte> data(static_cast<size_t>(info.bytes));
    file.read(path, data);
    use(as_text(data));
  }
  if (!file.is_group(path)) return;
  for (const std::string& name : file.children(path)) {
    try_to([&] { visit(file, path.empty() ? name : path + "/" + name, depth + 1, left); });
  }
}

void run(Bytes bytes) {
  const hdf5::Hdf5File file(bytes, small_budget(), {.verify_checksums = false});
  int left = kMostObjects;
  visit(file, "", 0, left);
}

std::vector<std::string> seeds() {
  using Store = hdf5::Hdf5Writer::Store;
  std::vector<std::string> result;
  for (const bool latest : {false, true}) {
    hdf5::Hdf5Writer writer(latest);
    writer.strings("", "names", {"one", "three", "two"});
    writer.text("group", "text", "some text");
    writer.floats("group/contiguous", {2, 3}, {1, 2, 3, 4, 5, 6});
    writer.floats("group/compact", {2}, {1, 2}, Store::kCompact, true);
    writer.floats("group/chunked", {2, 2}, {1, 2, 3, 4}, Store::kChunked);
    writer.floats("group/packed", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, Store::kPacked);
    writer.opaque("raw", 3, {2}, "abcdef");
    writer.at("group/empty");
    result.push_back(writer.finish());
  }
  return result;
}

std::vector<std::string> words() {
  return {"\x89HDF\r\n\x1a\n",
          "OHDR",
          "OCHK",
          "TREE",
          "SNOD",
          "HEAP",
          "GCOL",
          "FRHP",
          "FHDB",
          "FHIB",
          "BTHD",
          "BTLF",
          "BTIN",
          "FAHD",
          "FADB",
          "EAHD",
          "EAIB",
          "EASB",
          "EADB",
          std::string(8, '\xFF')};
}

}  // namespace

Reader hdf5_reader() { return {.name = "hdf5", .run = run, .seeds = seeds, .words = words, .most_bytes = 16384}; }

}  // namespace leadline::fuzz

// SPDX-License-Identifier: Apache-2.0
// The readers under libFuzzer, which drives the process:
//   fuzz_readers --reader=NAME --write=FOLDER     writes FOLDER/seeds/* and FOLDER/words.dict
//   fuzz_readers --reader=NAME CORPUS -dict=...   libFuzzer's own options
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "readers/reader.h"

extern "C" {
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);
}

namespace leadline::fuzz {
namespace {

const Reader* chosen = nullptr;

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) {
    fmt::print(stderr, "cannot write {}\n", path.string());
    std::exit(2);
  }
}

void write_material(const Reader& reader, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "seeds");
  size_t number = 0;
  for (const std::string& seed : reader.seeds()) write_file(folder / "seeds" / fmt::format("{}", number++), seed);
  std::string words;
  for (const std::string& word : reader.words == nullptr ? std::vector<std::string>() : reader.words()) {
    words += '"';
    for (const char c : word) words += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    words += "\"\n";
  }
  write_file(folder / "words.dict", words);
}

}  // namespace
}  // namespace leadline::fuzz

using leadline::fuzz::chosen;

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  // libFuzzer leaves options of two dashes to us.
  constexpr std::string_view kReader = "--reader=";
  constexpr std::string_view kWrite = "--write=";
  std::string_view folder;
  setenv("TMPDIR", "/dev/shm", 0);  // readers of folders write many small files
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kReader)) chosen = leadline::fuzz::find_reader(argument.substr(kReader.size()));
    if (argument.starts_with(kWrite)) folder = argument.substr(kWrite.size());
  }
  if (chosen == nullptr) {
    for (const leadline::fuzz::Reader& reader : leadline::fuzz::readers()) fmt::print("{}\n", reader.name);
    std::exit(*argc > 1 ? 2 : 0);
  }
  if (!folder.empty()) {
    leadline::fuzz::write_material(*chosen, folder);
    std::exit(0);
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  leadline::fuzz::run_one(*chosen, std::as_bytes(std::span(data, size)));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  leadline::fuzz::Random random(seed);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const bool formed = chosen->mutate != nullptr && random() % 2 == 0 && chosen->mutate(bytes, random);
  if (!formed) {
    size = LLVMFuzzerMutate(data, size, most);
    bytes.assign(reinterpret_cast<const char*>(data), size);
  }
  if (chosen->repair != nullptr && random() % 8 != 0) chosen->repair(bytes);
  size = std::min(bytes.size(), most);
  std::memcpy(data, bytes.data(), size);
  return size;
}

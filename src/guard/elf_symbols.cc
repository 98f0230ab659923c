// SPDX-License-Identifier: Apache-2.0
#include "guard/elf_symbols.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include "guard/untrusted_file.h"
#include "leadline/types.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostSymbolHeaders = 10000;
constexpr uint64_t kMostSymbolBytes = uint64_t{512} << 20;
constexpr uint64_t kMostFunction = uint64_t{1} << 24;  // bytes of one whose size is not in the table
constexpr size_t kMostName = 2000;

template <typename Header>
std::vector<Header> read_headers(const FileReader& file, uint64_t offset, size_t count, size_t size) {
  std::vector<Header> headers;
  if (size != sizeof(Header) || count > kMostSymbolHeaders) return headers;
  headers.resize(count);
  if (!file.read(offset, headers.data(), count * sizeof(Header))) headers.clear();
  return headers;
}

/// A place to be named: its address in the library, and the best symbol so far.
struct Place {
  std::optional<uint64_t> address;
  uint64_t symbol = 0;
  uint64_t name = 0;  // offset in the file; 0: none
};

uint64_t end_of(const Elf64_Sym& symbol) {
  const uint64_t size = symbol.st_size == 0 ? kMostFunction : symbol.st_size;
  return symbol.st_value > UINT64_MAX - size ? UINT64_MAX : symbol.st_value + size;
}

/// `left`: bytes of symbols that may still be looked at. Ten thousand sections could all be the same table.
void search(const FileReader& file, const Elf64_Shdr& table, const Elf64_Shdr& names, std::span<Place> places,
            uint64_t& left) {
  if (table.sh_entsize != sizeof(Elf64_Sym) || table.sh_size > left) return;
  left -= table.sh_size;
  constexpr size_t kPiece = 32768;
  std::vector<Elf64_Sym> symbols;
  const uint64_t count = table.sh_size / sizeof(Elf64_Sym);
  for (uint64_t first = 0; first < count; first += kPiece) {
    symbols.resize(static_cast<size_t>(std::min<uint64_t>(kPiece, count - first)));
    const uint64_t begin = first * sizeof(Elf64_Sym);
    if (table.sh_offset > UINT64_MAX - begin) return;
    if (!file.read(table.sh_offset + begin, symbols.data(), symbols.size() * sizeof(Elf64_Sym))) return;
    for (const Elf64_Sym& symbol : symbols) {
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
      if (symbol.st_name >= names.sh_size || names.sh_offset > file.size()) continue;
      for (Place& place : places) {
        if (!place.address || *place.address < symbol.st_value || *place.address >= end_of(symbol)) continue;
        if (place.name != 0 && symbol.st_value <= place.symbol) continue;
        place.symbol = symbol.st_value;
        place.name = names.sh_offset + symbol.st_name;
      }
    }
  }
}

std::string readable(const std::string& name) {
  if (!name.starts_with("_Z")) return printable(name);
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = printable(text != nullptr ? text : name.c_str());
  std::free(text);
  return result;
}

}  // namespace

std::vector<std::string> function_names(const std::string& path, const std::vector<uint64_t>& offsets) {
  std::vector<std::string> result(offsets.size());
  const FileReader file(path);
  Elf64_Ehdr header;
  if (!file.good() || !file.read(0, &header, sizeof header)) return result;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return result;
  std::vector<Place> places(offsets.size());
  for (const auto& part : read_headers<Elf64_Phdr>(file, header.e_phoff, header.e_phnum, header.e_phentsize)) {
    if (part.p_type != PT_LOAD) continue;
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] < part.p_offset || offsets[i] - part.p_offset >= part.p_filesz) continue;
      places[i].address = part.p_vaddr + (offsets[i] - part.p_offset);
    }
  }
  uint64_t left = std::min(kMostSymbolBytes, 2 * file.size());  // libraries have two tables, beside each other
  const auto sections = read_headers<Elf64_Shdr>(file, header.e_shoff, header.e_shnum, header.e_shentsize);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link < sections.size()) search(file, section, sections[section.sh_link], places, left);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].name != 0) result[i] = readable(file.text(places[i].name, kMostName).value_or(""));
  }
  return result;
}

}  // namespace leadline::guard

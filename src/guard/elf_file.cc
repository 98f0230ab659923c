// SPDX-License-Identifier: Apache-2.0
// Reads 64-bit little-endian ELF through program headers. Every offset is checked by FileReader; every list has a
// bound, so links that form a loop end.
#include "guard/elf_file.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostSegments = 256;
constexpr size_t kMostEntries = 4096;

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i686";
    case EM_ARM:
      return "armv7l";
    case EM_PPC64:
      return "ppc64le";
    case EM_S390:
      return "s390x";
    case EM_RISCV:
      return "riscv64";
    default:
      return fmt::format("machine {}", machine);
  }
}

class ElfReader {
 public:
  explicit ElfReader(const std::string& path) : file_(path) {}

  std::optional<ElfFile> read() {
    Elf64_Ehdr header{};
    if (!file_.good() || !file_.read(0, &header, EI_NIDENT) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      return std::nullopt;
    }
    if (header.e_ident[EI_DATA] != ELFDATA2LSB) return std::nullopt;
    if (!file_.read(0, &header, sizeof(Elf32_Half) * 2 + EI_NIDENT)) return std::nullopt;
    result_.machine = machine_name(header.e_machine);
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return result_;
    if (!file_.read(0, &header, sizeof header) || !read_segments(header)) return std::nullopt;
    if (has_dynamic_ && !read_dynamic()) return std::nullopt;
    return result_;
  }

 private:
  bool read_segments(const Elf64_Ehdr& header) {
    if (header.e_phnum > kMostSegments || (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)))
      return false;
    segments_.resize(header.e_phnum);
    if (!segments_.empty() && !file_.read(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr))) {
      return false;
    }
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      dynamic_ = segment;
      has_dynamic_ = true;
    }
    return true;
  }

  /// Where in the file the loader finds an address.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
        const uint64_t inside = address - segment.p_vaddr;
        if (segment.p_offset > UINT64_MAX - inside) return std::nullopt;
        return segment.p_offset + inside;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> name(uint64_t index) const {
    if (!strings_ || index > file_.size()) return std::nullopt;
    return file_.text(*strings_ + index);
  }

  bool read_dynamic() {
    std::vector<Elf64_Dyn> entries(std::min<uint64_t>(dynamic_.p_filesz / sizeof(Elf64_Dyn), kMostEntries));
    if (!entries.empty() && !file_.read(dynamic_.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) {
      return false;
    }
    const auto end =
        std::find_if(entries.begin(), entries.end(), [](const Elf64_Dyn& e) { return e.d_tag == DT_NULL; });
    entries.erase(end, entries.end());
    const auto value = [&](int64_t tag) -> std::optional<uint64_t> {
      const auto found =
          std::find_if(entries.begin(), entries.end(), [&](const Elf64_Dyn& e) { return e.d_tag == tag; });
      return found == entries.end() ? std::nullopt : std::optional<uint64_t>(found->d_un.d_val);
    };
    if (const auto address = value(DT_STRTAB)) strings_ = offset_of(*address);
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_SONAME) continue;
      const std::optional<std::string> text = name(entry.d_un.d_val);
      if (!text) return false;
      if (entry.d_tag == DT_SONAME) result_.soname = *text;
      if (entry.d_tag == DT_NEEDED) result_.needed.push_back(*text);
    }
    if (const auto address = value(DT_VERNEED)) {
      if (const auto at = offset_of(*address); !at || !read_needs(*at)) return false;
    }
    if (const auto address = value(DT_VERDEF)) {
      if (const auto at = offset_of(*address); !at || !read_definitions(*at)) return false;
    }
    return true;
  }

  bool read_needs(uint64_t at) {
    size_t count = 0;
    while (true) {
      Elf64_Verneed library{};
      if (!file_.read(at, &library, sizeof library)) return false;
      uint64_t next = at + library.vn_aux;
      for (unsigned i = 0; i < library.vn_cnt; ++i) {
        Elf64_Vernaux symbol{};
        if (++count > kMostEntries || !file_.read(next, &symbol, sizeof symbol)) return false;
        if (const auto text = name(symbol.vna_name)) result_.needs.push_back(*text);
        if (symbol.vna_next == 0) break;
        next += symbol.vna_next;
      }
      if (library.vn_next == 0) return true;
      if (++count > kMostEntries) return false;
      at += library.vn_next;
    }
  }

  bool read_definitions(uint64_t at) {
    for (size_t count = 0; count < kMostEntries; ++count) {
      Elf64_Verdef definition{};
      Elf64_Verdaux symbol{};
      if (!file_.read(at, &definition, sizeof definition)) return false;
      if (!file_.read(at + definition.vd_aux, &symbol, sizeof symbol)) return false;
      if (const auto text = name(symbol.vda_name)) result_.definitions.push_back(*text);
      if (definition.vd_next == 0) return true;
      at += definition.vd_next;
    }
    return false;
  }

  const FileReader file_;
  ElfFile result_;
  std::vector<Elf64_Phdr> segments_;
  Elf64_Phdr dynamic_{};
  bool has_dynamic_ = false;
  std::optional<uint64_t> strings_;
};

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path) { return ElfReader(path).read(); }

std::optional<Version> highest(const std::vector<std::string>& versions, std::string_view prefix) {
  std::optional<Version> result;
  for (const std::string& text : versions) {
    if (!text.starts_with(prefix)) continue;
    const std::optional<Version> version = Version::parse(std::string_view(text).substr(prefix.size()));
    if (version && (!result || *result < *version)) result = version;
  }
  return result;
}

}  // namespace leadline::guard

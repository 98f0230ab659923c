// SPDX-License-Identifier: Apache-2.0
#include "guard/elf_damage.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "guard/elf_file.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostHeaders = 65536;

class Examination {
 public:
  explicit Examination(const std::string& path) : path_(path), file_(path) {}

  std::string run() {
    if (!file_.good()) return {};
    if (file_.size() == 0) return "is empty";
    char magic[SELFMAG] = {};
    if (!file_.read(0, magic, std::min<size_t>(sizeof magic, file_.size()))) return "cannot be read";
    static constexpr char kZeros[SELFMAG] = {};
    if (std::memcmp(magic, kZeros, sizeof magic) == 0) return "begins with zeros where its ELF header should be";
    if (std::memcmp(magic, ELFMAG, SELFMAG) != 0) return {};  // a script of the linker, or what a test wrote
    Elf64_Ehdr header{};
    if (!file_.read(0, &header, std::min<size_t>(sizeof header, file_.size()))) return "cannot be read";
    if (file_.size() < sizeof(Elf32_Ehdr)) return cut("its ELF header", sizeof(Elf32_Ehdr));
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return {};
    if (file_.size() < sizeof header) return cut("its ELF header", sizeof header);
    std::string damage = look_at_segments(header);
    if (damage.empty()) damage = look_at_sections(header);
    if (damage.empty() && !read_elf(path_)) damage = "has a dynamic section that cannot be read";
    return damage;
  }

 private:
  std::string cut(const std::string& part, uint64_t end) const {
    return fmt::format("has {} bytes, but {} ends at byte {}: it was cut off", file_.size(), part, end);
  }

  /// Whether a part lies outside of the file; its end does not wrap around.
  bool is_outside(uint64_t offset, uint64_t size) const {
    return offset > file_.size() || size > file_.size() - offset;
  }

  static uint64_t end_of(uint64_t offset, uint64_t size) {
    return offset > UINT64_MAX - size ? UINT64_MAX : offset + size;
  }

  std::string look_at_segments(const Elf64_Ehdr& header) const {
    if (header.e_phnum == 0) return {};
    if (header.e_phentsize != sizeof(Elf64_Phdr)) return "has a damaged ELF header";
    const uint64_t bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (is_outside(header.e_phoff, bytes)) return cut("the table of its segments", end_of(header.e_phoff, bytes));
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    if (!file_.read(header.e_phoff, segments.data(), bytes)) return "cannot be read";
    for (size_t i = 0; i < segments.size(); ++i) {
      const Elf64_Phdr& segment = segments[i];
      if (segment.p_type == PT_NULL || segment.p_filesz == 0) continue;
      if (is_outside(segment.p_offset, segment.p_filesz)) {
        return cut(fmt::format("its segment {}", i), end_of(segment.p_offset, segment.p_filesz));
      }
      if (segment.p_type == PT_DYNAMIC && is_zero(segment.p_offset, segment.p_filesz)) {
        return "has zeros where its dynamic section should be";
      }
    }
    return {};
  }

  std::string look_at_sections(const Elf64_Ehdr& header) const {
    if (header.e_shoff == 0) return {};  // some tools remove them
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return "has a damaged ELF header";
    Elf64_Shdr first{};
    if (!file_.read(header.e_shoff, &first, sizeof first)) {
      return cut("the table of its sections", end_of(header.e_shoff, sizeof first));
    }
    const uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;  // many are counted there
    if (count > kMostHeaders) return "has a damaged table of sections";
    if (is_outside(header.e_shoff, count * sizeof(Elf64_Shdr))) {
      return cut("the table of its sections", end_of(header.e_shoff, count * sizeof(Elf64_Shdr)));
    }
    std::vector<Elf64_Shdr> sections(count);
    if (count > 0 && !file_.read(header.e_shoff, sections.data(), count * sizeof(Elf64_Shdr))) return "cannot be read";
    for (size_t i = 1; i < sections.size(); ++i) {
      const Elf64_Shdr& section = sections[i];
      if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
      if (is_outside(section.sh_offset, section.sh_size)) {
        return cut(fmt::format("its section {}", i), end_of(section.sh_offset, section.sh_size));
      }
    }
    return {};
  }

  bool is_zero(uint64_t offset, uint64_t size) const {
    std::vector<char> bytes(static_cast<size_t>(std::min<uint64_t>(size, 4096)));
    if (bytes.empty() || !file_.read(offset, bytes.data(), bytes.size())) return false;
    return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
  }

  const std::string path_;
  const FileReader file_;
};

}  // namespace

std::string elf_damage(const std::string& path) { return Examination(path).run(); }

}  // namespace leadline::guard

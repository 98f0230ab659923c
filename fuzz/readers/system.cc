// SPDX-License-Identifier: Apache-2.0
// What `doctor` and post-mortems read of a system: shared libraries, and the metadata of Python packages.
#include <elf.h>

#include <cstdlib>
#include <cstring>

#include "guard/elf_file.h"
#include "guard/elf_symbols.h"
#include "guard/pep440.h"
#include "guard/pep508.h"
#include "leadline/budget.h"
#include "readers/archive.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void run_elf(Bytes bytes) {
  static MemoryFile file;
  file.set(bytes);
  if (const auto elf = guard::read_elf(file.path())) {
    use(elf->machine + elf->soname);
    for (const std::string& name : elf->needed) use(name);
    guard::highest(elf->needs, "GLIBC_");
    guard::highest(elf->definitions, "GLIBCXX_");
  }
  for (const std::string& name : guard::function_names(file.path(), {0, 64, 512, 520, 4096})) use(name);
}

/// A library with a name, a library it needs, a version it needs, and two functions.
std::string library() {
  constexpr char kNames[] = "\0libsmall.so\0libc.so.6\0GLIBC_2.28\0plain\0_Z3addIiEvT_S0_";
  const std::string names(kNames, sizeof kNames);
  constexpr size_t kBody = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  const size_t dynamic_at = kBody;
  const size_t need_at = dynamic_at + 6 * sizeof(Elf64_Dyn);
  const size_t symbols_at = need_at + sizeof(Elf64_Verneed) + sizeof(Elf64_Vernaux);
  const size_t names_at = symbols_at + 3 * sizeof(Elf64_Sym);
  const size_t sections_at = names_at + 64;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phnum = 2;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shoff = sections_at;
  header.e_shnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_filesz = load.p_memsz = 4096;
  Elf64_Phdr dynamic{};
  dynamic.p_type = PT_DYNAMIC;
  dynamic.p_offset = dynamic_at;
  dynamic.p_filesz = 6 * sizeof(Elf64_Dyn);
  std::string out;
  put(out, header);
  put(out, load);
  put(out, dynamic);
  const auto entry = [&](int64_t tag, size_t value) {
    Elf64_Dyn dyn{};
    dyn.d_tag = tag;
    dyn.d_un.d_val = value;
    put(out, dyn);
  };
  entry(DT_STRTAB, names_at);
  entry(DT_SONAME, 1);
  entry(DT_NEEDED, 13);
  entry(DT_VERNEED, need_at);
  entry(DT_VERNEEDNUM, 1);
  entry(DT_NULL, 0);
  put(out, Elf64_Verneed{1, 1, 13, sizeof(Elf64_Verneed), 0});
  put(out, Elf64_Vernaux{0, 0, 2, 23, 0});
  put(out, Elf64_Sym{});
  put(out, Elf64_Sym{34, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, 100});
  put(out, Elf64_Sym{40, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 500, 100});
  out += names + std::string(64 - names.size(), '\0');
  Elf64_Shdr table{};
  table.sh_type = SHT_DYNSYM;
  table.sh_offset = symbols_at;
  table.sh_size = 3 * sizeof(Elf64_Sym);
  table.sh_entsize = sizeof(Elf64_Sym);
  table.sh_link = 1;
  Elf64_Shdr strings{};
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = names_at;
  strings.sh_size = 64;
  put(out, table);
  put(out, strings);
  return out;
}

std::vector<std::string> libraries() { return {library()}; }

std::vector<std::string> elf_words() {
  return {
      "\x7f"
      "ELF",
      "_Z",
      "GLIBC_2.28",
      "St",
      "S0_",
      "IJ",
      "EE",
      "DpT_",
      "NK"};
}

/// A line of metadata, which is also tried as a version, a range, a marker and an amount of memory.
void run_requirement(Bytes bytes) {
  static const guard::MarkerValues values{
      {"python_version", "3.11"}, {"sys_platform", "linux"}, {"platform_machine", "x86_64"}, {"extra", ""}};
  const std::string_view text = as_text(bytes);
  const std::optional<guard::Version> version = guard::Version::parse(text);
  const std::optional<guard::Specifiers> range = guard::Specifiers::parse(text);
  if (version && version->compare(*version) != 0) std::abort();
  static const guard::Version some = *guard::Version::parse("1.2.3rc1.post2.dev3+local.4");
  if (range) use(range->allows(version.value_or(some)) ? "y" : "n");
  if (const auto requirement = guard::Requirement::parse(text)) {
    use(requirement->name);
    use(guard::marker_holds(requirement->marker, values) ? "y" : "n");
    use(requirement->specifiers.allows(some) ? "y" : "n");
  }
  use(guard::marker_holds(text, values) ? "y" : "n");
  use(guard::normalized_name(text));
  parse_bytes(text);
}

std::vector<std::string> requirements() {
  return {"numpy (<2.0.0,>=1.23.5) ; python_version <= \"3.11\"",
          "Jax[cuda12,extra]>=0.4,!=0.5.*,~=0.4.1 ; extra == 'and-cuda' and (sys_platform == 'linux' or 'x' in "
          "platform_machine)",
          "1!2.0.0rc1.post3.dev4+ubuntu.1",
          "v1.0-beta",
          "==2.1.*,===1.0,<3",
          "python_version not in '3.8 3.9' and not_known != \"\"",
          "1.5GiB",
          "50%"};
}

std::vector<std::string> requirement_words() {
  return {" and ", " or ", " in ", " not in ", "python_version", "extra", "sys_platform",
          "((((",  "))))", "~=",   "===",      ".dev",           ".post", "rc",
          "1e308", "GiB",  "%"};
}

}  // namespace

Reader elf_reader() {
  return {.name = "elf", .run = run_elf, .seeds = libraries, .words = elf_words, .most_bytes = 4096};
}
Reader requirement_reader() {
  return {.name = "requirement",
          .run = run_requirement,
          .seeds = requirements,
          .words = requirement_words,
          .most_bytes = 2048};
}

}  // namespace leadline::fuzz

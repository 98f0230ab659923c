// SPDX-License-Identifier: Apache-2.0
#include "guard/import_scan.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <iterator>

#include "guard/trim.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kSourceBytes = size_t{4} << 20;
constexpr size_t kMostSources = 1500;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0; }

/// Logical lines: strings and comments are blanked, brackets and backslashes join lines, `;` parts them.
class Lines {
 public:
  explicit Lines(std::string_view source) : source_(source) {}

  std::vector<std::string> split() {
    while (at_ < source_.size()) step();
    end_line();
    return std::move(lines_);
  }

 private:
  void step() {
    const char c = source_[at_];
    if (c == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (c == '"' || c == '\'') {
      skip_string(c);
    } else if (c == '\\' && source_.substr(at_ + 1, 1) == "\n") {
      line_ += ' ';
      at_ += 2;
    } else if (c == '\n') {
      ++at_;
      if (depth_ > 0) {
        line_ += ' ';
      } else {
        end_line();
      }
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if (c == ')' || c == ']' || c == '}') depth_ = std::max(depth_ - 1, 0);
      line_ += c;
      ++at_;
    }
  }

  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool is_long = source_.substr(at_, 3) == three;
    line_ += "''";
    at_ += is_long ? 3 : 1;
    while (at_ < source_.size()) {
      if (source_[at_] == '\\') {
        at_ += 2;
      } else if (is_long ? source_.substr(at_, 3) == three : source_[at_] == quote) {
        at_ += is_long ? 3 : 1;
        return;
      } else if (!is_long && source_[at_] == '\n') {
        return;
      } else {
        ++at_;
      }
    }
  }

  void end_line() {
    if (!line_.empty()) lines_.push_back(std::move(line_));
    line_.clear();
  }

  std::string_view source_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string line_;
  std::vector<std::string> lines_;
};

/// "a" of "a as b".
std::string first_word(std::string_view text) {
  const std::string_view word = trim(text);
  return std::string(word.substr(0, word.find_first_of(" \t")));
}

std::vector<std::string> listed(std::string_view text) {
  std::string plain(text);
  std::replace_if(plain.begin(), plain.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
  std::vector<std::string> names;
  std::string_view rest = plain;
  while (!rest.empty()) {
    const size_t size = std::min(rest.find(','), rest.size());
    if (std::string name = first_word(rest.substr(0, size)); !name.empty()) names.push_back(std::move(name));
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  return names;
}

void read_statement(std::string_view line, std::vector<ImportStatement>& result) {
  if (line.starts_with("import ")) {
    for (std::string& module : listed(line.substr(7))) result.push_back({0, std::move(module), {}});
  } else if (line.starts_with("from ")) {
    std::string_view rest = trim(line.substr(5));
    ImportStatement statement;
    while (rest.starts_with('.')) {
      ++statement.level;
      rest.remove_prefix(1);
    }
    const size_t end = rest.starts_with("import") ? 0 : rest.find(" import");
    if (end == std::string_view::npos) return;
    statement.module = trim(rest.substr(0, end));
    statement.names = listed(rest.substr(rest.find("import", end) + 6));
    if (!statement.names.empty()) result.push_back(std::move(statement));
  }
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

/// Whether a module has names that do not stand in its source.
bool may_have_any_name(const std::string& source) {
  static constexpr const char* kSigns[] = {"\ndef __getattr__", "\n__getattr__",    "import *",
                                           "globals()[",        "globals().update", "sys.modules[__name__]"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](const char* sign) { return ("\n" + source).find(sign) != std::string::npos; });
}

std::string top_of(const std::string& module) { return module.substr(0, module.find('.')); }

class Scan {
 public:
  Scan(const std::vector<std::string>& sites, const std::set<std::string>& targets)
      : sites_(sites), targets_(targets) {}

  std::optional<FailingImport> run(const std::vector<std::string>& modules) {
    for (const std::string& module : modules) enqueue(module);
    while (!waiting_.empty() && seen_.size() < kMostSources) {
      const std::string module = waiting_.front();
      waiting_.pop_front();
      if (std::optional<FailingImport> failing = look_into(module)) return failing;
    }
    return std::nullopt;
  }

 private:
  struct Found {
    std::string site;
    std::string file;      // relative to the site; empty: no source
    bool package = false;  // a folder
    bool any = false;      // something of this name is there
  };

  Found find(const std::string& module) const {
    std::string path = module;
    std::replace(path.begin(), path.end(), '.', '/');
    for (const std::string& site : sites_) {
      if (is_regular_file(site + "/" + path + "/__init__.py")) return {site, path + "/__init__.py", true, true};
      if (is_regular_file(site + "/" + path + ".py")) return {site, path + ".py", false, true};
      if (is_folder(site + "/" + path) || has_extension(site, path)) return {site, "", true, true};
    }
    return {};
  }

  /// Whether there is a compiled module of the name.
  static bool has_extension(const std::string& site, const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? site : site + "/" + path.substr(0, slash);
    const std::string name = path.substr(slash + 1) + ".";
    const std::vector<std::string> files = list_folder(folder);
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return file.starts_with(name) && file.ends_with(".so"); });
  }

  void enqueue(const std::string& module) {
    // Importing a.b imports a first.
    for (size_t dot = module.find('.'); dot != std::string::npos; dot = module.find('.', dot + 1)) {
      if (seen_.insert(module.substr(0, dot)).second) waiting_.push_back(module.substr(0, dot));
    }
    if (seen_.insert(module).second) waiting_.push_back(module);
  }

  std::optional<FailingImport> look_into(const std::string& module) {
    const Found found = find(module);
    if (found.file.empty()) return std::nullopt;
    const std::string source = read_start(found.site + "/" + found.file, kSourceBytes).value_or("");
    for (const ImportStatement& statement : unconditional_imports(source)) {
      const std::optional<std::string> from = absolute(statement, module, found.package);
      if (!from || from->empty()) continue;
      if (targets_.contains(top_of(*from))) {
        if (std::optional<FailingImport> failing = check(found.file, *from, statement.names)) return failing;
      }
      enqueue(*from);
      for (const std::string& name : statement.names) {
        if (name != "*" && find(*from + "." + name).any) enqueue(*from + "." + name);
      }
    }
    return std::nullopt;
  }

  static std::optional<std::string> absolute(const ImportStatement& statement, const std::string& module,
                                             bool package) {
    if (statement.level == 0) return statement.module;
    std::string base = module;
    for (int level = package ? 1 : 0; level < statement.level; ++level) {
      const size_t dot = base.rfind('.');
      if (dot == std::string::npos) return std::nullopt;
      base.resize(dot);
    }
    return statement.module.empty() ? base : base + "." + statement.module;
  }

  std::optional<FailingImport> check(const std::string& file, const std::string& from,
                                     const std::vector<std::string>& names) const {
    const Found found = find(from);
    if (!found.any) {
      // A module inside a package may be made when that runs; one of its own may not.
      if (from.find('.') == std::string::npos) return FailingImport{file, from, ""};
      return std::nullopt;
    }
    if (found.file.empty()) return std::nullopt;
    const std::string source = read_start(found.site + "/" + found.file, kSourceBytes).value_or("");
    if (source.size() == kSourceBytes || may_have_any_name(source)) return std::nullopt;
    for (const std::string& name : names) {
      if (name == "*" || has_word(source, name) || find(from + "." + name).any) continue;
      return FailingImport{file, from, name};
    }
    return std::nullopt;
  }

  const std::vector<std::string>& sites_;
  const std::set<std::string>& targets_;
  std::set<std::string> seen_;
  std::deque<std::string> waiting_;
};

}  // namespace

std::vector<ImportStatement> unconditional_imports(std::string_view source) {
  std::vector<ImportStatement> result;
  for (const std::string& line : Lines(source).split()) {
    std::string_view rest = line;
    while (!rest.empty()) {
      const size_t size = std::min(rest.find(';'), rest.size());
      const std::string_view part = rest.substr(0, size);
      // Blocks are indented; `if x: import y` begins with its condition.
      read_statement(rest.data() == line.data() ? part : trim(part), result);
      rest.remove_prefix(std::min(size + 1, rest.size()));
      if (line.starts_with(' ') || line.starts_with('\t') || part.find(':') != std::string_view::npos) break;
    }
  }
  return result;
}

std::optional<FailingImport> find_failing_import(const std::vector<std::string>& sites,
                                                 const std::vector<std::string>& modules,
                                                 const std::set<std::string>& targets) {
  return Scan(sites, targets).run(modules);
}

}  // namespace leadline::guard

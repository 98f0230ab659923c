// SPDX-License-Identifier: Apache-2.0
#include "guard/python_env.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "guard/trim.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kMetadataBytes = size_t{1} << 20;
constexpr size_t kRecordBytes = size_t{16} << 20;
constexpr size_t kMostDistributions = 5000;

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// "3.11" of "3.11.7".
std::string minor_version(const std::string& version) {
  const size_t first = version.find('.');
  return first == std::string::npos ? "" : version.substr(0, version.find('.', first + 1));
}

/// "3.11" of a name like "python3.11" or "python3.13t"; empty without both numbers.
std::string version_in_name(std::string_view name) {
  if (!name.starts_with("python")) return {};
  std::string version;
  for (const char c : name.substr(6)) {
    if ((c < '0' || c > '9') && c != '.') break;
    version += c;
  }
  return version.find('.') == std::string::npos || version.ends_with('.') ? std::string() : version;
}

std::string value_of(const std::string& text, std::string_view key) {
  std::string result;
  for_each_line(text, [&](std::string_view line) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || trim(line.substr(0, equals)) != key || !result.empty()) return;
    result = trim(line.substr(equals + 1));
  });
  return result;
}

/// Reads the headers of a METADATA or PKG-INFO: they end with the first empty line.
void read_metadata(const std::string& text, Distribution& distribution) {
  bool headers = true;
  for_each_line(text, [&](std::string_view line) {
    headers = headers && !line.empty();
    const size_t colon = line.find(':');
    if (!headers || colon == std::string_view::npos || line.front() == ' ' || line.front() == '\t') return;
    const std::string_view key = line.substr(0, colon);
    const std::string value(trim(line.substr(colon + 1)).substr(0, 4096));
    if (key == "Name" && distribution.name.empty() && is_package_name(value))
      distribution.name = normalized_name(value);
    if (key == "Version" && distribution.version.empty()) distribution.version = value;
    if (key == "Requires-Python") distribution.requires_python = value;
    if (key == "Requires-Dist" && distribution.requirements.size() < 2000) distribution.requirements.push_back(value);
  });
  distribution.parsed = Version::parse(distribution.version);
}

void read_site(const std::string& site, PythonEnvironment& environment) {
  for (const std::string& name : list_folder(site)) {
    const std::string path = site + "/" + name;
    if (name.starts_with('~')) {
      environment.leftovers.push_back(path);
      continue;
    }
    const bool dist_info = name.ends_with(".dist-info");
    if (!dist_info && !name.ends_with(".egg-info")) continue;
    if (environment.distributions.size() >= kMostDistributions) {
      environment.notes.push_back(site + ": more distributions than are looked at");
      return;
    }
    Distribution distribution;
    distribution.site = site;
    distribution.metadata = path;
    const bool single_file = !dist_info && is_regular_file(path);
    const auto text = read_start(single_file ? path : path + (dist_info ? "/METADATA" : "/PKG-INFO"), kMetadataBytes);
    if (text) read_metadata(*text, distribution);
    if (!text || distribution.name.empty() || distribution.version.empty()) {
      environment.without_metadata.push_back(path);
      continue;
    }
    if (dist_info) {
      distribution.installer = trim(read_start(path + "/INSTALLER", 100).value_or(""));
      for_each_line(read_start(path + "/WHEEL", 65536).value_or(""), [&](std::string_view line) {
        if (line.starts_with("Tag:") && distribution.tags.size() < 50)
          distribution.tags.emplace_back(trim(line.substr(4)));
      });
    }
    environment.distributions.push_back(std::move(distribution));
  }
}

void read_conda(PythonEnvironment& environment) {
  for (const std::string& name : list_folder(environment.prefix + "/conda-meta")) {
    if (!name.ends_with(".json")) continue;  // name-version-build.json
    const size_t build = name.rfind('-');
    if (build == std::string::npos || build == 0) continue;
    const size_t version = name.rfind('-', build - 1);
    if (version == std::string::npos) continue;
    environment.conda[normalized_name(name.substr(0, version))] = name.substr(version + 1, build - version - 1);
  }
}

class Finder {
 public:
  Finder(const PythonQuery& query, PythonEnvironment& result) : query_(query), result_(result) {}

  void find() {
    find_executable();
    find_prefix();
    find_version();
    if (query_.site_packages.empty()) {
      find_sites();
    } else {
      for (const std::string& site : query_.site_packages) add_site(site);
    }
  }

 private:
  std::string variable(const std::string& name) const {
    const auto found = query_.variables.find(name);
    return found == query_.variables.end() ? std::string() : found->second;
  }

  static std::string python_in(const std::string& prefix) {
    for (const char* name : {"/bin/python", "/bin/python3"}) {
      if (is_regular_file(prefix + name)) return prefix + name;
    }
    return {};
  }

  void find_executable() {
    if (!query_.python.empty()) {
      result_.executable = is_folder(query_.python) ? python_in(query_.python) : query_.python;
      if (result_.executable.find('/') == std::string::npos && !result_.executable.empty()) {
        result_.executable = on_path({result_.executable});
      }
    } else if (query_.site_packages.empty()) {
      for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        if (result_.executable.empty() && !variable(name).empty()) result_.executable = python_in(variable(name));
      }
      if (result_.executable.empty()) result_.executable = on_path({"python3", "python"});
    }
    if (!is_regular_file(result_.executable)) result_.executable.clear();
    follow_shim();
  }

  std::string on_path(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      std::string_view rest = query_.variables.count("PATH") != 0 ? query_.variables.at("PATH") : std::string_view();
      while (!rest.empty()) {
        const size_t size = std::min(rest.find(':'), rest.size());
        const std::string file = std::string(rest.substr(0, size)) + "/" + name;
        if (size > 0 && is_regular_file(file) && access(file.c_str(), X_OK) == 0) return file;
        rest.remove_prefix(std::min(size + 1, rest.size()));
      }
    }
    return {};
  }

  /// pyenv puts a script on PATH that picks the interpreter when it runs.
  void follow_shim() {
    const std::string folder = parent(result_.executable);
    if (result_.executable.empty() || base_name(folder) != "shims") return;
    std::string chosen = variable("PYENV_VERSION");
    if (chosen.empty()) chosen = read_start(parent(folder) + "/version", 1000).value_or("");
    chosen = chosen.substr(0, chosen.find_first_of(":\n"));
    const std::string target = python_in(parent(folder) + "/versions/" + chosen);
    if (!chosen.empty() && !target.empty()) result_.executable = target;
  }

  void find_prefix() {
    if (result_.executable.empty()) {
      if (!query_.python.empty() && is_folder(query_.python)) result_.prefix = query_.python;
      // site-packages of PREFIX/lib/pythonX.Y.
      if (result_.prefix.empty() && !query_.site_packages.empty()) {
        result_.prefix = parent(parent(parent(query_.site_packages.front())));
      }
    } else {
      result_.prefix = parent(parent(result_.executable));
      if (!is_regular_file(result_.prefix + "/pyvenv.cfg")) {
        if (const auto real = resolved(result_.executable)) result_.prefix = parent(parent(*real));
      }
    }
    if (const auto text = read_start(result_.prefix + "/pyvenv.cfg", 65536); text && !result_.prefix.empty()) {
      result_.virtual_environment = true;
      settings_ = *text;
    }
  }

  void find_version() {
    result_.version = query_.version;
    if (!result_.version.empty()) return;
    for (const char* key : {"version", "version_info"}) {
      const std::string value = value_of(settings_, key);
      if (Version::parse(value) || value.find('.') != std::string::npos) {
        const std::optional<Version> parsed = Version::parse(value);
        if (parsed) result_.version = value;
        if (parsed) return;
      }
    }
    std::string found;
    if (const auto real = resolved(result_.executable); real && !result_.executable.empty()) {
      found = version_in_name(base_name(*real));
    }
    for (const std::string& site : query_.site_packages) {
      if (found.empty()) found = version_in_name(base_name(parent(site)));
    }
    if (found.empty() && !result_.prefix.empty()) {
      for (const std::string& name : list_folder(result_.prefix + "/lib")) {
        const std::string version = version_in_name(name);
        if (!version.empty() && is_folder(result_.prefix + "/lib/" + name)) found = version;
      }
    }
    result_.version = found;
    if (found.empty()) return;
    const auto header = read_start(result_.prefix + "/include/python" + found + "/patchlevel.h", 65536);
    const size_t at = header ? header->find("PY_VERSION ") : std::string::npos;
    if (at == std::string::npos) return;
    const size_t open = header->find('"', at);
    const size_t close = open == std::string::npos ? open : header->find('"', open + 1);
    if (close == std::string::npos) return;
    const std::string full = header->substr(open + 1, close - open - 1);
    if (Version::parse(full)) result_.version = full;
  }

  void add_site(const std::string& site) {
    if (!is_folder(site)) {
      if (!query_.site_packages.empty()) result_.notes.push_back(site + ": not a folder that can be read");
      return;
    }
    const std::string real = resolved(site).value_or(site);
    if (seen_.insert(real).second) result_.sites.push_back(site);
  }

  void add_sites_of(const std::string& prefix, const std::string& minor) {
    for (const char* lib : {"/lib/python", "/lib64/python"}) {
      add_site(prefix + lib + minor + "/site-packages");
      add_site(prefix + lib + minor + "t/site-packages");  // builds without the global lock
    }
    if (prefix == "/usr") {  // Debian's own places
      add_site("/usr/local/lib/python" + minor + "/dist-packages");
      add_site("/usr/lib/python3/dist-packages");
    }
  }

  void find_sites() {
    std::string_view extra =
        query_.variables.count("PYTHONPATH") != 0 ? query_.variables.at("PYTHONPATH") : std::string_view();
    while (!extra.empty()) {
      const size_t size = std::min(extra.find(':'), extra.size());
      if (size > 0) add_site(std::string(extra.substr(0, size)));
      extra.remove_prefix(std::min(size + 1, extra.size()));
    }
    const std::string minor = minor_version(result_.version);
    if (minor.empty()) {
      result_.notes.push_back("no Python was found whose version is known; name one with --python");
      return;
    }
    const bool system = !result_.virtual_environment || value_of(settings_, "include-system-site-packages") == "true";
    if (result_.virtual_environment) add_sites_of(result_.prefix, minor);
    if (!system) return;
    if (variable("PYTHONNOUSERSITE").empty() && !variable("HOME").empty()) {
      add_site(variable("HOME") + "/.local/lib/python" + minor + "/site-packages");
    }
    add_sites_of(result_.virtual_environment ? parent(value_of(settings_, "home")) : result_.prefix, minor);
  }

  const PythonQuery& query_;
  PythonEnvironment& result_;
  std::string settings_;  // of pyvenv.cfg
  std::set<std::string> seen_;
};

}  // namespace

std::vector<RecordedFile> Distribution::records(size_t limit) const {
  std::vector<RecordedFile> result;
  for_each_line(read_start(metadata + "/RECORD", kRecordBytes).value_or(""), [&](std::string_view line) {
    if (result.size() >= limit) return;
    while (line.ends_with('\r')) line.remove_suffix(1);
    std::string_view path = line.substr(0, line.find(','));
    if (line.starts_with('"')) path = line.substr(1, line.find('"', 1) - 1);
    // Scripts lie outside ("../../bin/x"); they say nothing about the package.
    if (path.empty() || path.front() == '/' || path.find("..") != std::string_view::npos || path.size() >= 1000) return;
    RecordedFile file;
    file.path = path;
    const size_t last = line.rfind(',');
    const size_t middle = last == std::string_view::npos || last == 0 ? last : line.rfind(',', last - 1);
    if (middle != std::string_view::npos && middle >= path.size()) {
      const std::string_view hash = line.substr(middle + 1, last - middle - 1);
      if (hash.starts_with("sha256=")) file.sha256 = hash.substr(7);
      uint64_t size = 0;
      const std::string_view digits = line.substr(last + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
      if (error == std::errc() && end == digits.data() + digits.size()) file.size = size;
    }
    result.push_back(std::move(file));
  });
  return result;
}

std::vector<std::string> Distribution::files(size_t limit) const {
  std::vector<std::string> result;
  for (RecordedFile& file : records(limit)) result.push_back(std::move(file.path));
  return result;
}

std::vector<std::string> Distribution::modules() const {
  constexpr size_t kMostFiles = 50000;
  std::set<std::string> found;
  for (const std::string& file : files(kMostFiles)) {
    const size_t slash = file.find('/');
    const std::string first = file.substr(0, slash);
    if (slash != std::string::npos) {
      const bool module = file.ends_with(".py") || file.ends_with(".so");
      if (module && first.find('.') == std::string::npos && first != "bin") found.insert(first);
    } else if (first.ends_with(".py") || first.ends_with(".so")) {
      found.insert(first.substr(0, first.find('.')));
    }
  }
  if (found.empty()) {
    std::string own = name;
    std::replace(own.begin(), own.end(), '-', '_');
    found.insert(own);
  }
  return {found.begin(), found.end()};
}

const Distribution* PythonEnvironment::find(std::string_view name) const {
  const auto found =
      std::find_if(distributions.begin(), distributions.end(), [&](const Distribution& d) { return d.name == name; });
  return found == distributions.end() ? nullptr : &*found;
}

MarkerValues PythonEnvironment::markers() const {
  utsname system{};
  uname(&system);
  return {{"python_version", minor_version(version).empty() ? version : minor_version(version)},
          {"python_full_version", version},
          {"implementation_version", version},
          {"os_name", "posix"},
          {"sys_platform", "linux"},
          {"platform_system", "Linux"},
          {"platform_machine", system.machine},
          {"platform_release", system.release},
          {"platform_python_implementation", "CPython"},
          {"implementation_name", "cpython"},
          {"extra", ""}};
}

PythonEnvironment read_environment(const PythonQuery& query) {
  PythonEnvironment environment;
  Finder(query, environment).find();
  for (const std::string& site : environment.sites) read_site(site, environment);
  if (!environment.prefix.empty()) read_conda(environment);
  return environment;
}

std::map<std::string, std::string> python_variables() {
  std::map<std::string, std::string> result;
  for (const char* name :
       {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_VERSION", "PYTHONPATH", "PYTHONNOUSERSITE", "HOME"}) {
    if (const char* const value = std::getenv(name)) result[name] = value;
  }
  return result;
}

}  // namespace leadline::guard

// SPDX-License-Identifier: Apache-2.0
// A Python environment as its files describe it: interpreter, version, site-packages, installed distributions. No
// Python runs and nothing is imported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/pep440.h"
#include "guard/pep508.h"

namespace leadline::guard {

/// A line of RECORD.
struct RecordedFile {
  std::string path;    ///< relative to the folder of packages
  std::string sha256;  ///< as RECORD has it; empty: not known
  std::optional<uint64_t> size;
};

/// One *.dist-info or *.egg-info.
struct Distribution {
  std::string name;     ///< normalized: "ml-dtypes"
  std::string version;  ///< as written
  std::optional<Version> parsed;
  std::string site;       ///< the folder that holds it
  std::string metadata;   ///< its dist-info
  std::string installer;  ///< "pip", "conda", "uv"; empty: unknown
  std::string requires_python;
  std::vector<std::string> requirements;  ///< lines of Requires-Dist
  std::vector<std::string> tags;          ///< of the wheel: "cp311-cp311-manylinux_2_28_x86_64"

  /// Files that RECORD lists, relative to `site`; at most `limit`.
  std::vector<std::string> files(size_t limit) const;
  std::vector<RecordedFile> records(size_t limit) const;
  /// What `import` knows it by: "yaml" of pyyaml. Its own name where RECORD does not say.
  std::vector<std::string> modules() const;
};

struct PythonQuery {
  std::string python;                            ///< interpreter or folder of an environment; empty: found by variables
  std::vector<std::string> site_packages;        ///< empty: those of the interpreter
  std::string version;                           ///< "3.11.7" where the caller knows it
  std::map<std::string, std::string> variables;  ///< PATH, VIRTUAL_ENV, HOME, ...
};

struct PythonEnvironment {
  std::string executable;
  std::string prefix;
  std::string version;  ///< "3.11.7", "3.11", or empty: unknown
  bool virtual_environment = false;
  std::vector<std::string> sites;  ///< in the order of sys.path
  std::vector<Distribution> distributions;
  std::vector<std::string> leftovers;         ///< folders "~umpy" that pip leaves when it is stopped
  std::vector<std::string> without_metadata;  ///< dist-info folders that have no METADATA
  std::map<std::string, std::string> conda;   ///< version by normalized name, of conda-meta
  std::vector<std::string> notes;             ///< what could not be read

  /// The one that `import` finds: the first on the path.
  const Distribution* find(std::string_view name) const;
  /// Values for markers of requirements.
  MarkerValues markers() const;
};

PythonEnvironment read_environment(const PythonQuery& query);

/// The variables of this process that matter here.
std::map<std::string, std::string> python_variables();

}  // namespace leadline::guard

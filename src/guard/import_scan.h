// SPDX-License-Identifier: Apache-2.0
// Does an import fail? Follows the imports at the top level of Python sources, without running them, and looks for
// names that the modules they come from do not have.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::guard {

/// An import statement: `from .a import b, c` has level 1, module "a" and the names b and c; `import a.b` has no names.
struct ImportStatement {
  int level = 0;
  std::string module;
  std::vector<std::string> names;
};

/// Those that run whenever the source does: outside of every block, so not those in `try:` or `if TYPE_CHECKING:`.
std::vector<ImportStatement> unconditional_imports(std::string_view source);

struct FailingImport {
  std::string file;    ///< relative to its site-packages
  std::string module;  ///< from which it wants
  std::string name;    ///< this; empty: the module itself is missing
};

/// The first import among those that `import MODULE` reaches, for one of `modules`, that wants from a module of
/// `targets` (top-level names) what is not there. Nothing when all is there or it cannot be told: modules that are
/// compiled, import with a star or define __getattr__ may have any name.
std::optional<FailingImport> find_failing_import(const std::vector<std::string>& sites,
                                                 const std::vector<std::string>& modules,
                                                 const std::set<std::string>& targets);

}  // namespace leadline::guard

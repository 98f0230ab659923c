// SPDX-License-Identifier: Apache-2.0
#include "guard/import_scan.h"

#include <gtest/gtest.h>

#include "guard/site_testing.h"

namespace leadline::guard {
namespace {

std::string shown(const std::vector<ImportStatement>& statements) {
  std::string text;
  for (const ImportStatement& statement : statements) {
    text += std::string(static_cast<size_t>(statement.level), '.') + statement.module + ":";
    for (const std::string& name : statement.names) text += name + ",";
    text += " ";
  }
  return text;
}

TEST(ImportScan, FindsWhatRunsWithTheSource) {
  EXPECT_EQ(shown(unconditional_imports("import os, a.b as c\nfrom x import y as z, w  # not this\n")),
            "os: a.b: x:y,w, ");
  EXPECT_EQ(shown(unconditional_imports("from . import a\nfrom ..b.c import (\n  d,  # one\n  e,\n)\n")),
            ".:a, ..b.c:d,e, ");
  EXPECT_EQ(shown(unconditional_imports("from a import b, \\\n  c\nimport d; import e\n")), "a:b,c, d: e: ");
  EXPECT_EQ(shown(unconditional_imports("from a import *\n")), "a:*, ");
}

TEST(ImportScan, LeavesOutBlocksAndTexts) {
  EXPECT_EQ(shown(unconditional_imports("try:\n    import a\nexcept ImportError:\n    a = None\n")), "");
  EXPECT_EQ(shown(unconditional_imports("if TYPE_CHECKING: import a\nif x:\n\tfrom b import c\n")), "");
  EXPECT_EQ(shown(unconditional_imports("\"\"\"A text\nfrom a import b\n\"\"\"\nx = 'import c'\nimport d\n")), "d: ");
  EXPECT_EQ(shown(unconditional_imports("x = (\nimport_a,\n)\nfrom_b = 1\n# import e\n")), "");
  EXPECT_EQ(shown(unconditional_imports("x = '''\nimport a")), "");
}

TEST(ImportScan, FollowsImportsToTheNameThatIsMissing) {
  const FakeSite site;
  site.write_package_file("app/__init__.py", "from .version import VERSION\n");
  site.write_package_file("app/version.py", "from app_core import VERSION\n");
  site.write_package_file("app_core/__init__.py", "from . import schema\nVERSION = 1\n");
  site.write_package_file("app_core/schema.py", "from typing import Any\nfrom extras import (Old,\n  Newer)\n");
  site.write_package_file("app_core/plugin.py", "from extras import Never\n");
  site.write_package_file("extras.py", "class Old: pass\n");
  const std::vector<std::string> sites = {site.site()};
  const auto failing = find_failing_import(sites, {"app"}, {"extras"});
  ASSERT_TRUE(failing);
  EXPECT_EQ(failing->file, "app_core/schema.py");
  EXPECT_EQ(failing->module, "extras");
  EXPECT_EQ(failing->name, "Newer");
  EXPECT_FALSE(find_failing_import(sites, {"app"}, {"other"}));
  site.write_package_file("extras.py", "class Old: pass\nNewer = Old\n");
  EXPECT_FALSE(find_failing_import(sites, {"app"}, {"extras"})) << "plugin.py is not imported";
  site.write_package_file("extras.py", "def __getattr__(name): return name\n");
  EXPECT_FALSE(find_failing_import(sites, {"app"}, {"extras"}));
}

TEST(ImportScan, SeesModulesThatAreMissing) {
  const FakeSite site;
  site.write_package_file("app.py", "import json, gone\n");
  const auto failing = find_failing_import({site.site()}, {"app"}, {"gone"});
  ASSERT_TRUE(failing);
  EXPECT_EQ(failing->module, "gone");
  EXPECT_EQ(failing->name, "");
  site.write_package_file("app.py", "try:\n  import gone\nexcept ImportError: pass\n");
  EXPECT_FALSE(find_failing_import({site.site()}, {"app"}, {"gone"}));
}

TEST(ImportScan, EndsWhereModulesImportEachOther) {
  const FakeSite site;
  site.write_package_file("a.py", "import b\nfrom b import x\n");
  site.write_package_file("b.py", "import a\nfrom a import y\n");
  EXPECT_FALSE(find_failing_import({site.site()}, {"a"}, {"nothing"}));
}

}  // namespace
}  // namespace leadline::guard

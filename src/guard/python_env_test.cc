// SPDX-License-Identifier: Apache-2.0
#include "guard/python_env.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "guard/site_testing.h"

namespace leadline::guard {
namespace {

void make_executable(const FakeSite& site, const std::string& path) {
  site.write(path, "not really Python");
  std::filesystem::permissions(site.root() + "/" + path, std::filesystem::perms::owner_all);
}

TEST(PythonEnvironment, OfAVirtualEnvironment) {
  const FakeSite site;
  site.write("pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n");
  make_executable(site, "bin/python");
  site.add("numpy", "1.26.4");
  for (const std::string& python : {site.root(), site.root() + "/bin/python"}) {
    const auto environment = read_environment({python, {}, "", {}});
    EXPECT_EQ(environment.version, "3.11.7");
    EXPECT_TRUE(environment.virtual_environment);
    EXPECT_EQ(environment.sites, std::vector<std::string>{site.site()});
    ASSERT_NE(environment.find("numpy"), nullptr);
    EXPECT_EQ(environment.find("numpy")->version, "1.26.4");
    EXPECT_EQ(environment.find("numpy")->installer, "pip");
  }
}

TEST(PythonEnvironment, IsFoundByVariables) {
  const FakeSite site;
  site.write("pyvenv.cfg", "version = 3.11.7\n");
  make_executable(site, "bin/python");
  make_executable(site, "bin/python3");
  EXPECT_EQ(read_environment({"", {}, "", {{"VIRTUAL_ENV", site.root()}}}).version, "3.11.7");
  EXPECT_EQ(read_environment({"", {}, "", {{"PATH", "/nowhere:" + site.root() + "/bin"}}}).executable,
            site.root() + "/bin/python3");
  const auto none = read_environment({"", {}, "", {{"PATH", "/nowhere"}}});
  EXPECT_TRUE(none.executable.empty());
  EXPECT_FALSE(none.notes.empty());
}

TEST(PythonEnvironment, OfAnInterpreterItselfTellsItsVersionByName) {
  const FakeSite site;
  make_executable(site, "bin/python3.11");
  std::filesystem::create_symlink("python3.11", site.root() + "/bin/python");
  site.write("include/python3.11/patchlevel.h", "#define PY_VERSION \"3.11.9\"\n");
  const auto environment = read_environment({site.root() + "/bin/python", {}, "", {{"HOME", "/nowhere"}}});
  EXPECT_EQ(environment.version, "3.11.9");
  EXPECT_EQ(environment.sites.size(), 1U);
}

TEST(PythonEnvironment, FollowsShims) {
  const FakeSite site;
  make_executable(site, "shims/python3");
  make_executable(site, "versions/3.11.5/bin/python3.11");
  std::filesystem::create_symlink("python3.11", site.root() + "/versions/3.11.5/bin/python");
  site.write("version", "3.11.5\n");
  const auto environment = read_environment({"", {}, "", {{"PATH", site.root() + "/shims"}}});
  EXPECT_EQ(environment.executable, site.root() + "/versions/3.11.5/bin/python");
  EXPECT_EQ(environment.version, "3.11");
}

TEST(PythonEnvironment, ReadsOldKindsOfMetadata) {
  const FakeSite site;
  site.write_package_file("a-1.0.egg-info/PKG-INFO", "Name: a\nVersion: 1.0\n");
  site.write_package_file("b-2.0.egg-info", "Name: b\nVersion: 2.0\n");
  const auto environment = site.subject().environment;
  EXPECT_NE(environment.find("a"), nullptr);
  EXPECT_NE(environment.find("b"), nullptr);
}

TEST(PythonEnvironment, HostileMetadataIsBounded) {
  const FakeSite site;
  site.write_package_file("no_metadata-1.0.dist-info/RECORD", "x");
  site.write_package_file("bad_name-1.0.dist-info/METADATA", "Name: x; rm -rf ~\nVersion: 1.0\n");
  site.write_package_file("huge-1.0.dist-info/METADATA", "Name: huge\nVersion: 1.0\n" + std::string(8 << 20, 'x'));
  site.write_package_file("long-1.0.dist-info/METADATA", "Name: long\nVersion: " + std::string(1 << 20, '1') + "\n");
  std::string requirements = "Name: many\nVersion: 1\n";
  for (int i = 0; i < 20000; ++i) requirements += "Requires-Dist: x\n";
  site.write_package_file("many-1.dist-info/METADATA", requirements);
  std::filesystem::create_directories(site.site() + "/loop-1.dist-info");
  std::filesystem::create_symlink("METADATA", site.site() + "/loop-1.dist-info/METADATA");
  std::filesystem::create_directory_symlink(site.site(), site.site() + "/self-1.dist-info");
  const auto environment = site.subject().environment;
  EXPECT_EQ(environment.without_metadata.size(), 4U);  // no_metadata, bad_name, loop, self
  ASSERT_NE(environment.find("huge"), nullptr);
  ASSERT_NE(environment.find("long"), nullptr);
  EXPECT_FALSE(environment.find("long")->parsed);
  ASSERT_NE(environment.find("many"), nullptr);
  EXPECT_LE(environment.find("many")->requirements.size(), 2000U);
}

TEST(Distribution, ListsFilesInsideOfSitePackagesOnly) {
  const FakeSite site;
  site.add("x", "1.0");
  site.write_package_file("x-1.0.dist-info/RECORD",
                          "x/a.py,sha256=1,2\n/etc/passwd,,\n../../secret,,\n\"x/b,c.py\",,\n\n");
  const auto environment = site.subject().environment;
  EXPECT_EQ(environment.find("x")->files(10), (std::vector<std::string>{"x/a.py", "x/b,c.py"}));
  EXPECT_EQ(environment.find("x")->files(1).size(), 1U);
}

}  // namespace
}  // namespace leadline::guard

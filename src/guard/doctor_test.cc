// SPDX-License-Identifier: Apache-2.0
// Made-up site-packages with each known conflict: the finding is made there, and not beside it.
#include "leadline/guard/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "guard/site_testing.h"
#include "guard/untrusted_file.h"
#include "leadline/error.h"

namespace leadline::guard {
namespace {

using Extra = FakeSite::Extra;

const Finding* find(const Findings& findings, const std::string& id) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

/// Findings with this id, after all have been checked for what every finding must have.
size_t count(const Subject& subject, const std::string& id) {
  std::set<std::string> known;
  for (const DoctorCheck& check : doctor_checks()) known.insert(check.id);
  EXPECT_TRUE(known.count(id) != 0) << id;
  size_t result = 0;
  for (const Finding& finding : run_checks(subject, true)) {
    EXPECT_TRUE(known.count(finding.id) != 0) << finding.id;
    EXPECT_FALSE(finding.what.empty() || finding.why.empty() || finding.fix.empty()) << finding.id;
    result += finding.id == id ? 1 : 0;
  }
  return result;
}

std::string small_library() { return read_start(LEADLINE_FAKE_NVML, size_t{4} << 20).value_or(""); }

TEST(Doctor, FindsNothingWhereAllFits) {
  const FakeSite site;
  site.add("tensorflow", "2.21.0",
           Extra{.requires_dist = {"numpy>=1.26.0", "protobuf<8.0.0,>=6.31.1", "keras>=3.12.0",
                                   "nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == \"and-cuda\""}});
  site.add("numpy", "2.4.6");
  site.add("protobuf", "7.36.2");
  site.add("keras", "3.15.1");
  const Findings findings = run_checks(site.subject(), true);
  EXPECT_TRUE(findings.empty()) << findings.front().what;
}

TEST(Doctor, HoldsPythonToTensorFlow) {
  const FakeSite site;
  site.add("tensorflow", "2.15.1");
  EXPECT_EQ(count(site.subject("3.11.7"), "python-version"), 0U);
  EXPECT_EQ(count(site.subject("3.12.1"), "python-version"), 1U);
  EXPECT_EQ(count(site.subject("3.8"), "python-version"), 1U);
  FakeSite other;
  other.add("x", "1.0", Extra{.headers = "Requires-Python: >=3.12\n"});
  EXPECT_EQ(count(other.subject(), "python-requires"), 1U);
  EXPECT_EQ(count(other.subject("3.12.0"), "python-requires"), 0U);
}

TEST(Doctor, FindsTwoTensorFlows) {
  const FakeSite site;
  site.add("tensorflow", "2.16.2");
  EXPECT_EQ(count(site.subject(), "tensorflow-duplicates"), 0U);
  site.add("tensorflow-cpu", "2.16.2");
  const Findings findings = run_checks(site.subject(), false);
  ASSERT_NE(find(findings, "tensorflow-duplicates"), nullptr);
  EXPECT_EQ(findings.front().severity, Severity::kProblem);
  EXPECT_NE(find(findings, "tensorflow-duplicates")->fix.find("uninstall -y tensorflow tensorflow-cpu"),
            std::string::npos);
}

TEST(Doctor, TakesAPartOfTensorFlowForOne) {
  const FakeSite site;
  site.add("tensorflow", "2.16.2",
           Extra{.requires_dist = {"tensorflow-intel==2.16.2; platform_system == \"Windows\""}});
  site.add("tensorflow-intel", "2.16.2");
  EXPECT_EQ(count(site.subject(), "tensorflow-duplicates"), 0U);
}

TEST(Doctor, HoldsKerasToTensorFlow) {
  const FakeSite old;
  old.add("tensorflow", "2.15.1");
  old.add("keras", "3.3.0");
  EXPECT_EQ(count(old.subject(), "keras-version"), 1U);
  const FakeSite newer;
  newer.add("tensorflow", "2.17.0");
  newer.add("keras", "2.15.0");
  EXPECT_EQ(count(newer.subject(), "keras-version"), 1U);
  const FakeSite fits;
  fits.add("tensorflow", "2.17.0");
  fits.add("keras", "3.5.0");
  EXPECT_EQ(count(fits.subject(), "keras-version"), 0U);
}

TEST(Doctor, HoldsLegacyKerasToTensorFlow) {
  const FakeSite site;
  site.add("tensorflow", "2.17.0");
  Subject subject = site.subject();
  EXPECT_EQ(count(subject, "keras-legacy"), 0U);
  subject.machine.variables["TF_USE_LEGACY_KERAS"] = "1";
  EXPECT_EQ(count(subject, "keras-legacy"), 1U);
  site.add("tf_keras", "2.16.0");
  EXPECT_EQ(count(site.subject(), "tf-keras-version"), 1U);
}

TEST(Doctor, FindsModulesBuiltForNumpy1) {
  const FakeSite site;
  site.add("numpy", "2.0.1");
  site.add("old", "1.0", Extra{.requires_dist = {"numpy"}, .files = {{"old/core.so", "..numpy.core.multiarray.."}}});
  site.add("new", "1.0",
           Extra{.requires_dist = {"numpy"}, .files = {{"new/core.so", "numpy.core._multiarray_umath numpy._core"}}});
  site.add("none", "1.0", Extra{.requires_dist = {"numpy"}, .files = {{"none/core.so", "no arrays"}}});
  const Findings findings = run_checks(site.subject(), false);
  EXPECT_EQ(count(site.subject(), "numpy-abi"), 1U);
  ASSERT_NE(find(findings, "numpy-abi"), nullptr);
  EXPECT_NE(find(findings, "numpy-abi")->what.find("old/core.so of old 1.0"), std::string::npos);
}

TEST(Doctor, FindsTensorFlowBuiltForNumpy1) {
  const FakeSite site;
  site.add("tensorflow", "2.11.1");
  site.add("numpy", "2.0.1");
  EXPECT_EQ(count(site.subject("3.10"), "numpy-abi"), 1U);
  const FakeSite fits;
  fits.add("tensorflow", "2.11.1");
  fits.add("numpy", "1.26.4");
  EXPECT_EQ(count(fits.subject("3.10"), "numpy-abi"), 0U);
}

TEST(Doctor, FindsRequirementsThatAreNotMet) {
  for (const auto& [name, range, version] :
       {std::tuple{"protobuf", "<5.0.0dev,>=3.20.3", "5.26.1"}, std::tuple{"h5py", "<3.15.0,>=3.11.0", "3.16.0"},
        std::tuple{"flatbuffers", ">=25.9.23", "24.3.25"}, std::tuple{"ml-dtypes", "~=0.3.1", "0.5.0"},
        std::tuple{"numpy", "<2.0.0,>=1.23.5", "2.0.0"}}) {
    const FakeSite site;
    site.add("tensorflow", "2.21.0", Extra{.requires_dist = {std::string(name) + range}});
    EXPECT_EQ(count(site.subject(), "requirements-missing"), 1U) << name;
    site.add(name, version);
    const Findings findings = run_checks(site.subject(), false);
    ASSERT_NE(find(findings, "requirements"), nullptr) << name;
    EXPECT_EQ(find(findings, "requirements")->severity, Severity::kProblem);
    EXPECT_NE(find(findings, "requirements")->fix.find(std::string("install '") + name + range), std::string::npos);
  }
}

TEST(Doctor, TellsVersionsThatFailFromThoseThatMayWork) {
  const auto severity = [](const std::string& range) {
    const FakeSite site;
    site.add("app", "1.0", Extra{.requires_dist = {"extras" + range}});
    site.add("extras", "4.5.0");
    const Findings findings = run_checks(site.subject(), false);
    const Finding* found = find(findings, "requirements");
    return found == nullptr ? Severity::kNote : found->severity;
  };
  EXPECT_EQ(severity(">=4.5"), Severity::kNote);
  EXPECT_EQ(severity(">=4.16"), Severity::kProblem);
  EXPECT_EQ(severity("==4.6.0"), Severity::kProblem);
  EXPECT_EQ(severity("==4.4.0"), Severity::kProblem);
  EXPECT_EQ(severity("~=5.0"), Severity::kProblem);
  EXPECT_EQ(severity("<4"), Severity::kWarning) << "a newer one often works";
}

TEST(Doctor, FindsImportsThatFail) {
  const FakeSite site;
  site.add("app", "1.0",
           Extra{.requires_dist = {"extras<4"}, .files = {{"app/__init__.py", "from extras import Old\n"}}});
  site.add("extras", "4.5.0", Extra{.files = {{"extras.py", "class New: pass\n"}}});
  const Findings findings = run_checks(site.subject(), false);
  ASSERT_NE(find(findings, "requirements"), nullptr);
  EXPECT_EQ(find(findings, "requirements")->severity, Severity::kProblem);
  EXPECT_NE(find(findings, "requirements")->why.find("imports Old from extras"), std::string::npos);
  const FakeSite missing;
  missing.add("app", "1.0", Extra{.requires_dist = {"extras"}, .files = {{"app/__init__.py", "import extras\n"}}});
  EXPECT_EQ(find(run_checks(missing.subject(), false), "requirements-missing")->severity, Severity::kProblem);
}

TEST(Doctor, FindsFilesThatWereChanged) {
  const FakeSite site;
  site.write_package_file("x/__init__.py", "abc");
  site.write_package_file("x-1.0.dist-info/METADATA", "Name: x\nVersion: 1.0\n");
  site.write_package_file("x-1.0.dist-info/RECORD",
                          "x/__init__.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\nx/gone.py,sha256=a,1\n"
                          "x/__pycache__/y.pyc,,\n");
  Subject subject = site.subject();
  EXPECT_EQ(count(subject, "files-changed") + count(subject, "files-missing"), 0U);
  subject.deep = true;
  EXPECT_EQ(count(subject, "files-changed"), 0U);
  EXPECT_EQ(count(subject, "files-missing"), 1U);
  site.write_package_file("x/__init__.py", "abd");
  EXPECT_EQ(count(subject, "files-changed"), 1U);
}

TEST(Doctor, FindsLibrariesThatWereCutOff) {
  const std::string whole = small_library();
  for (const size_t size : {whole.size(), whole.size() - 1, whole.size() / 2, size_t{0}}) {
    const FakeSite site;
    site.add("x", "1.0", Extra{.files = {{"x/native.so", whole.substr(0, size)}}});
    EXPECT_EQ(count(site.subject(), "library-damaged"), size == whole.size() ? 0U : 1U) << size;
  }
}

TEST(Doctor, EvaluatesMarkersOfRequirements) {
  const FakeSite site;
  site.add("a", "1.0",
           Extra{.requires_dist = {"numpy<2; python_version < '3.9'", "numpy>=1; python_version >= '3.9'",
                                   "absent; extra == 'gpu'", "absent2; sys_platform == 'win32'"}});
  site.add("numpy", "2.0");
  EXPECT_EQ(count(site.subject(), "requirements"), 0U);
  EXPECT_EQ(count(site.subject(), "requirements-missing"), 0U);
}

TEST(Doctor, UsesTheTableWhereMetadataTellsNoRequirements) {
  const FakeSite site;
  site.add("tensorflow", "2.15.1");
  site.add("protobuf", "5.26.1");
  EXPECT_EQ(count(site.subject(), "requirements"), 1U);
}

TEST(Doctor, FindsJaxBesideAnotherJaxlib) {
  const FakeSite site;
  site.add("jax", "0.10.2", Extra{.requires_dist = {"jaxlib<=0.10.2,>=0.10.0", "ml_dtypes>=0.5.0"}});
  site.add("jaxlib", "0.4.30");
  site.add("ml_dtypes", "0.3.2");
  EXPECT_EQ(count(site.subject(), "requirements"), 2U);
}

TEST(Doctor, FindsSeveralLiteRuntimes) {
  const FakeSite site;
  site.add("ai-edge-litert", "2.3.0");
  EXPECT_EQ(count(site.subject(), "lite-runtimes"), 0U);
  site.add("tflite_runtime", "2.14.0");
  EXPECT_EQ(count(site.subject(), "lite-runtimes"), 1U);
  site.add("tensorflow", "2.21.0");
  EXPECT_EQ(count(site.subject(), "tflite-runtime-beside-tensorflow"), 1U);
  EXPECT_EQ(count(site.subject(), "litert-torch-beside-tensorflow"), 0U);
  site.add("litert-torch", "0.7.0");
  EXPECT_EQ(count(site.subject(), "litert-torch-beside-tensorflow"), 1U);
}

TEST(Doctor, HoldsCudaWheelsToTensorFlow) {
  const FakeSite site;
  site.add("tensorflow", "2.21.0");
  site.add("nvidia-cudnn-cu12", "9.3.0.75");
  site.add("nvidia-cuda-runtime-cu12", "12.5.82");
  EXPECT_EQ(count(site.subject(), "cudnn-version") + count(site.subject(), "cuda-version"), 0U);
  site.add("nvidia-cudnn-cu11", "8.7.0.84");
  EXPECT_EQ(count(site.subject(), "cuda-duplicates"), 1U);
  const FakeSite old;
  old.add("tensorflow", "2.21.0");
  old.add("nvidia-cudnn-cu12", "8.9.7.29");
  old.add("nvidia-cuda-runtime-cu11", "11.8.89");
  EXPECT_EQ(count(old.subject(), "cudnn-version"), 1U);
  EXPECT_EQ(count(old.subject(), "cuda-version"), 1U);
  const FakeSite minor;
  minor.add("tensorflow", "2.21.0");
  minor.add("nvidia-cudnn-cu12", "9.1.0.70");
  EXPECT_EQ(count(minor.subject(), "cudnn-version"), 1U);
}

TEST(Doctor, HoldsCudaOfTheSystemToTensorFlow) {
  const FakeSite site;
  site.add("tensorflow", "2.21.0");
  Subject subject = site.subject();
  EXPECT_EQ(count(subject, "cuda-missing"), 0U);  // no GPU, no complaint
  subject.machine.gpu = true;
  subject.machine.nvidia_driver = Version::parse("535.104.05");
  EXPECT_EQ(count(subject, "cuda-missing"), 1U);
  EXPECT_EQ(count(subject, "nvidia-driver"), 0U);
  site.write("cuda/libcudnn.so.8.9.7", "x");
  subject.machine.library_folders = {site.root() + "/cuda"};
  EXPECT_EQ(count(subject, "cudnn-version"), 1U);
  subject.machine.nvidia_driver = Version::parse("470.82.01");
  EXPECT_EQ(count(subject, "nvidia-driver"), 1U);
}

TEST(Doctor, HoldsProcessorToWheels) {
  const FakeSite site;
  site.add("tensorflow", "2.21.0");
  site.add("jaxlib", "0.4.30");
  Subject subject = site.subject();
  EXPECT_EQ(count(subject, "cpu-features"), 0U);
  subject.machine.cpu_features.erase("avx");
  EXPECT_EQ(count(subject, "cpu-features"), 2U);
  subject.machine.architecture = "aarch64";
  EXPECT_EQ(count(subject, "cpu-features"), 0U);
  subject.machine.cpu_features.clear();  // unknown
  EXPECT_EQ(count(subject, "cpu-features"), 0U);
}

#ifdef __x86_64__
TEST(Doctor, HoldsSystemLibrariesToNativeCode) {
  const FakeSite site;
  site.add("x", "1.0", Extra{.files = {{"x/native.so", small_library()}}});
  Subject subject = site.subject();
  subject.machine.glibc = Version::parse("99.0");
  EXPECT_EQ(count(subject, "glibc"), 0U);
  subject.machine.glibc = Version::parse("2.2");
  EXPECT_EQ(count(subject, "glibc"), 1U);
  EXPECT_EQ(count(subject, "wrong-machine"), 0U);

  std::string foreign = small_library();
  foreign[18] = static_cast<char>(183);  // e_machine: aarch64
  const FakeSite other;
  other.add("x", "1.0", Extra{.files = {{"x/native.so", foreign}}});
  EXPECT_EQ(count(other.subject(), "wrong-machine"), 1U);
}
#endif

#ifdef __x86_64__
TEST(Doctor, HoldsLibstdcxxToNativeCode) {
  const std::string path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
  if (!is_regular_file(path)) GTEST_SKIP() << path << " is not there";
  std::string library = read_start(path, size_t{16} << 20).value_or("");
  const FakeSite site;
  site.add("x", "1.0", Extra{.files = {{"x/native.so", small_library()}}});
  site.write("new/libstdc++.so.6", library);
  for (size_t at = library.find("GLIBCXX_3"); at != std::string::npos; at = library.find("GLIBCXX_3", at))
    library[at + 8] = '2';
  site.write("old/libstdc++.so.6", library);
  Subject subject = site.subject();
  subject.machine.glibc = std::nullopt;
  subject.machine.library_folders = {site.root() + "/absent", site.root() + "/new"};
  EXPECT_EQ(count(subject, "libstdcxx"), 0U);
  subject.machine.library_folders = {site.root() + "/old", site.root() + "/new"};
  EXPECT_EQ(count(subject, "libstdcxx"), 1U);
}
#endif

TEST(Doctor, SurvivesBrokenLibraries) {
  const FakeSite site;
  site.add("numpy", "2.0",
           Extra{.files = {{"numpy/a.so",
                            "\x7f"
                            "ELF\x02\x01\x01 and nothing"},
                           {"numpy/b.so", ""}}});
  EXPECT_EQ(count(site.subject(), "glibc"), 0U);
}

TEST(Doctor, FindsOpenMpRuntimesThatMeet) {
  const FakeSite site;
  site.add("scikit-learn", "1.5", Extra{.files = {{"scikit_learn.libs/libgomp-a34b3233.so.1.0.0", "x"}}});
  site.add("torch", "2.3", Extra{.files = {{"torch/lib/libgomp-a34b3233.so.1", "x"}}});
  EXPECT_EQ(count(site.subject(), "openmp-duplicates"), 0U);
  site.add("intel-openmp", "2024.1", Extra{.files = {{"intel/libiomp5.so", "x"}}});
  EXPECT_EQ(count(site.subject(), "openmp-duplicates"), 1U);
}

TEST(Doctor, FindsCondaReplacedByPip) {
  const FakeSite site;
  site.write("conda-meta/numpy-1.26.4-py311h64a7726_0.json", "{}");
  site.write("conda-meta/h5py-3.11.0-py311_0.json", "{}");
  site.add("h5py", "3.11.0", Extra{.installer = "conda"});
  site.add("numpy", "1.26.4", Extra{.installer = "conda"});
  EXPECT_EQ(count(site.subject(), "conda-pip") + count(site.subject(), "conda-pip-mixed"), 0U);
  const FakeSite replaced;
  replaced.write("conda-meta/numpy-1.26.4-py311h64a7726_0.json", "{}");
  replaced.write("conda-meta/h5py-3.11.0-py311_0.json", "{}");
  replaced.add("h5py", "3.11.0", Extra{.installer = "conda"});
  replaced.add("numpy", "2.0.0");
  EXPECT_EQ(count(replaced.subject(), "conda-pip"), 1U);
  EXPECT_EQ(count(replaced.subject(), "conda-pip-mixed"), 1U);
}

TEST(Doctor, FindsDamagedInstallations) {
  const FakeSite site;
  site.add("numpy", "2.0.0",
           Extra{.files = {{"numpy/__init__.py", ""}}, .missing = {"numpy/core.py", "numpy/__pycache__/x.pyc"}});
  site.add("numpy", "1.26.4");
  site.write_package_file("~umpy/__init__.py", "");
  site.write_package_file("keras-3.0.dist-info/RECORD", "");
  const Subject subject = site.subject();
  EXPECT_EQ(count(subject, "leftovers"), 1U);
  EXPECT_EQ(count(subject, "broken-metadata"), 1U);
  EXPECT_EQ(count(subject, "duplicate-metadata"), 1U);
  EXPECT_EQ(count(subject, "files-missing"), 1U);
}

TEST(Doctor, FindsPackagesThatHideEachOther) {
  const FakeSite first;
  const FakeSite second;
  first.add("numpy", "1.26.4");
  second.add("numpy", "2.0.0");
  Subject subject = first.subject();
  subject.environment = read_environment({"", {first.site(), second.site()}, "3.11", {}});
  EXPECT_EQ(count(subject, "shadowed"), 1U);
  EXPECT_EQ(subject.environment.find("numpy")->version, "1.26.4");
}

TEST(Doctor, FindsFilesThatHideModules) {
  const FakeSite site;
  Subject subject = site.subject();
  subject.machine.working_folder = site.root();
  EXPECT_EQ(count(subject, "local-shadow"), 0U);
  site.write("tensorflow.py", "");
  EXPECT_EQ(count(subject, "local-shadow"), 1U);
}

TEST(Doctor, QuotesPathsInCommands) {
  const FakeSite site;
  site.write_package_file("~a'; touch x; '/f", "");
  const Findings findings = run_checks(site.subject(), false);
  ASSERT_NE(find(findings, "leftovers"), nullptr);
  EXPECT_NE(find(findings, "leftovers")->fix.find("~a'\\''; touch x; '\\'''"), std::string::npos)
      << find(findings, "leftovers")->fix;
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("/usr/bin/python3.11"), "/usr/bin/python3.11");
}

TEST(Doctor, FindsLimitsOfTheMachine) {
  const FakeSite site;
  const Subject fine = site.subject();
  EXPECT_TRUE(run_checks(fine, true).empty());
  Subject subject = fine;
  Machine& machine = subject.machine;
  machine.memory.cgroup_available = int64_t{300} << 20;
  machine.swap_total = 0;
  machine.overcommit = 2;
  machine.oom_kills = 3;
  machine.limit_address_space = int64_t{2} << 30;
  machine.limit_processes = 100;
  machine.limit_files = 256;
  machine.limit_stack = 65536;
  machine.shared_memory = int64_t{64} << 20;
  machine.temporary_free = int64_t{10} << 20;
  for (const char* id : {"memory-limit", "swap", "overcommit", "oom-kills", "limit-address-space", "limit-processes",
                         "limit-files", "limit-stack", "shared-memory", "disk-space"}) {
    EXPECT_EQ(count(subject, id), 1U) << id;
    EXPECT_EQ(find(run_checks(subject, false), id), nullptr) << id;
  }
}

TEST(Doctor, ReportsWhatIsThere) {
  const FakeSite site;
  site.add("numpy", "2.0.0");
  site.add("unrelated", "1.0");
  site.write_package_file("~umpy/__init__.py", "");
  const DoctorReport report =
      doctor({.python = {}, .site_packages = {site.site()}, .python_version = {}, .machine = false});
  EXPECT_EQ(report.python_version, "3.11");
  EXPECT_EQ(report.package_count, 2);
  ASSERT_EQ(report.packages.size(), 1U);
  EXPECT_EQ(report.packages[0].name, "numpy");
  EXPECT_EQ(report.count(Severity::kWarning), 1);
  EXPECT_NE(report.to_text().find("warning [leftovers]"), std::string::npos);
  EXPECT_EQ(report.table_date.size(), 10U);
}

TEST(Doctor, RefusesPlacesThatDoNotExist) {
  EXPECT_THROW(doctor({.python = "/nowhere/python", .site_packages = {}, .python_version = {}}), Error);
  EXPECT_THROW(doctor({.python = {}, .site_packages = {"/nowhere"}, .python_version = {}}), Error);
}

TEST(Doctor, LooksAtThisMachineWithoutComplaint) {
  const Machine machine = read_machine({});
  EXPECT_FALSE(machine.architecture.empty());
  EXPECT_TRUE(machine.glibc);
  EXPECT_TRUE(machine.temporary_free);
}

TEST(Compatibility, RowsAreInOrderAndNameTheirSources) {
  const Compatibility& table = compatibility();
  ASSERT_FALSE(table.tensorflow.empty());
  for (size_t i = 1; i < table.tensorflow.size(); ++i) {
    EXPECT_LT(*Version::parse(table.tensorflow[i].version), *Version::parse(table.tensorflow[i - 1].version));
  }
  for (const TensorFlowRow& row : table.tensorflow) {
    EXPECT_TRUE(Version::parse(row.cuda) && Version::parse(row.cudnn) && Version::parse(row.newest_python));
    for (const auto& [name, range] : row.requirements) EXPECT_TRUE(Specifiers::parse(range)) << name << range;
  }
  for (const CpuRow& row : table.cpu) EXPECT_FALSE(table.source(row.source).empty()) << row.source;
  for (const auto& [name, url] : table.sources) EXPECT_TRUE(url.starts_with("https://")) << name;
  EXPECT_EQ(table.row_of(*Version::parse("2.16.1"))->version, "2.16");
  EXPECT_EQ(table.row_of(*Version::parse("9.9")), nullptr);
}

}  // namespace
}  // namespace leadline::guard

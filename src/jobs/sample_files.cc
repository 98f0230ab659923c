// SPDX-License-Identifier: Apache-2.0
#include "jobs/sample_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "core/boundary.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "jobs/picture.h"

namespace leadline::jobs {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxLine = 64 << 10;

bool has_array_name(const std::string& path) { return path.ends_with(".npy") || path.ends_with(".npz"); }

bool is_folder(const std::string& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

std::string join(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Names in a folder in alphabetical order: files that `wanted` takes, or folders.
template <typename Wanted>
std::vector<std::string> entries(const std::string& folder, const Wanted& wanted) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem)) {
    check_cancelled();
    if (wanted(*entry)) names.push_back(entry->path().filename().string());
  }
  require(!problem, ErrorCode::kIo, "{}: {}", folder, problem.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// Calls use(line) for the lines of a text file, without their ends.
template <typename Use>
void for_lines(const std::string& path, const Use& use) {
  std::ifstream file(path);
  require(file.is_open(), ErrorCode::kIo, "{}: cannot be opened", path);
  std::string line;
  for (char c = 0; file.get(c);) {
    if (c != '\n') {
      line += c;
      require(line.size() <= kMaxLine, ErrorCode::kIo, "{}: a line has more than {} characters", path, kMaxLine);
      continue;
    }
    check_cancelled();
    if (line.ends_with('\r')) line.pop_back();
    use(std::exchange(line, {}));
  }
  require(file.eof(), ErrorCode::kIo, "{}: cannot be read", path);
  if (!line.empty()) use(line);
}

/// Numbers of classes by name.
class ClassNames {
 public:
  explicit ClassNames(const std::string& path) : path_(path) {
    if (path.empty()) return;
    for_lines(path, [&](const std::string& line) { numbers_.try_emplace(line, std::ssize(numbers_)); });
  }
  /// Without a file: the numbers that the names are, or their places.
  void take_names(const std::vector<std::string>& names) {
    if (!path_.empty()) return;
    const bool all_numbers =
        std::all_of(names.begin(), names.end(), [](const std::string& name) { return whole_number(name).has_value(); });
    for (const std::string& name : names) {
      numbers_.emplace(name, all_numbers ? *whole_number(name) : std::ssize(numbers_));
    }
  }
  int64_t number_of(const std::string& name, const std::string& where) const {
    if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
    const std::optional<int64_t> number = whole_number(name);
    require(number.has_value(), kBadArgument, "{}: the label '{}' is neither a number nor {}", where, name,
            path_.empty() ? "known: name a file of class names" : fmt::format("a line of {}", path_));
    return *number;
  }

 private:
  std::string path_;
  std::map<std::string, int64_t> numbers_;
};

std::string unquoted(std::string text) {
  while (text.starts_with(' ')) text.erase(0, 1);
  while (text.ends_with(' ')) text.pop_back();
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Lines of file,label; a first line whose file does not exist is a heading.
SampleFiles list_csv(const std::string& folder, const SampleFileOptions& options) {
  require(is_folder(folder), kBadArgument, "{}: labels of a .csv file need a folder of samples", folder);
  SampleFiles files;
  const ClassNames classes(options.classes);
  int64_t line_number = 0;
  for_lines(options.labels, [&](const std::string& line) {
    ++line_number;
    if (line.empty()) return;
    const size_t comma = line.rfind(',');
    const std::string where = fmt::format("{}, line {}", options.labels, line_number);
    require(comma != std::string::npos, kBadArgument, "{}: expected file,label, got '{}'", where, line);
    std::string path = join(folder, unquoted(line.substr(0, comma)));
    std::error_code unreadable;
    if (line_number == 1 && !fs::exists(path, unreadable)) return;
    files.labels.push_back(classes.number_of(unquoted(line.substr(comma + 1)), where));
    files.paths.push_back(std::move(path));
  });
  require(!files.paths.empty(), kBadArgument, "{} names no files", options.labels);
  files.pictures = has_picture_name(files.paths[0]);
  return files;
}

SampleFiles list_folder(const std::string& folder, const SampleFileOptions& options) {
  SampleFiles files;
  const auto add = [&](const std::string& in, const std::vector<std::string>& names) {
    for (const std::string& name : names) files.paths.push_back(join(in, name));
  };
  add(folder, entries(folder, [](const auto& entry) { return has_array_name(entry.path().string()); }));
  if (!files.paths.empty()) return files;
  files.pictures = true;
  const auto is_picture = [](const auto& entry) { return has_picture_name(entry.path().string()); };
  add(folder, entries(folder, is_picture));
  if (!files.paths.empty()) return files;
  const std::vector<std::string> folders = entries(folder, [](const auto& entry) { return entry.is_directory(); });
  ClassNames classes(options.classes);
  classes.take_names(folders);
  for (const std::string& name : folders) {
    const std::string inner = join(folder, name);
    const std::vector<std::string> pictures = entries(inner, is_picture);
    if (pictures.empty()) continue;
    add(inner, pictures);
    files.labels.resize(files.paths.size(), classes.number_of(name, inner));
  }
  require(!files.paths.empty(), kBadArgument, "the folder {} has no .npy, .npz, .png or .jpg files", folder);
  return files;
}

}  // namespace

int64_t SampleFiles::bytes() const {
  int64_t bytes = static_cast<int64_t>(labels.size() * sizeof(int64_t));
  for (const std::string& path : paths) bytes += static_cast<int64_t>(sizeof(path) + path.size());
  return bytes;
}

SampleFiles list_sample_files(const std::string& path, const SampleFileOptions& options) {
  if (options.labels.ends_with(".csv")) return list_csv(path, options);
  if (is_folder(path)) return list_folder(path, options);
  return {{path}, {}, has_picture_name(path)};
}

}  // namespace leadline::jobs

namespace leadline {

std::unique_ptr<SampleSource> open_samples(const std::string& path, const Model& model, SampleFileOptions options) try {
  if (options.budget == nullptr) options.budget = model.budget();
  jobs::SampleFiles files = jobs::list_sample_files(path, options);
  const bool pictures = files.pictures;
  return pictures ? jobs::picture_samples(std::move(files), model, std::move(options))
                  : jobs::array_file_samples(std::move(files), model, std::move(options));
} catch (...) {
  rethrow_as_error();
}

bool reads_pictures() noexcept { return has_picture_decoders(); }

}  // namespace leadline

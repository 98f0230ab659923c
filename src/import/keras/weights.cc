// SPDX-License-Identifier: Apache-2.0
#include "import/keras/weights.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "import/hdf5/file.h"
#include "io/zip.h"
#include "ir/sources.h"

namespace leadline::keras {
namespace {

using hdf5::Hdf5File;

constexpr int64_t kMaxText = 256 << 20;  // bytes of a configuration
constexpr int kMaxLayerDepth = 64;       // of layers in layers
constexpr size_t kMaxGroups = 200000;    // a walk passes; groups that hold each other would make it endless
constexpr std::string_view kVars = "vars";
constexpr std::string_view kOptimizer = "optimizer";                          // of the outermost model: no layer
constexpr std::string_view kOldContainer = "_layer_checkpoint_dependencies";  // "layers" in files of TensorFlow 2.13
constexpr std::string_view kTopLevel = "top_level_model_weights";

std::string join(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return std::string(a.empty() ? b : a);
  return fmt::format("{}/{}", a, b);
}

/// Runs `work`, naming the file in its errors.
template <typename Work>
auto about(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", file, error.what()));
  }
}

/// Numbers before words, and by value: "2" before "10".
bool variable_order(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    int64_t value = -1;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() ? value : -1;
  };
  const int64_t x = number(a);
  const int64_t y = number(b);
  if (x >= 0 && y >= 0 && x != y) return x < y;
  if ((x >= 0) != (y >= 0)) return x >= 0;
  return a < b;
}

/// A list of strings as Keras writes it: one attribute, or "name0", "name1", ... where that would be too long.
std::vector<std::string> string_list(const Hdf5File& file, std::string_view path, const std::string& name) {
  if (auto whole = file.strings_attribute(path, name)) return *std::move(whole);
  std::vector<std::string> result;
  for (int i = 0;; ++i) {
    auto part = file.strings_attribute(path, name + std::to_string(i));
    if (!part) return result;
    result.insert(result.end(), std::make_move_iterator(part->begin()), std::make_move_iterator(part->end()));
  }
}

/// The version in metadata.json, which is one flat object of strings.
std::string version_in(const std::string& json) {
  const size_t key = json.find("\"keras_version\"");
  if (key == std::string::npos) return {};
  const size_t begin = json.find('"', json.find(':', key));
  if (begin == std::string::npos) return {};
  const size_t end = json.find('"', begin + 1);
  return end == std::string::npos ? std::string() : json.substr(begin + 1, end - begin - 1);
}

}  // namespace

struct KerasFile::State {
  std::string name;
  std::shared_ptr<Budget> budget;
  std::shared_ptr<const RandomAccess> archive;  // .keras only
  std::vector<ZipEntry> entries;
  std::shared_ptr<const ModelBytes> bytes;  // of the HDF5 file
  std::unique_ptr<Hdf5File> h5;
  Layout layout = Layout::kByPath;
  std::string config;
  std::string version;
  std::string root;  // group of the layers, by name

  /// Called wherever the file was looked at. Headers lie between the weights, and the system maps large pieces around
  /// each of them: without this, reading the headers alone would make most of the file resident.
  void drop_pages() const { bytes->drop_pages(bytes->span().data(), static_cast<int64_t>(bytes->span().size())); }

  std::string group_of(std::string_view layer) const;
  Variable variable(const std::shared_ptr<const State>& self, const std::string& path, std::string shown) const;
};

namespace {

/// A dataset of a file that stays open.
class DatasetSource final : public ir::ViewedSource {
 public:
  DatasetSource(std::shared_ptr<const void> owner, const std::string& file, const Hdf5File& h5,
                const ModelBytes& file_bytes, std::string path, int64_t bytes)
      : owner_(std::move(owner)),
        file_(file),
        h5_(h5),
        file_bytes_(file_bytes),
        path_(std::move(path)),
        bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }
  void read(std::span<std::byte> out) const override {
    about(file_, [&] {
      if (const auto view = h5_.view(path_)) {
        if (view->size() != out.size()) {
          fail(ErrorCode::kInternal, "{} bytes of memory for {} of data", out.size(), view->size());
        }
        for (size_t begin = 0; begin < view->size(); begin += ir::kViewPiece) {
          const auto piece = view->subspan(begin, std::min<size_t>(ir::kViewPiece, view->size() - begin));
          std::copy(piece.begin(), piece.end(), out.begin() + static_cast<std::ptrdiff_t>(begin));
          drop(piece);
        }
      } else {
        h5_.read(path_, out);
      }
      drop(file_bytes_.span());
    });
  }
  std::span<const std::byte> view() const override {
    return about(file_, [&] { return h5_.view(path_).value_or(std::span<const std::byte>()); });
  }
  /// A weight is read once: its pages need not stay beside the copy.
  void drop(std::span<const std::byte> part) const override {
    file_bytes_.drop_pages(part.data(), static_cast<int64_t>(part.size()));
  }

 private:
  std::shared_ptr<const void> owner_;
  const std::string& file_;
  const Hdf5File& h5_;
  const ModelBytes& file_bytes_;
  std::string path_;
  int64_t bytes_;
};

}  // namespace

/// The group of a layer by path, under its present or its older name; empty text when there is none.
std::string KerasFile::State::group_of(std::string_view layer) const {
  drop_pages();
  std::string path(layer);
  if (h5->is_group(path)) return path;
  std::string older;
  for (std::string_view rest = layer; !rest.empty();) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    older = join(older, part == "layers" ? kOldContainer : part);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return h5->is_group(older) ? older : std::string();
}

Variable KerasFile::State::variable(const std::shared_ptr<const State>& self, const std::string& path,
                                    std::string shown) const {
  drop_pages();
  const hdf5::DatasetInfo info = h5->dataset(path);
  std::optional<DType> dtype = info.dtype;
  // h5py knows no bfloat16: Keras writes the bytes and notes what they are.
  if (!dtype && info.item_bytes == 2 && h5->string_attribute(path, "dtype") == "bfloat16") dtype = DType::kBFloat16;
  if (!dtype) {
    fail(ErrorCode::kUnsupported, "variable '{}' has elements of type {}", printable(shown), info.type_text);
  }
  return {std::move(shown), *dtype, info.shape,
          std::make_shared<DatasetSource>(self, name, *h5, *bytes, path, info.bytes)};
}

KerasFile KerasFile::open(const std::string& path, std::shared_ptr<Budget> budget) {
  return from_bytes(path, ModelBytes::map_file(path), std::move(budget));
}

KerasFile KerasFile::from_bytes(const std::string& name, std::shared_ptr<const ModelBytes> bytes,
                                std::shared_ptr<Budget> budget) {
  auto state = std::make_shared<State>();
  state->name = printable(name);
  state->budget = std::move(budget);
  auto whole = std::make_shared<InputMemory>(state->name, bytes);
  if (is_zip(*whole)) {
    state->archive = whole;
    state->entries = zip_entries(*whole);
    const auto entry = [&](std::string_view wanted) { return find_entry(*whole, state->entries, wanted); };
    const ZipEntry* config = entry("config.json");
    const ZipEntry* weights = entry("model.weights.h5");
    const char* missing = config == nullptr ? "config.json" : weights == nullptr ? "model.weights.h5" : nullptr;
    if (missing != nullptr) {
      fail(ErrorCode::kInvalidModel, "{}: not a .keras file: the archive has no entry '{}'", state->name, missing);
    }
    state->config = entry_text(whole, *config, kMaxText);
    if (const ZipEntry* metadata = entry("metadata.json"); metadata != nullptr) {
      state->version = version_in(entry_text(whole, *metadata, kMaxText));
    }
    state->bytes = entry_bytes(whole, *weights, state->budget);
  } else {
    state->bytes = std::move(bytes);
  }
  about(state->name, [&] {
    state->h5 = std::make_unique<Hdf5File>(state->bytes->span(), state->budget);
    if (state->archive != nullptr) return;
    const Hdf5File& h5 = *state->h5;
    state->config = h5.string_attribute("", "model_config").value_or("");
    state->version = h5.string_attribute("", "keras_version").value_or("");
    const bool inside = h5.is_group("model_weights");
    state->root = inside ? "model_weights" : "";
    const bool listed =
        h5.strings_attribute(state->root, "layer_names") || h5.strings_attribute(state->root, "layer_names0");
    state->layout = inside || listed ? Layout::kByName : Layout::kByPath;
  });
  return KerasFile(std::move(state));
}

Layout KerasFile::layout() const { return state_->layout; }
const std::string& KerasFile::config() const { return state_->config; }
const std::string& KerasFile::keras_version() const { return state_->version; }

std::optional<std::string> KerasFile::asset(std::string_view name) const {
  if (state_->archive == nullptr) return std::nullopt;
  const ZipEntry* entry = find_entry(*state_->archive, state_->entries, name);
  if (entry == nullptr) return std::nullopt;
  return entry_text(state_->archive, *entry, kMaxText);
}

std::vector<std::string> KerasFile::layers() const {
  return about(state_->name, [&] {
    const Hdf5File& h5 = *state_->h5;
    if (layout() == Layout::kByName) return string_list(h5, state_->root, "layer_names");
    std::vector<std::string> result;
    size_t groups = 0;
    const auto walk = [&](const auto& self, const std::string& path, int depth) -> void {
      if (depth > kMaxLayerDepth || ++groups > kMaxGroups) {
        fail(ErrorCode::kInvalidModel, "groups lie more than {} deep or are more than {}", kMaxLayerDepth, kMaxGroups);
      }
      state_->drop_pages();
      const std::vector<std::string> names = h5.children(path);
      if (std::find(names.begin(), names.end(), kVars) != names.end()) result.push_back(path);
      for (const std::string& child : names) {
        const std::string inner = join(path, child);
        if (child != kVars && inner != kOptimizer && h5.is_group(inner)) self(self, inner, depth + 1);
      }
    };
    walk(walk, "", 0);
    return result;
  });
}

bool KerasFile::has_layer(std::string_view layer) const {
  return about(state_->name, [&] {
    if (layout() == Layout::kByName) return state_->h5->is_group(join(state_->root, layer.empty() ? kTopLevel : layer));
    return layer.empty() || !state_->group_of(layer).empty();
  });
}

std::vector<std::string> KerasFile::parts(std::string_view layer) const {
  if (layout() == Layout::kByName) return {};
  return about(state_->name, [&]() -> std::vector<std::string> {
    const std::string group = state_->group_of(layer);
    if (group.empty() && !layer.empty()) return {};
    std::vector<std::string> names = state_->h5->children(group);
    std::erase(names, kVars);
    return names;
  });
}

std::optional<std::string> KerasFile::saved_name(std::string_view layer) const {
  if (layout() == Layout::kByName) return std::nullopt;
  return about(state_->name, [&]() -> std::optional<std::string> {
    const std::string group = state_->group_of(layer);
    if (group.empty() && !layer.empty()) return std::nullopt;
    const std::string vars = join(group, kVars);
    if (!state_->h5->is_group(vars)) return std::nullopt;
    return state_->h5->string_attribute(vars, "name");
  });
}

std::vector<Variable> KerasFile::variables(std::string_view layer) const {
  return about(state_->name, [&]() -> std::vector<Variable> {
    const Hdf5File& h5 = *state_->h5;
    std::vector<Variable> result;
    if (layout() == Layout::kByName) {
      const std::string group = join(state_->root, layer.empty() ? kTopLevel : layer);
      if (!h5.is_group(group)) return {};
      for (std::string& name : string_list(h5, group, "weight_names")) {
        const std::string path = join(group, name);
        result.push_back(state_->variable(state_, path, std::move(name)));
      }
      return result;
    }
    const std::string group = state_->group_of(layer);
    const std::string vars = join(group, kVars);
    if ((group.empty() && !layer.empty()) || !h5.is_group(vars)) return {};
    std::vector<std::string> names = h5.children(vars);
    std::sort(names.begin(), names.end(), variable_order);
    for (const std::string& name : names) {
      const std::string path = join(vars, name);
      result.push_back(state_->variable(state_, path, path));
    }
    return result;
  });
}

}  // namespace leadline::keras

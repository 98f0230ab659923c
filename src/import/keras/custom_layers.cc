// SPDX-License-Identifier: Apache-2.0
#include "import/keras/custom_layers.h"

#include <map>
#include <mutex>

namespace leadline::keras {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomLayer>, std::less<>> rows;
};

/// Never destroyed: conversions may end after the statics.
Table& table() {
  static auto& instance = *new Table;
  return instance;
}

}  // namespace

void register_custom_layer(const std::string& name, CustomLayer layer) {
  require(!name.empty() && layer != nullptr, ErrorCode::kInvalidArgument,
          "a Keras layer is registered with a name and a function");
  auto row = std::make_shared<const CustomLayer>(std::move(layer));
  const std::lock_guard lock(table().mutex);
  table().rows[name].swap(row);  // what was there is destroyed after the lock is gone
}

bool unregister_custom_layer(std::string_view name) {
  std::shared_ptr<const CustomLayer> old;  // destroyed after the lock is gone
  const std::lock_guard lock(table().mutex);
  const auto it = table().rows.find(name);
  if (it == table().rows.end()) return false;
  old = std::move(it->second);
  table().rows.erase(it);
  return true;
}

std::vector<std::string> custom_layers() {
  const std::lock_guard lock(table().mutex);
  std::vector<std::string> names;
  for (const auto& [name, row] : table().rows) names.push_back(name);
  return names;
}

std::shared_ptr<const CustomLayer> find_custom_layer(const Layer& layer) {
  std::string_view bare = layer.class_name;
  if (const size_t end = bare.rfind('>'); end != std::string_view::npos) bare.remove_prefix(end + 1);
  const std::lock_guard lock(table().mutex);
  for (const std::string_view name :
       {std::string_view(layer.registered_name), std::string_view(layer.class_name), bare}) {
    const auto it = table().rows.find(name);
    if (it != table().rows.end()) return it->second;
  }
  return nullptr;
}

}  // namespace leadline::keras

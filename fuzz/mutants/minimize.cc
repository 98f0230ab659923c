// SPDX-License-Identifier: Apache-2.0
#include "minimize.h"

#include <algorithm>
#include <map>
#include <set>

namespace leadline::fuzz {
namespace {

class Minimizer {
 public:
  Minimizer(TablePtr root, const std::function<bool(const TablePtr&)>& fails, int tries)
      : best_(std::move(root)), fails_(fails), tries_(tries) {}

  TablePtr run() {
    keep_one_node();
    drop_unused();
    for (size_t before = 0; before != size();) {
      before = size();
      drop_fields();
      drop_last_items();
      if (tries_ <= 0) break;
    }
    drop_unused();
    return best_;
  }

 private:
  size_t size() const { return write_file(best_).size(); }

  bool accept(const TablePtr& candidate) {
    if (tries_ <= 0) return false;
    --tries_;
    if (!fails_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  /// Nodes whose own inputs are given from outside, alone.
  void keep_one_node() {
    for (size_t s = 0; s < best_->count("subgraphs"); ++s) {
      const size_t nodes = best_->tables("subgraphs")[s]->count("operators");
      for (size_t n = 0; nodes > 1 && n < nodes; ++n) {
        const TablePtr candidate = clone(best_);
        const TablePtr subgraph = candidate->tables("subgraphs")[s];
        const TablePtr node = subgraph->tables("operators")[n];
        std::set<int64_t> written;
        for (const TablePtr& other : subgraph->tables("operators")) {
          for (const int64_t v : other->integers("outputs")) written.insert(v);
        }
        auto inputs = subgraph->integers("inputs");
        for (const int64_t v : node->integers("inputs")) {
          if (written.contains(v) && std::find(inputs.begin(), inputs.end(), v) == inputs.end()) inputs.push_back(v);
        }
        subgraph->set_integers("inputs", inputs);
        subgraph->set_integers("outputs", node->integers("outputs"));
        subgraph->tables("operators") = {node};
        if (accept(candidate)) break;
      }
    }
  }

  /// Tensors, buffers and operator codes that nothing refers to. Numbers out of range stay out of range.
  void drop_unused() {
    const TablePtr candidate = clone(best_);
    for (const TablePtr& subgraph : candidate->tables("subgraphs")) drop_unused_tensors(*candidate, *subgraph);
    renumber(*candidate, "buffers", [&](const auto& visit) {
      for (const TablePtr& subgraph : candidate->tables("subgraphs")) {
        for (const TablePtr& tensor : subgraph->tables("tensors")) visit(*tensor, "buffer");
      }
      for (const TablePtr& entry : candidate->tables("metadata")) visit(*entry, "buffer");
    });
    renumber(*candidate, "operator_codes", [&](const auto& visit) {
      for (const TablePtr& subgraph : candidate->tables("subgraphs")) {
        for (const TablePtr& node : subgraph->tables("operators")) visit(*node, "opcode_index");
      }
    });
    accept(candidate);
  }

  template <typename VisitAll>
  static void renumber(Table& root, const char* list, const VisitAll& visit_all) {
    auto& items = root.tables(list);
    std::map<int64_t, int64_t> place;
    std::vector<TablePtr> kept;
    const bool buffers = std::string_view(list) == "buffers";
    if (buffers && !items.empty()) {  // buffer 0 is the empty one
      kept.push_back(items[0]);
      place[0] = 0;
    }
    visit_all([&](Table& table, const char* field) {
      const int64_t now = table.integer(field);
      if (now < 0 || now >= static_cast<int64_t>(items.size())) return;
      if (!place.contains(now)) {
        place[now] = static_cast<int64_t>(kept.size());
        kept.push_back(items[static_cast<size_t>(now)]);
      }
      table.set(field, place[now]);
    });
    items = kept;
  }

  static void drop_unused_tensors(Table& root, Table& subgraph) {
    auto& tensors = subgraph.tables("tensors");
    const auto count = static_cast<int64_t>(tensors.size());
    std::map<int64_t, int64_t> place;
    std::vector<TablePtr> kept;
    const auto move = [&](int64_t v) {
      if (v < 0 || v >= count) return v;
      if (!place.contains(v)) {
        place[v] = static_cast<int64_t>(kept.size());
        kept.push_back(tensors[static_cast<size_t>(v)]);
      }
      return place[v];
    };
    const auto move_list = [&](Table& table, const char* field) {
      if (!table.has(field)) return;
      auto list = table.integers(field);
      for (int64_t& v : list) v = move(v);
      table.set_integers(field, list);
    };
    for (const TablePtr& node : subgraph.tables("operators")) {
      for (const char* field : {"inputs", "outputs", "intermediates"}) move_list(*node, field);
    }
    move_list(subgraph, "inputs");
    move_list(subgraph, "outputs");
    for (size_t i = 0; i < kept.size(); ++i) {  // grows while it runs
      const TablePtr q = kept[i]->table("quantization");
      const TablePtr details = q == nullptr ? nullptr : q->table("details");
      if (details == nullptr || details->type->slot("scales") < 0) continue;
      details->set("scales", move(details->integer("scales")));
      details->set("zero_points", move(details->integer("zero_points")));
    }
    tensors = kept;
    root.clear("signature_defs");
  }

  void drop_fields() {
    const size_t count = all_tables(best_).size();
    for (size_t t = 0; t < count && tries_ > 0; ++t) {
      for (size_t slot = 0;; ++slot) {
        const auto tables = all_tables(best_);
        if (t >= tables.size() || slot >= tables[t]->fields.size()) break;
        if (tables[t]->fields[slot].index() == 0) continue;
        const TablePtr candidate = clone(best_);
        all_tables(candidate)[t]->fields[slot] = std::monostate();
        accept(candidate);
      }
    }
  }

  /// The last item of a list can go without renumbering what is left.
  void drop_last_items() {
    const size_t count = all_tables(best_).size();
    for (size_t t = 0; t < count && tries_ > 0; ++t) {
      for (size_t slot = 0;; ++slot) {
        const auto tables = all_tables(best_);
        if (t >= tables.size() || slot >= tables[t]->fields.size()) break;
        const auto* items = std::get_if<std::vector<TablePtr>>(&tables[t]->fields[slot]);
        if (items == nullptr || items->empty()) continue;
        const TablePtr candidate = clone(best_);
        std::get<std::vector<TablePtr>>(all_tables(candidate)[t]->fields[slot]).pop_back();
        if (accept(candidate)) --slot;
      }
    }
  }

  TablePtr best_;
  const std::function<bool(const TablePtr&)>& fails_;
  int tries_;
};

}  // namespace

TablePtr minimize(const TablePtr& root, const std::function<bool(const TablePtr&)>& fails, int most_tries) {
  return Minimizer(clone(root), fails, most_tries).run();
}

}  // namespace leadline::fuzz

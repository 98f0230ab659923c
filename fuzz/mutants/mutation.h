// SPDX-License-Identifier: Apache-2.0
// Changes of what a model means. Each takes a tree that can be written and leaves one; most aim at a file that is wrong
// in one point and right in all others, so that it gets as far as possible before anybody notices.
#pragma once

#include <string>
#include <vector>

#include "random.h"
#include "tree.h"

namespace leadline::fuzz {

class Bases;

/// The model being changed, and where others' parts may be taken from.
struct Subject {
  TablePtr root;
  const Bases* donors = nullptr;

  std::vector<TablePtr>& subgraphs() { return root->tables("subgraphs"); }
  std::vector<TablePtr>& buffers() { return root->tables("buffers"); }
  /// Null when there is none.
  TablePtr subgraph(Random& random) { return subgraphs().empty() ? nullptr : random.pick(subgraphs()); }
};

struct Mutation {
  const char* name;
  int weight;
  bool (*apply)(Subject&, Random&);  // false: nothing here to change
};

std::vector<Mutation> tensor_mutations();
std::vector<Mutation> constant_mutations();
std::vector<Mutation> quantization_mutations();
std::vector<Mutation> node_mutations();
std::vector<Mutation> graph_mutations();
std::vector<Mutation> file_mutations();

/// One of all, by weight; the name of the one applied, empty when a few tries found nothing to change.
std::string mutate(Subject& subject, Random& random);

// Words that the mutations share.
int64_t odd_integer(Random& random, int64_t now);
float odd_float(Random& random);
std::string odd_name(Random& random);
/// Null when the subgraph has none.
TablePtr pick_tensor(const TablePtr& subgraph, Random& random);
TablePtr pick_operator(const TablePtr& subgraph, Random& random);
bool is_constant(Subject& subject, const Table& tensor);
/// A buffer of its own for the tensor, with these contents.
void set_contents(Subject& subject, Table& tensor, std::string bytes);
const std::string& contents(Subject& subject, const Table& tensor);
/// Bytes that the type and shape of a tensor ask for; -1: none, or too many for a test.
int64_t wanted_bytes(const Table& tensor);
/// Makes the contents of a constant as long as its type and shape ask for, when it had the right length before.
void refit(Subject& subject, Table& tensor, Random& random);
/// Adds a tensor and returns its index.
int64_t add_tensor(const TablePtr& subgraph, const TablePtr& tensor);
void set_per_tensor(Table& tensor, float scale, int64_t zero_point);
/// An operator code of the model for this op; added when it is not there.
int64_t operator_code(Subject& subject, int64_t builtin, int64_t version, const std::string& custom = {});

}  // namespace leadline::fuzz

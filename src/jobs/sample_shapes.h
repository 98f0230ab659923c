// SPDX-License-Identifier: Apache-2.0
// Sizes that a model leaves open, as samples have them: by input of the main subgraph.
#pragma once

#include <vector>

#include "leadline/interpreter.h"
#include "leadline/sample_reader.h"

namespace leadline::jobs {

/// Dimension by dimension; `b` where one of them is empty or of another rank.
std::vector<Shape> largest_shapes(const std::vector<Shape>& a, const std::vector<Shape>& b);
/// A sample with inputs of these shapes, without data.
Sample sample_of(const std::vector<Shape>& shapes);
std::vector<Shape> shapes_of(const Sample& sample);
/// The same as sample_shapes(); null: nothing is known.
std::vector<Shape> shapes_from(const Model& model, const SampleSource* samples);
bool leaves_sizes_open(const Model& model, int subgraph);

/// Sets the shapes of an interpreter's inputs; empty: they stay as they are. `places`: by shape, the input it is for;
/// empty: in order.
void resize_inputs(Interpreter& interpreter, const std::vector<Shape>& shapes, const std::vector<int>& places = {});

}  // namespace leadline::jobs

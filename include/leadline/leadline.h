// SPDX-License-Identifier: Apache-2.0
// Everything of the engine's C++ API. To run a model, start with interpreter.h. What guards processes and memory is a
// library of its own: leadline/guard/guard.h.
#pragma once

#include "leadline/budget.h"       // IWYU pragma: export
#include "leadline/calibrate.h"    // IWYU pragma: export
#include "leadline/calibration.h"  // IWYU pragma: export
#include "leadline/conversion_record.h"
#include "leadline/convert.h"              // IWYU pragma: export
#include "leadline/converter.h"            // IWYU pragma: export
#include "leadline/custom_op.h"            // IWYU pragma: export
#include "leadline/debug.h"                // IWYU pragma: export
#include "leadline/debug_model.h"          // IWYU pragma: export
#include "leadline/debug_result.h"         // IWYU pragma: export
#include "leadline/debugger.h"             // IWYU pragma: export
#include "leadline/devices.h"              // IWYU pragma: export
#include "leadline/error.h"                // IWYU pragma: export
#include "leadline/evaluate.h"             // IWYU pragma: export
#include "leadline/interpreter.h"          // IWYU pragma: export
#include "leadline/interpreter_options.h"  // IWYU pragma: export
#include "leadline/job_plan.h"             // IWYU pragma: export
#include "leadline/job_progress.h"         // IWYU pragma: export
#include "leadline/keras_layer.h"          // IWYU pragma: export
#include "leadline/model.h"                // IWYU pragma: export
#include "leadline/model_builder.h"        // IWYU pragma: export
#include "leadline/model_info.h"           // IWYU pragma: export
#include "leadline/names.h"                // IWYU pragma: export
#include "leadline/observer.h"             // IWYU pragma: export
#include "leadline/op_list.h"              // IWYU pragma: export
#include "leadline/passes.h"               // IWYU pragma: export
#include "leadline/plan.h"                 // IWYU pragma: export
#include "leadline/progress.h"             // IWYU pragma: export
#include "leadline/quantize.h"             // IWYU pragma: export
#include "leadline/quantizer.h"            // IWYU pragma: export
#include "leadline/recipe.h"               // IWYU pragma: export
#include "leadline/sample_reader.h"        // IWYU pragma: export
#include "leadline/samples.h"              // IWYU pragma: export
#include "leadline/tensor_memory.h"        // IWYU pragma: export
#include "leadline/tune.h"                 // IWYU pragma: export
#include "leadline/types.h"                // IWYU pragma: export
#include "leadline/version.h"              // IWYU pragma: export
#include "leadline/work_limit.h"           // IWYU pragma: export

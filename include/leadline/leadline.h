// SPDX-License-Identifier: Apache-2.0
// Everything of Leadline's C++ API. To run a model, start with interpreter.h.
#pragma once

#include "leadline/budget.h"               // IWYU pragma: export
#include "leadline/calibration.h"          // IWYU pragma: export
#include "leadline/converter.h"            // IWYU pragma: export
#include "leadline/custom_op.h"            // IWYU pragma: export
#include "leadline/debug_result.h"         // IWYU pragma: export
#include "leadline/debugger.h"             // IWYU pragma: export
#include "leadline/devices.h"              // IWYU pragma: export
#include "leadline/doctor.h"               // IWYU pragma: export
#include "leadline/error.h"                // IWYU pragma: export
#include "leadline/guard.h"                // IWYU pragma: export
#include "leadline/guard_report.h"         // IWYU pragma: export
#include "leadline/interpreter.h"          // IWYU pragma: export
#include "leadline/interpreter_options.h"  // IWYU pragma: export
#include "leadline/job_plan.h"             // IWYU pragma: export
#include "leadline/job_progress.h"         // IWYU pragma: export
#include "leadline/keras_layer.h"          // IWYU pragma: export
#include "leadline/laps.h"                 // IWYU pragma: export
#include "leadline/model.h"                // IWYU pragma: export
#include "leadline/model_builder.h"        // IWYU pragma: export
#include "leadline/model_info.h"           // IWYU pragma: export
#include "leadline/names.h"                // IWYU pragma: export
#include "leadline/observer.h"             // IWYU pragma: export
#include "leadline/op_list.h"              // IWYU pragma: export
#include "leadline/passes.h"               // IWYU pragma: export
#include "leadline/plan.h"                 // IWYU pragma: export
#include "leadline/postmortem.h"           // IWYU pragma: export
#include "leadline/progress.h"             // IWYU pragma: export
#include "leadline/quantizer.h"            // IWYU pragma: export
#include "leadline/recipe.h"               // IWYU pragma: export
#include "leadline/sample_reader.h"        // IWYU pragma: export
#include "leadline/samples.h"              // IWYU pragma: export
#include "leadline/tensor_memory.h"        // IWYU pragma: export
#include "leadline/types.h"                // IWYU pragma: export
#include "leadline/version.h"              // IWYU pragma: export
#include "leadline/watch.h"                // IWYU pragma: export
#include "leadline/watch_report.h"         // IWYU pragma: export
#include "leadline/work_limit.h"           // IWYU pragma: export

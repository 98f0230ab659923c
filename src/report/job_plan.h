// SPDX-License-Identifier: Apache-2.0
// The plan of a job as a part of larger documents.
#pragma once

#include "io/json.h"
#include "leadline/job_plan.h"

namespace leadline::report {

/// What JobPlan::to_json() writes.
Json plan_json(const JobPlan& plan);

}  // namespace leadline::report

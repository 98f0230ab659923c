// SPDX-License-Identifier: Apache-2.0
// The edge of the C++ API, as the classes of this folder know it.
#pragma once

#include "core/boundary.h"  // IWYU pragma: export

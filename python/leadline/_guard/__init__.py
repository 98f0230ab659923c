# SPDX-License-Identifier: Apache-2.0
"""Leadline's guard: limits and post-mortems for any code, not only models. `leadline.guard` is its function."""

# SPDX-License-Identifier: Apache-2.0
"""`make jupyterlab`: JupyterLab itself in Chromium, and papermill. Runs in .venv-jupyterlab."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "notebook"), str(TESTS / "python")]  # servers, kernels; chromium

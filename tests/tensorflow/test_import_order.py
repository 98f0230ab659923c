# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and Leadline in one process, whichever is imported first: case L17 of the museum."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("other", ["tensorflow", "litert"])
def test_either_order_of_imports(other, monkeypatch):
    for folder in ("museum", "conformance", "python"):
        monkeypatch.syspath_prepend(str(TESTS / folder))
    from exhibits.loading import both_orders

    both_orders(other)

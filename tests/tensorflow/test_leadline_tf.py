# SPDX-License-Identifier: Apache-2.0
"""leadline.tf beside TensorFlow, op by op: values, shapes, types, and what except clauses catch."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow
from tf_cases import CASES, ERRORS

from leadline import tf

KINDS = (TypeError, ValueError, IndexError, AttributeError, NotImplementedError, RuntimeError)


def as_arrays(result) -> list[np.ndarray]:
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in as_arrays(item)]
    if hasattr(result, "numpy"):
        array = np.asarray(result.numpy())
        assert tuple(result.shape) == array.shape
        assert result.dtype.name == ("string" if array.dtype.kind in "OS" else array.dtype.name)
        return [array]
    return [np.asarray(result)]


def assert_same(ours, theirs, tolerance: float) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        assert mine.dtype == other.dtype
        if mine.dtype.kind in "fc":
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", CASES)
def test_gives_what_tensorflow_gives(name):
    function, tolerance = CASES[name]
    assert_same(as_arrays(function(tf)), as_arrays(function(tensorflow)), tolerance)


@pytest.mark.parametrize("name", CASES)
def test_gives_the_same_in_a_function(name):
    """Traced into a graph, planned whole, and run."""
    function, tolerance = CASES[name]
    if name in ("map_fn", "while_loop", "variable", "searchsorted", "unique", "unique_with_counts"):
        pytest.skip("needs values")
    if "text" in name or "'a'" in name:
        pytest.skip("strings")
    result = tf.function(lambda: function(tf))()
    assert_same(as_arrays(result), as_arrays(function(tensorflow)), tolerance)


class Shapeless:
    """leadline.tf, with placeholders of unknown sizes in place of constants."""

    def __init__(self, rank_known: bool):
        self.rank_known = rank_known
        self.feeds = {}

    def constant(self, value, *args, **options):
        if not isinstance(value, np.ndarray) or args or options:
            return tf.constant(value, *args, **options)
        tensor = tf.compat.v1.placeholder(value.dtype, [None] * value.ndim if self.rank_known else None)
        self.feeds[tensor] = value
        return tensor

    def __getattr__(self, name):
        return getattr(tf, name)


@pytest.mark.parametrize("rank_known", [True, False])
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("variable", "map_fn", "while_loop"))])
def test_sizes_that_are_known_only_when_it_runs(name, rank_known):
    """The same result, or an error that says what has to be known."""
    function, tolerance = CASES[name]
    module = Shapeless(rank_known)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        try:
            result = function(module)
        except (NotImplementedError, ValueError, TypeError) as error:
            assert any(
                word in str(error) for word in ("unknown", "not supported", "no value", "symbolic", "known", "None")
            )
            return
        found = session.run(result, module.feeds)
    assert_same(as_arrays(found), as_arrays(function(tensorflow)), tolerance)


@pytest.mark.parametrize("name", ERRORS)
def test_fails_as_tensorflow_fails(name):
    """The same except clause catches both: the class of that name in `errors`, or a built-in one."""
    function = ERRORS[name]
    with pytest.raises(Exception) as theirs:
        function(tensorflow)
    error = theirs.value
    if isinstance(error, tensorflow.errors.OpError):
        expected = getattr(tf.errors, type(error).__name__.lstrip("_"), None) or tf.errors.InvalidArgumentError
    else:
        expected = tuple(kind for kind in KINDS if isinstance(error, kind))[:1] or Exception
    with pytest.raises(expected) as ours:
        function(tf)
    assert str(ours.value)


def test_programs_print_the_same():
    """Tensors, variables, sessions, functions and errors as text."""

    def printed(module: str) -> list[str]:
        program = Path(__file__).with_name("tf_programs.py")
        done = subprocess.run([sys.executable, program, module], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert printed("leadline.tf") == printed("tensorflow")

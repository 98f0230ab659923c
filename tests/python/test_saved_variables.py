# SPDX-License-Identifier: Apache-2.0
"""Variables that the watch saves before a kernel dies, and how they come back (leadline/_guard/save.py)."""

import os

import pytest

import leadline
from leadline._guard import save


class Strange:
    """Whoever asks what it is gets an error."""

    @property
    def __class__(self):
        raise RuntimeError("no answer")


def test_one_strange_variable_does_not_lose_the_others(tmp_path):
    path = str(tmp_path / "x.saved")
    assert save.save({"a": 1, "strange": Strange(), "b": [2]}, path) == ["a", "b"]
    assert save.Saved(path).names == ["a", "b"]


def test_a_cell_that_cannot_be_parsed_does_not_lose_the_variables(tmp_path):
    path = str(tmp_path / "x.saved")
    cells = ["import math", "x = " + "-" * 100_000 + "1"]
    assert save.save({"In": cells, "a": 1}, path) == ["a"]
    assert save.Saved(path).definitions() == "import math"


@pytest.mark.parametrize("name", ["x.saved", "x.flight"])
def test_restore_takes_the_file_or_the_recording_beside_it(tmp_path, name):
    save.save({"a": 1}, str(tmp_path / "x.saved"))
    assert leadline.restore(tmp_path / name) == {"a": 1}


def test_what_does_not_fit_any_more_is_left_where_it_is(tmp_path):
    """The kernel before died with it; the next one must not be brought to its limit by restoring it."""
    save.save({"small": 1, "large": bytes(400_000_000), "last": 2}, str(tmp_path / "x.saved"), most_bytes=500_000_000)
    saved = save.Saved(str(tmp_path / "x.saved"))
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * 4096
    namespace: dict = {}
    with leadline.watch(limit=resident + 200_000_000):
        restored, failed = saved.load(namespace)
    assert sorted(restored) == sorted(namespace) == ["last", "small"]
    assert "do not fit into what is left" in failed["large"] and "`%restore large`" in failed["large"]
    assert len(saved.load({}, ["large"])[0]) == 1


def test_nothing_saved_leaves_no_file(tmp_path):
    assert save.save({"a": 1}, str(tmp_path / "x.saved"), most_bytes=0) == []
    assert not (tmp_path / "x.saved").exists()


def test_files_are_private_and_those_of_others_are_refused(tmp_path):
    path = tmp_path / "x.saved"
    save.save({"a": 1}, str(path))
    assert os.stat(path).st_mode & 0o777 == 0o600
    path.chmod(0o666)
    with pytest.raises(leadline.Error, match="others could have written it"):
        leadline.restore(path)


def test_five_files_are_kept(tmp_path):
    for number in range(8):
        (tmp_path / f"{number}.flight").touch()
        save.save({"a": number}, str(tmp_path / f"{number}.saved"))
    assert sorted(file.name for file in tmp_path.glob("*.saved")) == [f"{n}.saved" for n in range(3, 8)]


def test_what_holds_tensors_comes_last(tmp_path):
    """To read a tensor, threads may be needed that are stopped while variables are saved."""
    jnp = pytest.importorskip("jax.numpy")
    variables = {"tensors": [jnp.ones(10)], "by_name": {"a": (jnp.ones(10),)}, "kept": bytes(100_000)}
    assert save.save(variables, str(tmp_path / "x.saved")) == ["kept", "tensors", "by_name"]


def test_a_large_variable_tells_that_it_gets_on(tmp_path):
    told = []
    save.save({"a": bytes(20_000_000)}, str(tmp_path / "x.saved"), progress=lambda: told.append(1))
    assert len(told) >= 4

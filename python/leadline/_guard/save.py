# SPDX-License-Identifier: Apache-2.0
"""Variables of a notebook, written to a private file when death is near, and read back by the next kernel.

The file lies beside the flight recording. It is a sequence of records, each of which is whole or not there: the process
may be killed at any moment. First come the imports, functions and classes of the cells as source, then variables as
pickles, small ones first.
"""

from __future__ import annotations

import ast
import contextlib
import os
import pickle
import shutil
import struct
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

from leadline._guard.largest import bytes_of
from leadline._leadline import (
    Error,
    InvalidArgumentError,
    InvalidModelError,
    IoError,
    admit_allocation,
    flights_folder,
    format_bytes,
    postmortems,
)

DEFAULT_BYTES = 2_000_000_000
_MAGIC = b"LEADLINE SAVED 1\n"
_RECORD = struct.Struct("<QQ")  # bytes of the name; bytes of what follows, 0 until it is whole
_DEFINITIONS = "\0definitions"
_MOST_FILES = 5
_PIECE = 4 << 20  # written pages are sent to the disk after as much, so that they do not take the memory that is left
_SECONDS = 15.0
# To read these, threads may be needed that are stopped at the moment: they come last, and so does what holds them.
_SLOW = ("tensorflow", "jax", "jaxlib", "torch", "keras", "tf_keras")
_NOT_VARIABLES = {"In", "Out", "exit", "quit", "get_ipython", "open"}


class _Late(Exception):
    pass


class _File:
    """Writes, and keeps neither dirty pages nor copies. The pickler gives large buffers as they are."""

    def __init__(self, path: str, most_bytes: int, deadline: float, progress: Callable[[], None]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(path, flags, 0o600)
        self.size = 0
        self._most, self._deadline, self._sent = most_bytes, deadline, 0
        self._progress = progress

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.size + view.nbytes > self._most:
            raise _Late("the bound of the file is reached")
        for start in range(0, view.nbytes, _PIECE):
            piece = view[start : start + _PIECE]
            if time.monotonic() > self._deadline:
                raise _Late("it took too long")
            done = 0
            while done < piece.nbytes:
                done += os.pwrite(self.descriptor, piece[done:], self.size + done)
            self.size += piece.nbytes
            if self.size - self._sent >= _PIECE:
                os.fdatasync(self.descriptor)
                os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                self._sent = self.size
                self._progress()
        return view.nbytes

    def record(self, name: str, thing: Any) -> None:
        """All of it, or nothing."""
        start = self.size
        try:
            words = name.encode()
            self.write(_RECORD.pack(len(words), 0) + words)
            begin = self.size
            pickle.Pickler(self, protocol=5).dump(thing)
            os.pwrite(self.descriptor, _RECORD.pack(len(words), self.size - begin), start)
        except BaseException:
            os.ftruncate(self.descriptor, start)
            self.size = start
            raise

    def close(self) -> None:
        os.close(self.descriptor)


def path_beside(recording: str) -> str:
    """Where the variables of the process with this recording are, if they were saved."""
    return recording.removesuffix(".flight").removesuffix(".saved") + ".saved"


def save(
    namespace: dict[str, Any],
    path: str,
    most_bytes: int = DEFAULT_BYTES,
    progress: Callable[[], None] = lambda: None,
) -> list[str]:
    """Writes what can be pickled, and returns the names. Never raises: whoever calls has nothing better to do.

    `progress` is called before each variable, and after each piece of a large one.
    """
    saved: list[str] = []
    deadline = time.monotonic() + _SECONDS
    try:
        folder = os.path.dirname(path)
        prune(folder)
        most_bytes = min(most_bytes, shutil.disk_usage(folder).free // 2)
        file = _File(path, most_bytes, deadline, progress)
    except OSError:
        return saved
    try:
        file.write(_MAGIC)
        with contextlib.suppress(Exception):  # variables can do without
            file.record(_DEFINITIONS, definitions(namespace.get("In", ())))
        for size, name, value in _variables(namespace, deadline):
            if file.size + size > most_bytes:
                continue
            progress()
            try:
                file.record(name, value)
                saved.append(name)
            except _Late:
                if time.monotonic() > deadline:
                    break
            except Exception:  # it cannot be pickled
                continue
    except Exception:  # no memory, no disk: what is written counts
        pass
    finally:
        file.close()
    if not saved:
        forget(path)
    return saved


def _variables(namespace: dict[str, Any], deadline: float) -> Iterator[tuple[int, str, Any]]:
    found = []
    for name, value in list(namespace.items()):
        if not isinstance(name, str) or name.startswith("_") or name in _NOT_VARIABLES:
            continue
        try:
            if isinstance(value, types.ModuleType) or (
                getattr(value, "__module__", "") == "__main__" and callable(value)
            ):
                continue  # the definitions bring them back
            size, packages = bytes_of(value, max(0.05, (deadline - time.monotonic()) / 4))
            slow = type(value).__module__.partition(".")[0] in _SLOW or not packages.isdisjoint(_SLOW)
            found.append((slow, size, name, value))
        except Exception:  # of an object that does not answer; the others count
            continue
    found.sort(key=lambda item: item[:3])
    return ((size, name, value) for _, size, name, value in found)


def definitions(cells: Any) -> str:
    """The imports, functions and classes of cells, in order; of those with one name the last."""
    kept: dict[str, str] = {}
    for cell in cells:
        try:
            tree = ast.parse(cell)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # magics, and what is too deep
            continue
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                key = node.name
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                key = ast.dump(node)
            else:
                continue
            kept.pop(key, None)
            lines = cell.splitlines()
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            single = isinstance(node, (ast.Import, ast.ImportFrom))
            kept[key] = ast.unparse(node) if single else "\n".join(lines[first - 1 : node.end_lineno])
    return "\n".join(kept.values())


def prune(folder: str) -> None:
    """Makes room for another file: keeps the newest ones, and none whose recording is gone."""
    files = sorted(name for name in os.listdir(folder) if name.endswith(".saved"))
    for position, name in enumerate(files):
        orphan = not os.path.exists(os.path.join(folder, name.removesuffix(".saved") + ".flight"))
        if orphan or len(files) - position >= _MOST_FILES:
            forget(os.path.join(folder, name))


def forget(path: str) -> None:
    """Removes a file of variables that nobody will need."""
    try:
        os.unlink(path)
    except OSError:
        pass


class Saved:
    """A file of saved variables: `names` in the order of the file; load() reads them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._places: dict[str, tuple[int, int]] = {}
        with _open_own(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InvalidModelError(f"{path} is not a file of saved variables")
            end = os.fstat(file.fileno()).st_size
            while len(head := file.read(_RECORD.size)) == _RECORD.size:
                name_size, size = _RECORD.unpack(head)
                begin = file.tell() + name_size
                if size == 0 or begin + size > end:
                    break  # it was being written
                name = file.read(name_size).decode()
                self._places[name] = (begin, size)
                file.seek(begin + size)

    @property
    def names(self) -> list[str]:
        """Of the variables."""
        return [name for name in self._places if name != _DEFINITIONS]

    def size_of(self, name: str) -> int:
        """Bytes in the file."""
        return self._places[name][1]

    def read(self, name: str) -> Any:
        """One variable. Raises what its class raises."""
        with _open_own(self.path) as file:
            file.seek(self._places[name][0])
            return pickle.load(file)

    def definitions(self) -> str:
        """Imports, functions and classes, as source."""
        return str(self.read(_DEFINITIONS)) if _DEFINITIONS in self._places else ""

    def load(self, namespace: dict[str, Any], names: list[str] | None = None) -> tuple[list[str], dict[str, str]]:
        """Puts the variables into a namespace: the names of those that came back, and what the others raised."""
        unknown = [name for name in names or () if name not in self._places]
        if unknown:
            raise InvalidArgumentError(f"'{unknown[0]}' was not saved; there are: {', '.join(self.names) or 'none'}")
        failed: dict[str, str] = {}
        for statement in ast.parse(self.definitions()).body:
            try:
                exec(compile(ast.Module([statement], []), "<restored definitions>", "exec"), namespace)
            except Exception as error:
                failed[ast.unparse(statement).partition("\n")[0]] = f"{type(error).__name__}: {error}"
        restored = []
        for name in names or self.names:
            if not admit_allocation(self.size_of(name)):  # the kernel would be at its limit again
                size = format_bytes(self.size_of(name))
                failed[name] = f"its {size} do not fit into what is left; free memory, then `%restore {name}`"
                continue
            try:
                namespace[name] = self.read(name)
                restored.append(name)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
        return restored, failed


def _open_own(path: str) -> Any:
    """For reading. A pickle can run code: only a file that nobody else could write is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise IoError(f"{path} cannot be read: {error.strerror}") from None
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        os.close(descriptor)
        raise IoError(f"{path} is not read: others could have written it")
    return os.fdopen(descriptor, "rb")


def last_saved(session: str = "", folder: str = "") -> Saved | None:
    """The variables of the last process that died and saved some; with a session, of that session alone."""
    for report in postmortems(folder or flights_folder()):  # the newest comes first
        path = path_beside(report.path)
        if not report.died or (session and report.session != session) or not os.path.exists(path):
            continue
        try:
            return Saved(path)
        except Error:  # cut off, or not ours
            continue
    return None


def restore(path: str | os.PathLike[str] | None = None, names: list[str] | None = None) -> dict[str, Any]:
    """The variables that the watch saved before the last process died, by name; empty when nothing was saved.

    `path` is a file of saved variables, or the recording beside it. In a notebook, `%restore` puts them back where they
    were. What cannot be read is left out; `%restore` says why.
    """
    if path is not None:
        saved: Saved | None = Saved(path_beside(os.fspath(path)))
    else:
        saved = last_saved()
    if saved is None:
        return {}
    namespace: dict[str, Any] = dict(vars(sys.modules["__main__"]))
    restored, _ = saved.load(namespace, names)
    return {name: namespace[name] for name in restored}


def describe(saved: Saved) -> str:
    """One sentence about what can be brought back."""
    names = saved.names
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    total = format_bytes(sum(map(saved.size_of, names)))
    count = "1 variable was" if len(names) == 1 else f"{len(names)} variables were"
    back = "it" if len(names) == 1 else "them"
    return f"{count} saved before ({shown}; {total}): `%restore` brings {back} back."

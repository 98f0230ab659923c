# SPDX-License-Identifier: Apache-2.0
"""What happens in Python when memory comes near its limit: who is stopped, where, and with which words."""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline._guard.largest import largest_objects  # not on first use: there is no memory to spare then
from leadline._leadline import Error, accounted_bytes, format_bytes, last_refusal, raise_in_thread

if TYPE_CHECKING:
    from leadline._guard.watch import Watch

# Packages whose event loops, hooks and messages belong to the front end: an exception there would end the kernel.
_FRONT_END = (
    "IPython",
    "ipykernel",
    "asyncio",
    "tornado",
    "zmq",
    "jupyter_client",
    "traitlets",
    "leadline",
    "selectors",
)
_POOLS = ("concurrent", "multiprocessing")
_MOST_FRAMES = 500  # more than any front end has below a cell
# Functions that turn an exception into text. An alarm in there would leave a cell without its error message.
_FORMATTING = {
    "IPython": ("showtraceback", "_showtraceback", "structured_traceback", "showsyntaxerror"),
    "traceback": ("print_exception", "format_exception", "print_exc", "format_exc", "format", "extract"),
}  # fmt: skip


class MemoryLimitError(Error, MemoryError):
    """Memory came near its limit while this code made it grow.

    `largest` lists the largest Python objects (see leadline.largest_objects); `sample` has the memory of that moment.
    """

    __module__ = "leadline"  # where users find it
    code = "memory_limit"

    def __init__(self, message: str = "", largest: Sequence[Any] = (), sample: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.largest = list(largest)
        self.sample = dict(sample or {})


def size_text(count: int, limit: float | str) -> str:
    """In the units that the limit was given in."""
    return format_bytes(count, limit if isinstance(limit, str) else "")


def say(text: str) -> None:
    """Prints to standard error from a handler of signals, without an error for whoever prints at that moment.

    Python refuses to write to a file within a write to it (RuntimeError); it may also be closed, or None.
    """
    try:
        sys.stderr.write(text + "\n")
    except Exception:
        try:
            os.write(2, (text + "\n").encode(errors="replace"))
        except OSError:  # there is nobody to tell
            pass


def handle(watch: Watch, frame: types.FrameType | None) -> None:
    """Called in the main thread, wherever it is, when the watch has something to say."""
    native = watch._thread
    if (alarm := native.take_alarm()) is None or _is_handling(frame):
        return
    if alarm["warning"]:
        if alarm["cell"]["running"] or not watch._cells_only:
            say("leadline: " + _warning(watch, alarm))
        return
    may_raise = _may_raise(watch, frame)
    thread = _python_thread(alarm["thread"])
    if thread is not None and _can_be_stopped(thread, instead_of_main=may_raise):
        _stop_thread(watch, alarm, thread)
        native.note_raised()
    elif may_raise:
        largest = largest_objects(10, seconds=0.5)
        native.note_raised()
        raise MemoryLimitError(message(watch, alarm, largest), largest, alarm["sample"])
    elif _is_formatting(frame) or not _cancel_tasks(watch, alarm):
        native.take_back_alarm()
    else:
        native.note_raised()


def _is_handling(frame: types.FrameType | None) -> bool:
    """Whether an alarm is being raised already: while its message is made, which takes time where memory is short,
    memory may still grow. A second exception from in there would hide the cell's lines."""
    return any(f.f_code is handle.__code__ for f in _frames(frame))


def _frames(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """The innermost ones. Python makes an object of every frame that is looked at: where a recursion fills memory,
    those of all its frames would take what is left."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _package(frame: types.FrameType) -> str:
    name = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] if isinstance(name, str) else ""


def _is_formatting(frame: types.FrameType | None) -> bool:
    return any(f.f_code.co_name in _FORMATTING.get(_package(f), ()) for f in _frames(frame))


def _may_raise(watch: Watch, frame: types.FrameType | None) -> bool:
    """Whether an exception would come to code of the user's, and end there."""
    if _is_formatting(frame) or _ends_a_pool(frame):
        return False
    if not watch._cells_only:
        return True
    frames = list(_frames(frame))
    if len(frames) == _MOST_FRAMES or any(f.f_globals is watch._namespace for f in frames):
        return True
    task = _current_task()
    return task is not None and _is_users(task)


def _ends_a_pool(frame: types.FrameType | None) -> bool:
    """Whether the workers of a pool are being waited for, perhaps because of an alarm before. Whoever does not wait
    takes away what they work on: pandas.read_csv unmaps its file, and crashes."""
    return any(_package(f) in _POOLS and f.f_code.co_name in ("shutdown", "__exit__", "join") for f in _frames(frame))


def _current_task() -> Any:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or (loop := asyncio._get_running_loop()) is None:
        return None
    return asyncio.current_task(loop)


def _is_users(task: Any) -> bool:
    frame = getattr(task.get_coro(), "cr_frame", None)
    return frame is not None and _package(frame) not in _FRONT_END


def _cancel_tasks(watch: Watch, alarm: dict[str, Any]) -> bool:
    """Between cells: asyncio tasks of the user's in the main thread. Whether there were any."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or (loop := asyncio._get_running_loop()) is None:
        return False
    tasks = [task for task in asyncio.all_tasks(loop) if _is_users(task) and not task.done()]
    text = message(watch, alarm, [])
    for task in tasks:
        loop.call_soon_threadsafe(task.cancel, text)
    if tasks:
        names = ", ".join(task.get_name() for task in tasks[:5])
        say(f"leadline: cancelled {len(tasks)} asyncio tasks ({names}): {text}")
    return bool(tasks)


def _python_thread(kernel_number: int) -> threading.Thread | None:
    """The thread of Python that grew most, unless it is the main one or unknown."""
    main = threading.main_thread()
    for thread in threading.enumerate():
        if thread.native_id == kernel_number and thread is not main and kernel_number:
            target = getattr(thread, "_target", None)  # the threads that print for a kernel are plain ones
            owners = (type(thread).__module__, getattr(target, "__module__", None) or "")
            return None if any(owner.partition(".")[0] in _FRONT_END for owner in owners) else thread
    return None


def _can_be_stopped(thread: threading.Thread, *, instead_of_main: bool) -> bool:
    """Whether an exception would come to what the thread works on, and harm nobody who waits for that.

    It is raised in the frame where the thread is now, which waits for Python's lock or for native code. A worker of a
    pool that is between two pieces of work would take the next one along, and whoever waits for it would wait for ever;
    libraries whose workers are stopped in the midst of a piece (pandas.read_csv) have crashed. The main thread, which
    waits for the pool, is stopped `instead` where it can be: the pool ends its pieces then."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or _package(frame) in (*_POOLS, "queue"):
        return False
    if not any(_package(outer) in _POOLS for outer in _frames(frame)):
        return True
    return not instead_of_main and "site-packages" not in frame.f_code.co_filename


def _stop_thread(watch: Watch, alarm: dict[str, Any], thread: threading.Thread) -> None:
    """Raises in another thread. Python makes the exception there, from its class alone."""
    text = message(watch, alarm, [])

    def begin(self: MemoryLimitError, *_: object) -> None:
        MemoryLimitError.__init__(self, text, (), alarm["sample"])

    kind = type("MemoryLimitError", (MemoryLimitError,), {"__init__": begin, "__module__": "leadline"})
    raise_in_thread(thread.ident or 0, kind)
    say(f"leadline: thread {thread.name} is stopped: {text}")


def workers() -> list[tuple[int, int, str]]:
    """(resident bytes, pid, name) of the processes that this one started, the largest first."""
    names = {}
    if (multiprocessing := sys.modules.get("multiprocessing.process")) is not None:
        names = {child.pid: child.name for child in set(multiprocessing._children)}
    found: list[tuple[int, int, str]] = []
    waiting = _children_of(os.getpid())
    while waiting and len(found) < 100:
        pid = waiting.pop()
        waiting += _children_of(pid)
        try:
            with open(f"/proc/{pid}/status") as file:
                status = dict(line.split(":", 1) for line in file if ":" in line)
            size = sum(int(status.get(key, "0 kB").split()[0]) for key in ("RssAnon", "RssShmem"))
            found.append((1024 * size, pid, names.get(pid) or status["Name"].strip()))
        except (OSError, ValueError, KeyError):  # it has ended
            continue
    return sorted(found, reverse=True)


def _children_of(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    except (OSError, ValueError):  # it has ended, or this kernel does not list children
        pass
    return children


def _use(watch: Watch, sample: dict[str, Any]) -> str:
    """Who has memory: this process and what it started."""
    text = f"{size_text(sample['resident'], watch.limit)} by this process"
    if sample["worker_count"]:
        count = sample["worker_count"]
        started = f"{count} processes it started" if count > 1 else "process it started"
        text += f", {size_text(sample['workers'], watch.limit)} by the {started}"
    return text


def _warning(watch: Watch, alarm: dict[str, Any]) -> str:
    sample = alarm["sample"]
    where = "the container" if sample["container"] else "the machine"
    used, capacity = size_text(sample["used"], watch.limit), size_text(sample["capacity"], watch.limit)
    return (
        f"{100 * sample['used'] / max(sample['capacity'], 1):.0f} % of the memory of {where} are in use ({used} of "
        f"{capacity}, {_use(watch, sample)}). Other processes made it grow, so nothing is stopped here; but the OOM "
        "killer may choose this process. Save what you need."
    )


def message(watch: Watch, alarm: dict[str, Any], largest: Sequence[Any]) -> str:
    """The text of a MemoryLimitError."""
    sample, cell = alarm["sample"], alarm["cell"]
    if alarm["own_limit"]:
        first = (
            f"this process has {size_text(sample['resident'], watch.limit)}, which is its limit "
            f"({size_text(alarm['limit'], watch.limit)}); it was stopped before it took more"
        )
    else:
        where = "the container" if sample["container"] else "the machine"
        share = 100 * sample["used"] / max(sample["capacity"], 1)
        used, capacity = (size_text(sample[key], watch.limit) for key in ("used", "capacity"))
        first = (
            f"{share:.0f} % of the memory of {where} are in use ({used} of {capacity}, {_use(watch, sample)}); stopped "
            "before the OOM killer would have"
        )
        if alarm["by_pressure"]:
            first += f" (processes waited for memory {100 * sample['pressure']:.0f} % of the last second)"
    since = f"since cell {cell['number']} began" if cell["number"] else "since the watch began"
    line = f"it grew by {size_text(alarm['growth'], watch.limit)} in {alarm['since']:.1f} s, {since}"
    if cell["first_line"]:
        line += f" (`{cell['first_line'][:80]}`)"
    if alarm["bytes_per_second"] > 0:
        line += f"; lately {size_text(int(alarm['bytes_per_second']), watch.limit)} a second"
    lines = [first, line]
    if alarm["worker_growth"] > 0 and sample["worker_count"]:
        lines.append(f"the processes it started grew by {size_text(alarm['worker_growth'], watch.limit)}:")
        lines += [f"  {format_bytes(size):>10}  {name} (pid {pid})" for size, pid, name in workers()[:10]]
    return "\n".join(
        lines + _objects(largest) + [f"accounted to Leadline: {size_text(accounted_bytes(), watch.limit)}"]
    )


def _objects(largest: Sequence[Any]) -> list[str]:
    return ["the largest Python objects:", *(f"  {item}" for item in largest)] if largest else []


def explain_refusal(watch: Watch, *, ours: bool) -> str:
    """For a MemoryError of a library. `ours`: the watch refused, and knows what and why."""
    sample = watch.sample()
    where = "the container" if sample["container"] else "the machine"

    def size(count: int) -> str:
        return size_text(count, watch.limit)

    if ours:
        refused = last_refusal()
        first = (
            f"leadline: {size(refused['requested'])} more were refused, for that would have ended in the OOM killer. "
        )
        if refused["own_limit"]:
            first = f"leadline: {size(refused['requested'])} more were refused. "
        elif refused["process_limit"]:
            first = f"leadline: {size(refused['requested'])} more were refused (RLIMIT_AS or RLIMIT_DATA). "
        first += f"This process had {size(refused['resident'])}"
        if watch._bytes and refused["own_limit"]:
            first += f" of the {size(watch._bytes)} that are its limit"
        kept = []
        if not refused["own_limit"]:
            first += f"; {size(refused['available'])} of {where}'s {size(refused['capacity'])} were left"
            kept.append(f"{size(refused['reserve'])} of them are kept for the report")
        if refused["promised"]:
            kept.append(f"{size(refused['promised'])} are promised to arrays that are not filled yet")
        first += f" ({', '.join(kept)})." if kept else "."
    else:
        first = (
            f"leadline: an allocation was refused. This process has {size(sample['resident'])}; "
            f"{size(sample['available'])} of {where}'s {size(sample['capacity'])} are left."
        )
        if watch._bytes:
            first += f" Limit of this watch: {size(watch._bytes)}."
    largest = largest_objects(10, seconds=0.5)
    return "\n".join([first, *_objects(largest), f"accounted to Leadline: {size(sample['accounted'])}"])

# SPDX-License-Identifier: Apache-2.0
"""leadline.postmortem: why watched processes died."""

from __future__ import annotations

import os

from leadline._leadline import Postmortem, mark_reported, postmortem_of, postmortems, previous_death


def postmortem(path: str | os.PathLike[str] | None = None) -> Postmortem | None:
    """How the last watched process that died came to its end; the newest one when none died; None without recordings.

    `path` is a recording or a folder of them; else LEADLINE_FLIGHTS or the user's own folder.
    """
    if path is not None and not os.path.isdir(path):
        return postmortem_of(os.fspath(path))
    found = postmortems(os.fspath(path) if path is not None else "")
    return next((report for report in found if report.died), found[0] if found else None)


def all_postmortems(path: str | os.PathLike[str] | None = None) -> list[Postmortem]:
    """Of every recording in a folder, newest first."""
    return postmortems(os.fspath(path) if path is not None else "")


def tell_previous_death(session: str) -> str | None:
    """One line about the death of this session's process before this one, reported once; None when it ended well."""
    found = previous_death(session, os.getcwd())
    if not found:
        return None
    mark_reported(found[0].path)
    return f"leadline: the kernel before this one died: {found[0].summary}. `%postmortem` shows all of it."

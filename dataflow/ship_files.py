"""Files that travel as they are, and which of them trials have: the same that trial_files.py reads, by the same paths.

Of a file of which only so much is read, a byte more is sent, so that it is known there too that it is larger.
"""

import os
from collections.abc import Iterator

from dataflow.capture import Source, TrialTree, shown
from dataflow.flights import DUMP_BYTES
from dataflow.opened import Damage, file_chunks, reason
from dataflow.reads import Compression
from dataflow.trial_files import JOB_RESULT, Trouble, entries_in, holds_trials, is_trial, most_of, wanted_in
from dataflow.wire import Part
from dataflow.wire_words import Failed, FolderSeen, LinkSeen

PART_BYTES = 524_288

FilePiece = Part | FolderSeen | LinkSeen | Failed


def parts_of(path: str, relative: str, most: int | None = None) -> Iterator[Part | Failed]:
    """The bytes of a file, at most so many; one empty part of an empty file. What was wrong with it comes last. Never
    raises OSError."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        yield Failed(relative, f"cannot be opened: {reason(error)}")
        return
    at, whole = 0, (found.st_size, found.st_mtime_ns)
    for chunk in file_chunks(path, PART_BYTES):
        if isinstance(chunk, Damage):
            yield Failed(relative, chunk.why)
            return
        data = chunk if most is None else chunk[: most - at]
        yield Part(relative, at, data, *whole)
        at += len(data)
        if len(data) < len(chunk):
            return
    if not at:
        yield Part(relative, 0, b"", *whole)


def dump_parts(source: Source) -> Iterator[Part | Failed]:
    """A flight recorder's dump."""
    most = DUMP_BYTES + 1 if source.compression is Compression.NONE else None
    return parts_of(source.path, source.relative, most)


def trial_pieces(path: str, relative: str) -> Iterator[FilePiece]:
    """The files of one trial's folder that are read."""
    yield FolderSeen(relative)
    for each in wanted_in(path, relative):
        if isinstance(each, Trouble):
            yield Failed(each.source, each.why)
        elif each.entry.is_file(follow_symlinks=False):
            yield from parts_of(each.entry.path, each.source, most_of(each.file) + 1)
        else:
            yield LinkSeen(each.source)


def job_result_parts(path: str, relative: str) -> Iterator[Part | Failed]:
    """A job's own result."""
    return parts_of(path, relative, most_of(JOB_RESULT) + 1)


def tree_pieces(tree: TrialTree) -> Iterator[FilePiece]:
    """The files of a folder of trials that are read."""
    return _folder(tree.path, tree.relative, inside_job=False)


def _folder(path: str, relative: str, inside_job: bool) -> Iterator[FilePiece]:
    yield FolderSeen(relative)
    entries = entries_in(path)
    if isinstance(entries, str):
        yield Failed(relative, entries)
        return
    for entry in entries:
        source = f"{relative}/{shown(entry.name)}"
        if entry.is_symlink():
            yield LinkSeen(source)
        elif entry.name == JOB_RESULT and entry.is_file(follow_symlinks=False):
            yield from job_result_parts(entry.path, source)
        elif not entry.is_dir(follow_symlinks=False):
            continue
        elif not inside_job and not is_trial(entry.name) and holds_trials(entry.path):
            yield from _folder(entry.path, source, inside_job=True)
        else:
            yield from trial_pieces(entry.path, source)

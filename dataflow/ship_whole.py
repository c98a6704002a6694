"""Files of a live capture that are sent whole when they stand still: trials', archives of trials, and dumps."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dataflow.capture import Source, TrialTar
from dataflow.rescan import Found
from dataflow.ship_files import FilePiece, dump_parts, job_result_parts, parts_of, trial_pieces
from dataflow.trial_watch import TrialSeen as TrialFound
from dataflow.wire_words import ArchiveSeen, DumpSeen, Failed, TrialSeen
from extractors.record import SourceKind

WholePiece = FilePiece | TrialSeen | ArchiveSeen | DumpSeen


@dataclass(slots=True)
class _Waiting:
    """What is to be sent. top is the folder or file at the top of the capture that it is of, or in."""

    top: str
    pieces: Iterator[WholePiece]


class Whole:
    """What a look found, until it is sent. dumps are those that were sent, archives those with their size and time."""

    def __init__(self, dumps: set[str], archives: dict[str, tuple[int, int]]) -> None:
        self.dumps = dumps
        self.archives = archives
        self._sizes: dict[str, tuple[Source, int]] = {}
        self._queue: deque[_Waiting] = deque()

    @property
    def waiting(self) -> list[str]:
        """Of what not all was sent."""
        return list(dict.fromkeys(each.top for each in self._queue))

    def found(self, found: Found) -> None:
        """Takes in what a look found, and sees which dumps have their whole size."""
        for source in found.new:
            if source.kind is SourceKind.FLIGHT and source.relative not in self.dumps:
                self._sizes[source.relative] = (source, -1)
        for archive in found.archives:
            self._queue.append(_Waiting(archive.relative, self._archive(archive)))
        for trial in found.trials:
            self._queue.append(_Waiting(trial.relative.split("/", 1)[0], _trial(trial)))
        for name, (source, size) in list(self._sizes.items()):
            now = _stamp(source.path)[0]
            self._sizes[name] = (source, now)
            if now == size and size > 0:
                del self._sizes[name]
                self._queue.append(_Waiting(name, self._dump(source)))

    def pieces(self, go_on: Callable[[], bool]) -> Iterator[WholePiece]:
        """What is to be sent now, as long as it may go on."""
        while self._queue and go_on():
            piece = next(self._queue[0].pieces, None)
            if piece is None:
                self._queue.popleft()
            else:
                yield piece

    def _archive(self, archive: TrialTar) -> Iterator[WholePiece]:
        """One that was sent before a restart, and was not written since, is not sent again."""
        stamp = _stamp(archive.path)
        if self.archives.get(archive.relative) == stamp:
            return
        whole = True
        for piece in parts_of(archive.path, archive.relative):
            whole = not isinstance(piece, Failed)
            yield piece
        if whole:
            self.archives[archive.relative] = stamp
            yield ArchiveSeen(archive.relative, archive.compression)

    def _dump(self, source: Source) -> Iterator[WholePiece]:
        whole = True
        for piece in dump_parts(source):
            whole = not isinstance(piece, Failed)
            yield piece
        self.dumps.add(source.relative)
        if whole:
            yield DumpSeen(source.relative)


def _trial(trial: TrialFound) -> Iterator[WholePiece]:
    if trial.name:
        yield from trial_pieces(trial.path, trial.relative)
    else:
        yield from job_result_parts(trial.path, trial.relative)
    yield TrialSeen(trial.name, trial.relative, trial.ended)


def _stamp(path: str) -> tuple[int, int]:
    """A file's size and time; (-1, 0) where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return -1, 0
    return found.st_size, found.st_mtime_ns

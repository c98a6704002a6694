"""One growing file, whole lines at a time, whatever is done to it meanwhile.

What is read of the file is told by its content (identity.py), never by its inode. A longer copy of what was read goes
on where the reading stood; another content is a new generation, read from its beginning. A shorter file that begins
alike may be a copy that is still being written, or a truncated one that was just begun anew: it is waited for, and
nothing of it is read twice. An empty one says nothing, so it is waited for as long as it is empty.
"""

import errno
import os
import stat
from collections.abc import Callable

import msgspec

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES
from dataflow.capture import Source
from dataflow.grip import Grip
from dataflow.identity import SAMPLE_BYTES, Likeness, Mark, likeness
from dataflow.opened import reason
from dataflow.turns import How, Piece, Rotated, TailFailed, TailResumed, Trouble
from dataflow.whole_lines import given, torn

SLACK_BYTES = 65_536
"""What is read beyond a block, so that its last line ends there."""
SETTLE_US = 5_000_000
"""How long a file that is gone, or shorter than what was read of it, may be about to be written again."""
HOLD_US = 2_000_000
"""How long a file stays open after it grew: one that is replaced meanwhile is read to its end."""
_GONE = (errno.ENOENT, errno.ENOTDIR)

_Seen = tuple[int, int, int, int, int]


class Tail:
    """Follows a file. mark is how far it was read: keep it (`snapshot`), and give it to go on from there.

    more says that bytes are known that were not read yet: poll again soon. grew_us is when a poll last saw a change of
    the file, waiting that it must be looked at again though it is quiet. elsewhere is asked, before the first byte of a
    content is given, how far that was read under another name. Close it at the end.
    """

    def __init__(
        self, source: Source, mark: Mark | None = None, block_bytes: int = BLOCK_BYTES, line_bytes: int = LINE_BYTES
    ) -> None:
        self.source = source
        self.mark = mark or Mark()
        self.more = False
        self._path = source.path
        self._block_bytes = block_bytes
        self._line_bytes = line_bytes
        self._seen: _Seen | None = None
        self._attentive = False
        self._known = self.mark != Mark()
        self._proven = False
        self._grip: Grip | None = None
        self.grew_us: int | None = None
        self._odd_since_us: int | None = None
        self._odd_size = -1
        self._told: tuple[Trouble, str] | None = None
        self._asked = -1
        self.elsewhere: Callable[[], Mark | None] = lambda: None

    @property
    def waiting(self) -> bool:
        """Whether it is still to be told what became of the file, or the file is open."""
        return self._attentive or self._odd_since_us is not None

    def fails_still(self, trouble: Trouble, why: str) -> None:
        """What was told of the file before this tail was made: it is not told again, but when it is over."""
        self._told = (trouble, why)

    def poll(self, now_us: int) -> list[Piece]:
        """What is new. Reads one block at most, or one line where that is longer. now_us is any clock that runs on,
        in microseconds. Never raises OSError; waits for nothing but the disk."""
        try:
            found = os.stat(self._path)
        except (OSError, ValueError) as error:
            return self._absent(error, now_us)
        seen = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
        if seen == self._seen:
            if not self._attentive:
                return []
            if not self.more and self._odd_since_us is None:
                self._rest(now_us)
                return []
        else:
            self.grew_us = now_us
        self._seen, self._attentive, self._known, self.more = seen, True, True, False
        out: list[Piece] = []
        if not stat.S_ISREG(found.st_mode):
            self._failed(Trouble.NOT_A_FILE, "neither a file nor a link to one", out)
            return out
        try:
            self._follow(found, now_us, out)
        except (OSError, ValueError) as error:
            self._unreadable(error, out)
        return out

    def finish(self, now_us: int) -> list[Piece]:
        """The rest of the file up to its end, also a last line without its newline. The mark stays before that line:
        should the file go on after all, it will be given again, whole. Lets go of the file."""
        out = self.poll(now_us)
        if self._odd_since_us is not None:
            out += self.poll(now_us + SETTLE_US)
        while self.more:
            out += self.poll(now_us)
        if self._seen is not None and self._odd_since_us is None and self._told is None:
            try:
                grip = self._grip or Grip(self._path)
                self._grip = grip
                out += self._torn(grip)[0]
            except (OSError, ValueError) as error:
                self._unreadable(error, out)
        self.close()
        return out

    def snapshot(self) -> bytes:
        """The mark as bytes; `Mark.restored` reads them."""
        return msgspec.msgpack.encode(self.mark)

    def held(self, most: int = SLACK_BYTES) -> bytes:
        """The newest bytes of the line that is held back because it has no newline yet: a redrawn bar's last frames."""
        try:
            grip = Grip(self._path)
        except (OSError, ValueError):
            return b""
        try:
            return os.pread(grip.fd, most, max(self.mark.offset, grip.size - most))
        except OSError:
            return b""
        finally:
            grip.close()

    def close(self) -> None:
        """Lets go of the file."""
        if self._grip is not None:
            self._grip.close()
            self._grip = None

    def _follow(self, found: os.stat_result, now_us: int, out: list[Piece]) -> None:
        """Reads on in the file at the path, when it is told what it is to the one that was read before."""
        old = self._grip
        if old is not None and not old.is_of(found):
            self._drain(old, out)
            if self.more:
                return
        fresh = old if old is not None and old.is_of(found) else Grip(self._path)
        try:
            size = fresh.size
            thorough = not self._proven or fresh.inode != self.mark.inode
            alike = likeness(fresh.fd, self.mark, size, thorough)
            if alike in (Likeness.SHORTER, Likeness.UNTOLD) and not self._settled(alike, size, now_us, out):
                return
            if self._told is not None:
                self._told = None
                out.append(TailResumed(self.source.relative, self.mark.generation, self.mark.offset))
            if alike is not Likeness.SAME:
                self._turn(old if old is not fresh else None, fresh, size, out)
            self._proven, self._odd_since_us, self._odd_size = True, None, -1
            if self._is_told(fresh, size):
                self._take(fresh, out)
        finally:
            self._keep_one(fresh)

    def _keep_one(self, fresh: Grip) -> None:
        """Keeps the file that is read now open, where it may be; the one before it while it is not told from it."""
        if self._odd_since_us is not None and self._grip is not None and self._grip is not fresh:
            fresh.close()
            return
        if self._grip is not fresh:
            self.close()
        self._grip = fresh
        if not fresh.keep():
            self.close()

    def _settled(self, alike: Likeness, size: int, now_us: int, out: list[Piece]) -> bool:
        """Whether a shorter file that begins alike, or is too short to tell, has stood long enough to be another one.
        A kilobyte that is the same is no other file, and an empty one is none yet."""
        if self._odd_since_us is None or self._odd_size != size:
            self._odd_since_us, self._odd_size = now_us, size
        if now_us - self._odd_since_us < SETTLE_US:
            return False
        if size and (alike is Likeness.UNTOLD or size < SAMPLE_BYTES):
            return True
        why = "holds less than was read of it before" if size else "is empty now"
        self._failed(Trouble.SHORTER, why, out)
        self._odd_since_us = None
        return False

    def _turn(self, old: Grip | None, fresh: Grip, size: int, out: list[Piece]) -> None:
        """Another content stands at the path."""
        before = self.mark
        last = self._torn(old) if old is not None else ([], before)
        out += last[0]
        how = How.ROTATED if fresh.inode != before.inode or fresh.device != before.device else How.TRUNCATED
        if how is How.TRUNCATED and size >= before.size and not 0 <= self._odd_size < before.size:
            how = How.REFILLED
        unread = max(0, before.size - last[1].offset)
        self.mark = last[1].next_generation()
        out.append(Rotated(self.source.relative, how, self.mark.generation, last[1].offset, last[1].line, unread))

    def _is_told(self, fresh: Grip, size: int) -> bool:
        """Whether it is told how far a content was read under another name. A shorter copy of it is waited for."""
        if self.mark.offset or not size or self._asked == self.mark.generation:
            return True
        self._asked = self.mark.generation
        found = self.elsewhere()
        if found is None:
            return True
        own = self.mark
        kept = {"generation": own.generation, "earlier": own.earlier, "least": own.least}
        at = {"inode": fresh.inode, "device": fresh.device, "size": size}
        self.mark, self._seen = msgspec.structs.replace(found, **kept, **at), None
        return likeness(fresh.fd, self.mark, size, thorough=True) is Likeness.SAME

    def _drain(self, old: Grip, out: list[Piece]) -> None:
        """Reads on in a file that no name leads to any more, unless it was truncated before."""
        if likeness(old.fd, self.mark, old.size, thorough=False) is Likeness.SAME:
            self._take(old, out)

    def _take(self, grip: Grip, out: list[Piece]) -> None:
        """Reads a block's worth behind the mark. Where the file was replaced this very moment, the next poll tells."""
        usual = self._block_bytes + SLACK_BYTES
        for most in (usual, usual + self._line_bytes):
            seen = grip.stretch(self.mark, most)
            if seen is None:
                self._seen = None
                return
            pieces, mark = given(self.source.relative, self.mark, seen, self._block_bytes, self._line_bytes)
            self.more = not seen.at_end
            if seen.at_end or mark.offset > self.mark.offset:
                break
        out += pieces
        self.mark = msgspec.structs.replace(mark, inode=grip.inode, device=grip.device, size=grip.size)

    def _torn(self, grip: Grip) -> tuple[list[Piece], Mark]:
        """The last line of a file that is read to its end, and the mark behind it."""
        seen = grip.whole_stretch(self.mark, self._line_bytes + 1)
        if seen is None:
            return [], self.mark
        pieces, mark = torn(self.source.relative, self.mark, seen, grip.size, self._line_bytes)
        return [*pieces], mark

    def _rest(self, now_us: int) -> None:
        """A quiet file need not be open."""
        if self._grip is None or self.grew_us is None or now_us - self.grew_us >= HOLD_US:
            self.close()
            self._attentive = False

    def _absent(self, error: Exception, now_us: int) -> list[Piece]:
        """There is nothing at the path, or no way to it. A file that never was there is no trouble."""
        out: list[Piece] = []
        self._seen, self.more = None, False
        try:
            if self._grip is not None:
                self._drain(self._grip, out)
        except OSError:
            self.close()
        if not isinstance(error, OSError) or error.errno not in _GONE:
            self._unreadable(error, out)
        elif self._known and not self.more and self._told is None:
            if self._odd_since_us is None or self._odd_size >= 0:
                self._odd_since_us, self._odd_size = now_us, -1
            if now_us - self._odd_since_us >= SETTLE_US:
                self._failed(Trouble.VANISHED, reason(error), out)
                self.close()
        return out

    def _unreadable(self, error: Exception, out: list[Piece]) -> None:
        """Tried again at each poll. A stale handle of NFS is told only where the path itself leads to none."""
        stale = isinstance(error, OSError) and error.errno == errno.ESTALE and self._grip is not None
        self.close()
        self._seen, self.more = None, False
        if not stale:
            self._failed(Trouble.UNREADABLE, reason(error), out)

    def _failed(self, trouble: Trouble, why: str, out: list[Piece]) -> None:
        if self._told != (trouble, why):
            self._told = (trouble, why)
            out.append(TailFailed(self.source.relative, trouble, why, self.mark.generation, self.mark.offset))

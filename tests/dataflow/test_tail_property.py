"""Whatever is done to a file between two polls: each generation's bytes are given once, in order, at their places."""

import os
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataflow.tail import HOLD_US, SETTLE_US
from dataflow.turns import Rotated
from extractors.record import Block
from tests.dataflow.tails import Followed, joined, replace

LINE_BYTES = 300
BLOCK_BYTES = 256
WORDS = st.lists(
    st.sampled_from([b"a", b"bar 1%\rbar 2%\r", b"word " * 9, b"\xff\x00", b"x" * 299, b"y" * 320]), max_size=9
)


class Log(RuleBasedStateMachine):
    """A log and its writers, and a tail that is polled and restarted at any time. `disk` is the model: the content of
    the file; `all_of` what each generation, as the tail counts them, held when it was last on the disk."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tail")
        self.path = Path(self.folder.name) / "a.log"
        self.followed = Followed(self.path, BLOCK_BYTES, LINE_BYTES)
        self.disk = b""
        self.number = 0
        self.all_of = {0: b""}
        self.turned = False

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.settle()
            self.followed.finish()
            self.check(final=True)
            self.folder.cleanup()

    def line(self, words: list[bytes]) -> bytes:
        self.number += 1
        return b"%06d %s" % (self.number, b"".join(words))

    def write(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)
        self.disk += content

    @rule(words=WORDS)
    def append_a_line(self, words: list[bytes]) -> None:
        self.write(self.line(words) + b"\n")

    @rule(words=WORDS)
    def append_a_torn_line(self, words: list[bytes]) -> None:
        self.write(self.line(words))

    @rule()
    def end_the_line(self) -> None:
        self.write(b"\n")

    @rule(count=st.integers(5, 120))
    def append_many(self, count: int) -> None:
        self.write(b"".join(self.line([b"many"]) + b"\n" for _ in range(count)))

    @rule()
    def rotate(self) -> None:
        """Rename and create, the first lines of the new file at once."""
        if self.path.exists():
            self.path.rename(self.path.with_suffix(".1"))
        self.begun_anew()

    @precondition(lambda self: self.path.exists())
    @rule()
    def copytruncate(self) -> None:
        os.truncate(self.path, 0)
        self.begun_anew()

    def begun_anew(self) -> None:
        self.disk = b""
        self.turned = True
        self.write(b"".join(self.line([b"begun anew"]) + b"\n" for _ in range(5)))

    @precondition(lambda self: self.path.exists())
    @rule(words=WORDS)
    def copy_longer(self, words: list[bytes]) -> None:
        self.disk += self.line(words) + b"\n"
        replace(self.path, self.disk)

    @precondition(lambda self: len(self.disk) > 200 and not self.turned)
    @rule(share=st.floats(0, 1))
    def see_a_copy_half_written(self, share: float) -> None:
        whole = self.disk
        self.path.write_bytes(whole[: int(len(whole) * share)])
        self.followed.poll()
        self.looked()
        self.path.write_bytes(whole)

    @precondition(lambda self: self.path.exists() and not self.turned)
    @rule()
    def vanish_for_a_while(self) -> None:
        self.path.unlink()
        self.settle()
        self.path.write_bytes(self.disk)

    @rule(after_us=st.sampled_from([0, 250_000, HOLD_US]))
    def poll(self, after_us: int) -> None:
        self.followed.poll(after_us=after_us)
        self.looked()

    @rule()
    def poll_once(self) -> None:
        self.followed.given += self.followed.tail.poll(self.followed.now_us)
        self.looked()

    @rule()
    def restart(self) -> None:
        self.followed.restart()

    def settle(self) -> None:
        self.followed.poll()
        self.followed.poll(after_us=SETTLE_US)
        self.looked()

    def looked(self) -> None:
        """After a poll the tail's generation is what lies on the disk, unless it waits to see what that is."""
        mark = self.followed.tail.mark
        generation = mark.generation
        if not mark.offset or self.disk.startswith(self.all_of.get(generation, b"")):
            self.all_of[generation] = self.disk if mark.offset else b""
            self.turned = False

    @invariant()
    def bytes_are_those_of_the_file(self) -> None:
        if hasattr(self, "folder"):
            self.check(final=False)

    def check(self, final: bool) -> None:
        given = joined(self.followed.given)
        generations = [piece.generation for piece in self.followed.given if isinstance(piece, Rotated)]
        assert generations == list(range(1, len(generations) + 1))
        for generation, content in given.items():
            assert cut(self.all_of[generation]).startswith(content) or content.startswith(cut(self.all_of[generation]))
        assert all(in_one_window(piece) for piece in self.followed.given if isinstance(piece, Block))
        if final and self.disk:
            assert given[self.followed.tail.mark.generation].rstrip(b"\n") == cut(self.disk).rstrip(b"\n")


def in_one_window(block: Block) -> bool:
    """Whether a block lies inside one of those that blocks.py cuts."""
    last_line = block.offset + block.data[:-1].rfind(b"\n") + 1
    return block.offset // BLOCK_BYTES == last_line // BLOCK_BYTES


def cut(content: bytes) -> bytes:
    """A file's bytes with dots for what is cut off its overlong lines."""
    lines = content.split(b"\n")
    return b"\n".join(line[:LINE_BYTES] + b"." * (len(line) - LINE_BYTES) for line in lines)


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

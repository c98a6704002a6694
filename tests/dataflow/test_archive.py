"""The members of an archive, as a stream that trusts nothing."""

import io
import tarfile
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.archive import Member, Passed, members
from dataflow.opened import Damage

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def archive(fill: Callable[[tarfile.TarFile], None], layout: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=layout) as tar:
        fill(tar)
    return packed.getvalue()


def files(contents: dict[str, bytes], layout: int = tarfile.PAX_FORMAT) -> bytes:
    def fill(tar: tarfile.TarFile) -> None:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mtime = 1.5
            tar.addfile(entry, io.BytesIO(content))

    return archive(fill, layout)


def odd(name: str, kind: bytes) -> bytes:
    """An archive with one member of this kind before a good file."""

    def fill(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "elsewhere"
        tar.addfile(entry)
        good = tarfile.TarInfo("good")
        good.size = 1
        tar.addfile(good, io.BytesIO(b"g"))

    return archive(fill)


def read(packed: bytes, size: int = 10_000, keep: Callable[[str], int] = lambda _: 1 << 30) -> list:
    stream: Iterator[bytes | Damage] = (packed[at : at + size] for at in range(0, len(packed), size))
    return list(members(stream, keep))


names = st.lists(st.text("abcé.-", min_size=1, max_size=90).filter(lambda part: part != ".."), min_size=1, max_size=3)


@given(
    st.dictionaries(names.map("/".join), st.binary(max_size=1500), max_size=5),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    st.integers(1, 3000),
)
def test_members_are_those_that_tarfile_wrote(contents: dict[str, bytes], layout: int, size: int) -> None:
    got = read(files(contents, layout), size)
    assert [(each.name, each.content, each.size) for each in got] == [(n, c, len(c)) for n, c in contents.items()]


@pytest.mark.parametrize("layout", FORMATS)
def test_a_long_path_is_whole_in_every_layout(layout: int) -> None:
    name = "d" * 90 + "/" + "f" * 90
    assert [each.name for each in read(files({name: b"x"}, layout))] == [name]


def test_no_more_than_asked_is_kept_and_the_true_size_said() -> None:
    got = read(files({"a": b"x" * 5000, "b": b"y", "c": b"z"}), keep=lambda name: {"a": 10, "b": 0}.get(name, -1))
    assert got == [Member("a", 5000, b"x" * 10), Member("b", 1, b"")]


@pytest.mark.parametrize("name", ["/etc/passwd", "a/../../b", ".."])
def test_a_path_that_leaves_is_passed_and_named(name: str) -> None:
    first, second = read(files({name: b"evil" * 400, "good": b"g"}))
    assert isinstance(first, Passed)
    assert (first.name, second.name) == (name, "good")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (b"Z", "unknown"),
    ],
)
def test_what_is_no_file_is_passed_and_named(kind: bytes, why: str) -> None:
    first, second = read(odd("odd", kind))
    assert (first.name, why in first.why, second.name) == ("odd", True, "good")


def test_folders_say_nothing() -> None:
    assert [each.name for each in read(odd("folder", tarfile.DIRTYPE))] == ["good"]


def test_a_torn_archive_keeps_the_members_before() -> None:
    whole = files({"a": b"x" * 600, "b": b"y" * 9000})
    *got, damage = read(whole[: len(whole) - 10_240 + 512 * 3], 700)
    assert [each.name for each in got] == ["a"]
    assert isinstance(damage, Damage)
    assert "torn" in damage.why


def test_a_damaged_header_is_not_taken_for_the_end() -> None:
    packed = bytearray(files({"a": b"x", "b": b"y"}, tarfile.USTAR_FORMAT))
    packed[1024] ^= 0xFF
    got, damage = read(bytes(packed))
    assert got == Member("a", 1, b"x")
    assert "header is damaged at byte 1536" in damage.why


def test_a_header_of_a_huge_claimed_size_is_not_read() -> None:
    def fill(tar: tarfile.TarFile) -> None:
        entry = tarfile.TarInfo("long")
        entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
        tar.fileobj.write(entry.tobuf(tarfile.GNU_FORMAT))

    (damage,) = read(archive(fill))
    assert "claims 1099511627776 bytes" in damage.why


def test_what_is_no_archive_says_so() -> None:
    assert [type(each) for each in read(b"plain text " * 100)] == [Damage]
    assert [type(each) for each in read(b"")] == [Damage]


def test_a_damage_of_the_stream_is_passed_on() -> None:
    whole = files({"a": b"x"})
    got = list(members(iter([whole[:600], Damage("gzip data damaged")]), lambda _: 10))
    assert next(each.why for each in got if isinstance(each, Damage)) == "gzip data damaged"
    ended = list(members(iter([whole, Damage("replaced")]), lambda _: 10))
    assert ended == [Member("a", 1, b"x"), Damage("replaced")]

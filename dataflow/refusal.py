"""Probes are read-only by construction: which commands are refused before anything is run, and why.

It guards against the mistake, not against malice: a command is refused for what its words say, also inside the text of
a shell, but nothing can tell what a script of an innocent name does. In doubt it refuses: a probe that is not run costs
a look, a job that is killed costs the job.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dataflow.refusal_words import (
    ANYWHERE,
    FIRST,
    HARMLESS_FLAGS,
    HARMLESS_NAMES,
    HARMLESS_PHRASES,
    READERS,
    TOOLS,
    VALUED_FLAGS,
    Tool,
)

DEEPEST = 6
"""Shells within shells that are looked into; a deeper one is refused."""

_DOES = {word: group.does for group in ANYWHERE for word in group.words}
_TOOLS = {name: tool for tool in TOOLS for name in tool.names}
_OPERATORS = ";|&()<>\n`"
_SEPARATORS = frozenset(_OPERATORS) | {"--"}
_TEXT = re.compile(r"[\s;|&$()`<>]")
_PIECES = re.compile(r"[\s=,:;|&(){}\[\]<>\"'`$!@*?]+")
_SCRIPT = re.compile(r".*\.(?:py|sh|bash|pl|rb|js|exe|bat)")
_OBJECT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")

Word = tuple[int, str]
"""A word with the place of its argument in the command."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a command is not run. index is the argument (from 0) in which the word stands, does what the word does."""

    index: int
    word: str
    does: str

    def __str__(self) -> str:
        return f"{self.word!r} {self.does}: it is refused, since a probe only looks at a job and never changes it"


def refusal_of(command: Sequence[str]) -> Refusal | None:
    """The first word of the command that would change something; None where it only looks."""
    return _refused(list(enumerate(command)), 0)


def _refused(words: list[Word], depth: int) -> Refusal | None:
    for part in _parts(words):
        if _program(part[0][1]) in READERS and not any("$(" in word or "`" in word for _, word in part):
            continue
        for found in _found(part, depth):
            return found
    return None


def _parts(words: list[Word]) -> Iterator[list[Word]]:
    """The commands in a row of words: a shell's operators and `--` begin another one."""
    part: list[Word] = []
    for index, word in words:
        if word and (word in _SEPARATORS or set(word) <= _SEPARATORS):
            if part:
                yield part
            part = []
        else:
            part.append((index, word))
    if part:
        yield part


def _found(part: list[Word], depth: int) -> Iterator[Refusal]:
    before = ""
    for at, (index, word) in enumerate(part):
        if _TEXT.search(word):
            yield from _inside(index, word, depth)
            continue
        does = _changes(word, before) or (_names_a_change(word) if at == 0 or _is_script(word, before) else "")
        if not does and at == 0 and _program(word) in FIRST.words:
            does = FIRST.does
        if does:
            yield Refusal(index, word, does)
        tool = _TOOLS.get(_program(word))
        if tool is not None:
            yield from _misused(tool, part[at + 1 :])
        before = word


def _inside(index: int, text: str, depth: int) -> Iterator[Refusal]:
    """A word that is a text of several: of a shell, an interpreter, a debugger, a query."""
    if depth >= DEEPEST:
        yield Refusal(index, text[:80], "is nested too deeply to be understood")
        return
    found = _refused([(index, word) for word in _tokens(text)], depth + 1)
    if found is not None:
        yield found


def _tokens(text: str) -> list[str]:
    """The words of a shell's text, unquoted; of what is none, its words however they are delimited."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = list(lexer)
    except ValueError:
        return _PIECES.sub(" ", text).split()
    return tokens if tokens != [text] else _PIECES.sub(" ", text).split()


def _changes(word: str, before: str) -> str:
    """What one of the word's own words does; a flag's name is taken apart, since its pieces are words too."""
    if (_program(before), word.lower()) in HARMLESS_PHRASES:
        return ""
    flag, _, value = word.partition("=") if word.startswith("-") else ("", "", word)
    pieces = [_program(piece) for piece in _PIECES.split(value)]
    if _OBJECT.fullmatch(word) and not _is_script(word, before):
        pieces.append(word.lower().rpartition(".")[2])
    name = flag.lstrip("-").lower()
    if name not in HARMLESS_FLAGS and not name.startswith("no-"):
        pieces += re.split(r"[-_.:]", name)
    return next((_DOES[piece] for piece in pieces if piece in _DOES), "")


def _names_a_change(word: str) -> str:
    """What a program or script does by its name: `kill_job.py`, `ops.stop_all`."""
    name = _program(word)
    if name in HARMLESS_NAMES:
        return ""
    return next((_DOES[piece] for piece in re.split(r"[-_.]", name) if piece in _DOES), "")


def _is_script(word: str, before: str) -> bool:
    return before == "-m" or _SCRIPT.fullmatch(word.lower()) is not None


def _program(word: str) -> str:
    """The name of a program, without its folder."""
    return word.rstrip("/").rpartition("/")[2].lower()


def _misused(tool: Tool, words: list[Word]) -> Iterator[Refusal]:
    """A use of a known tool that changes something."""
    verbs: list[Word] = []
    before = ""
    for index, word in words:
        if word.partition("=")[0] in tool.flags:
            yield Refusal(index, word, "changes a setting or sends something")
        if not word.startswith("-") and before not in VALUED_FLAGS:
            verbs.append((index, word))
        before = word
    for count in (1, 2):
        said = " ".join(word for _, word in verbs[:count]).lower()
        if said in tool.verbs:
            yield Refusal(verbs[count - 1][0], said, "is a sub-command that changes something")

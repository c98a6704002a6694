"""The prefixes that a raw line may wear, peeled in their order: transport, launcher, Ray tag, the speaker's own.

Iris `job logs` writes `[22:47:31] task=/alice/rl/0 | `, kubectl `2026-07-01T22:47:31.123456789Z `, srun `0: `,
torchrun `[rank7]: `, Ray's driver `(Actor pid=4242, ip=10.0.0.7) ` (a named actor's `(name Actor pid=4242) `), loguru,
vLLM, c10, Ray's C++ and python loggers, python's own (`ERROR:asyncio:`) and torch's (`E0314
09:12:00.310000 800 torch/distributed/run.py:792] `) theirs; what is rarer stands in `rare_layers`. Equal prefixes
repeat thousands of times, so each part is a dict look-up.
"""

import re
from typing import Any

import msgspec

from extractors.clocks import Clock, whole_days_us
from extractors.kernel import time_in_words
from extractors.quoting import without_ansi
from extractors.rare_layers import FOLLOWED, HUGGING_FACE, LABEL, LEVEL
from extractors.ray_lines import event_time
from extractors.record import Origin
from extractors.repeats import dedup
from extractors.tasks import task_and_attempt

CONTENT_LOGGERS = ("harbor.agents", "LiteLLM", "litellm")
"""Loggers whose messages are content (agents' words), never events."""

CACHE_LIMIT = 16_384
HEAD_LIMIT = 400
"""Characters in which a head that is looked up whole must end; longer ones are read part by part."""
TASK_LIMIT = 512
"""Characters of a line in which its task's path ends; what is longer is no path."""
TAG_LIMIT = 160
"""Characters of a line in which a tag or a short label ends."""
TAGS_LIMIT = 8
"""Ray tags that are peeled from one line; a driver that relays another's line wears two."""

_IRIS = re.compile(r"\[(\d\d:\d\d:\d\d)\] task=(\S{1,500})(?: attempt=(\d{1,9}))? \| ?")
_KUBECTL = re.compile(r"(?:\[pod/([^/\]]{1,253})/[^\]]{1,253}\] )?(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d+)Z )?")
_SRUN = re.compile(r" {0,4}\d{1,5}: ")
_TORCHRUN = re.compile(r"\[(?:rank|default)(\d{1,6})\]: ?")
_RAY_TAG = re.compile(
    r"\((?:(?P<bare>pid=\d{1,10})|(?:[\w.:/-]+ (?=[A-Z_]\w* pid=))?(?P<name>[\w.:/<>-]+(?: \+[\dhms]+)?)"
    r"(?: (?:rank=(?P<rank>\d{1,6}) )?pid=(?P<pid>\d{1,10}))?)"
    r"(?:, ip=(?P<ip>[\d.a-fA-F:]+))?\) ?"
)
_SYSTEM_TAGS = ("raylet", "gcs_server", "autoscaler")
_LOGURU = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[.,](\d{1,6}) \| ?(\w+) *\| ?([\w.<>]{0,200}):([\w.<>]{0,200}):(\d{1,9}) ?- ?"
)
_RAY_PYTHON = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\s+([A-Z]+)\s+([\w.]+:\d+) -- ")
_RAY_CPP = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) [DIWECF] (\d+) \d+\] (?:\((\w+)\) )?(?:([\w.]+:\d+): )?"
)
_VLLM = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d:\d\d:\d\d) \[?([\w./]+:\d+)\] ?")
_C10 = re.compile(r"\[([IWEF])(?:(\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.(\d+))? ([\w.]+:\d+)\] ")
_KLOG = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d+) \d+ ([\w./]+:\d+)\] ")
_PYTHON = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:,(\d{3}))?|([A-Za-z_][\w.]*)):"
)
_GROUP = re.compile(r"\[(?:PG (?:ID )?[^\]]*?)?Rank (\d{1,6})\] ")
_NCCL_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] (?=\S+:\d+:\d+ \[)")
_PLAIN = re.compile(r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?:Z|\+00:00)?\]?[ \t]")

_LOGGERS: dict[str, str] = {}
_PLAIN_LOGGERS: dict[str, bool] = {}
"""What speakers' prefixes without their clocks say, of all files: thousands of a job's files wear the same ones."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A physical line, unwrapped. logger is who the speaker's own prefix names (`core.py:1101`, a module path)."""

    text: str
    at_us: int | None
    transport_us: int | None
    origin: Origin
    logger: str
    repeated: int
    group: str


class Unwrapper:
    """Unwraps the lines of one file. base is what the file itself says of its lines' origin.

    heads holds the origins of Iris heads by their words without the clock, loggers who a speaker's own prefix names;
    plain are those prefixes whose messages are no content.
    """

    def __init__(self, clock: Clock, base: Origin) -> None:
        self.clock = clock
        self.base = base
        self._origins: dict[tuple[str, str], Origin] = {}
        self._tags: dict[str, tuple[str, int, str, int | None] | None] = {}
        self.heads: dict[str, Origin] = {}
        self.loggers = _LOGGERS
        self.plain = _PLAIN_LOGGERS

    def unwrap(self, raw: str) -> Line:
        """The line without its prefixes."""
        text = without_ansi(raw)
        transport_us, origin, text = self._head(text)
        own_us, logger, rank, group, text = self._speaker(text)
        if rank is not None and origin.rank != rank:
            origin = Origin(origin.task, origin.attempt, origin.actor, origin.pid, origin.host, rank)
        repeated = 1
        if text.endswith("]") or "(Ray deduplicates" in text:
            repeated, text = dedup(text)
        at_us = self.clock.settle(transport_us, own_us)
        if transport_us is not None and at_us is not None:
            transport_us += whole_days_us(at_us - transport_us)
        return Line(text, at_us, transport_us, origin, logger, repeated, group)

    def rebase(self, base: Origin) -> None:
        """The file says from here on that its lines come from somebody else (a reused Ray worker)."""
        self.base = base
        self._origins.clear()
        self.heads.clear()

    def _head(self, text: str) -> tuple[int | None, Origin, str]:
        """The transport's time, the origin, and the rest. All of a head but its time is looked up at once."""
        end = 0
        if text[9:16] == "] task=" and text[0] == "[":
            bar = text.find(" | ", 16, HEAD_LIMIT)
            close = text.find(") ", bar, bar + HEAD_LIMIT) if text[bar + 3 : bar + 4] == "(" else bar + 1
            end = close + 2 if bar > 0 and close > 0 and text[close + 2 : close + 3] != "(" else 0
            known = self.heads.get(text[9:end])
            if known is not None:
                return self.clock.time_of_day(text[1:9]), known, text[end:]
        transport_us, task, rest = self._transport(text)
        tag, rest = self._ray_tag(rest)
        origin = self._origin(task, tag)
        if end and len(rest) == len(text) - end:
            _remember(self.heads, text[9:end], origin)
        return transport_us, origin, rest

    def _transport(self, text: str) -> tuple[int | None, str, str]:
        if text.startswith("[") and text[9:16] == "] task=":
            end = text.find(" | ", 16, TASK_LIMIT)
            if end > 0:
                return self.clock.time_of_day(text[1:9]), text[16:end], text[end + 3 :]
            found = _IRIS.match(text)
            if found:
                return self.clock.time_of_day(found[1]), text[16 : found.end()].rstrip(" |"), text[found.end() :]
        first = text[:1]
        if (first == "[" and text.startswith("[pod/")) or (first == "2" and text[10:11] == "T"):
            found = _KUBECTL.match(text)
            if found and found.end():
                at_us = self.clock.full(found[2], found[3]) if found[2] else None
                return at_us, found[1] or "", text[found.end() :]
        if first.isdigit() or first == " ":
            found = _SRUN.match(text)
            if found:
                return None, "", text[found.end() :]
        if text.find("task=/", 0, HEAD_LIMIT) >= 0 and (found := FOLLOWED.match(text)):
            return None, found["task"], text[found.end() :]
        return None, "", text

    def _ray_tag(self, text: str) -> tuple[str, str]:
        tag = ""
        for _ in range(TAGS_LIMIT):
            if not text.startswith("("):
                break
            end = text.find(")", 0, TAG_LIMIT)
            if end < 0:
                return tag, text
            here = text[: end + 1]
            if self._read_tag(here) is None:
                return tag, text
            tag = tag or here
            text = text[end + 2 :] if text[end + 1 : end + 2] == " " else text[end + 1 :]
        return tag, text

    def _read_tag(self, tag: str) -> tuple[str, int, str, int | None] | None:
        if tag not in self._tags:
            if len(self._tags) >= CACHE_LIMIT:
                self._tags.clear()
            found = _RAY_TAG.fullmatch(tag)
            read = None
            if found and (found["bare"] or found["pid"] or found["ip"] or found["name"].startswith(_SYSTEM_TAGS)):
                pid = int(found["pid"] or (found["bare"] or "pid=0")[4:])
                rank = int(found["rank"]) if found["rank"] else None
                read = ((found["name"] or "").split(" ")[0], pid, found["ip"] or "", rank)
            self._tags[tag] = read
        return self._tags[tag]

    def _origin(self, task: str, tag: str) -> Origin:
        key = (task, tag)
        origin = self._origins.get(key)
        if origin is None:
            if len(self._origins) >= CACHE_LIMIT:
                self._origins.clear()
            path, attempt = task_and_attempt(task)
            actor, pid, host, rank = self._read_tag(tag) or (self.base.actor, self.base.pid, "", None)
            origin = self._origins[key] = Origin(
                path or self.base.task,
                attempt or self.base.attempt,
                actor,
                pid,
                host or self.base.host,
                rank if rank is not None else self.base.rank,
            )
        return origin

    def _speaker(self, text: str) -> tuple[int | None, str, int | None, str, str]:
        """(own time, logger, rank, process group, payload) after the speaker's own prefix."""
        first = text[:1]
        clock = self.clock
        if first == "2":
            at_us, end = clock.seconds.get(text[:19]), text.find(" - ", 23, HEAD_LIMIT) + 3
            logger = self.loggers.get(text[19:20] + text[23:end])
            if at_us is not None and logger is not None and text[20:23].isdecimal():
                return at_us + int(text[20:23]) * 1000, logger, None, "", text[end:]
            if found := _LOGURU.match(text):
                if found.end(2) == 23 and found.end() == end:
                    self._spoken(text[19:20] + text[23:end], found[4])
                return clock.full(found[1], found[2]), found[4], None, "", text[found.end() :]
            if found := _RAY_PYTHON.match(text):
                return clock.full(found[1], found[2]), found[4], None, "", text[found.end() :]
        elif first in "IWEDCF":
            at = text.find(" ") + 1
            end = text.find("] ", at + 15, HEAD_LIMIT) + 2
            at_us, logger = clock.days.get(text[at : at + 14]), self.loggers.get(text[:at] + text[at + 14 : end])
            if at_us is not None and logger is not None:
                return at_us, logger, None, "", text[end:]
            if found := _VLLM.match(text):
                if found.end() == end:
                    self._spoken(text[:at] + text[at + 14 : end], found[4])
                at_us = clock.month_day(int(found[1]), int(found[2]), found[3])
                return at_us, found[4], None, "", text[found.end() :]
            if found := _KLOG.match(text):
                at_us = clock.month_day(int(found[1]), int(found[2]), found[3], found[4])
                return at_us, found[5], None, "", text[found.end() :]
            if found := _PYTHON.match(text):
                return self._python(found, text)
        elif first == "[":
            return self._bracketed(text)
        elif first == "{":
            second, digits, epoch_us = event_time(text)
            return clock.full(second, digits) if second else epoch_us, "", None, "", text
        if first == "2" and (found := _PLAIN.match(text)):
            return self._plain(found, text, None)
        if first.isdigit() and (found := LEVEL.match(text)):
            return None, "", None, "", text[found.end() :]
        if text.find("] ", 20, TAG_LIMIT) > 0 and (found := LABEL.match(text)):
            return self._speaker(text[found.end() :])
        return None, "", None, "", text

    def _spoken(self, prefix: str, logger: str) -> None:
        """Remembers a speaker's prefix without its clock."""
        _remember(self.loggers, prefix, logger)
        if not logger.startswith(CONTENT_LOGGERS):
            _remember(self.plain, prefix, True)

    def _plain(self, found: re.Match[str], text: str, rank: int | None) -> tuple[int | None, str, int | None, str, str]:
        """A full clock alone, or before a level as python's logging has it."""
        at_us = self.clock.full(found[1].replace("T", " "), found[2] or "")
        level = LEVEL.match(text, found.end())
        return at_us, "", rank, "", text[level.end() if level else found.end() :]

    def _python(self, found: re.Match[str], text: str) -> tuple[int | None, str, int | None, str, str]:
        """Python's `LEVEL:name:message` or `LEVEL:time:message`. Only a message's first line wears it, so that the
        logger is told only where it decides whether the line is read at all."""
        at_us = self.clock.full(found[1], found[2] or "") if found[1] else None
        name = found[3] or ""
        return at_us, name if name.startswith(CONTENT_LOGGERS) else "", None, "", text[found.end() :]

    def _bracketed(self, text: str) -> tuple[int | None, str, int | None, str, str]:
        clock = self.clock
        rank: int | None = None
        if found := _TORCHRUN.match(text):
            rank, text = int(found[1]), text[found.end() :]
            if text[:1] != "[":
                own_us, logger, _, group, text = self._speaker(text)
                return own_us, logger, rank, group, text
        if found := _C10.match(text):
            at_us = clock.month_day(int(found[2]), int(found[3]), found[4], found[5]) if found[2] else None
            logger, text = f"c10.{found[1]}.{found[6]}", text[found.end() :]
            group = ""
            if found := _GROUP.match(text):
                rank = rank if rank is not None else int(found[1])
                group, text = found[0], text[found.end() :]
            return at_us, logger, rank, group, text
        if found := _RAY_CPP.match(text):
            return clock.full(found[1], found[2]), found[5] or "ray", rank, "", text[found.end() :]
        if found := _NCCL_STAMP.match(text):
            return clock.full(found[1]), "", rank, "", text[found.end() :]
        if found := _PLAIN.match(text):
            return self._plain(found, text, rank)
        if second := time_in_words(text):
            return clock.full(second), "", rank, "", text
        if found := HUGGING_FACE.match(text):
            return clock.full(found[2], found[3]), found[1], rank, "", text[found.end() :]
        if found := LEVEL.match(text):
            return None, "", rank, "", text[found.end() :]
        return None, "", rank, "", text


def _remember(known: dict[str, Any], key: str, value: Any) -> None:
    if len(known) >= CACHE_LIMIT:
        known.clear()
    known[key] = value

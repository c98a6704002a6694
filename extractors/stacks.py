"""What `py-spy dump` says (0.4.x), as text or `--json`, else faulthandler's file.

Serves gate A rules 5–6 and gate B (STARVED, ENGINE_LOST). The informative thread is the active one: a MainThread idling
in Ray's main_loop is normal.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import structs

from extractors.polls import PollRecord, Said, StacksPolled, Thread, failed, line_with, unusable
from extractors.stack_files import read_faulthandler

_PROCESS = re.compile(r"^Process (?P<pid>\d{1,10}): ?(?P<title>.*)$")
_THREAD = re.compile(r"^Thread (?P<id>0x[0-9A-Fa-f]+|\d+)(?:/\S+)?(?: \((?P<status>[^)]*)\))?(?:: \"(?P<name>.*)\")?$")
_FRAME = re.compile(r"^ {4}(?P<frame>\S.* \(.+\))$")
_ASKED = re.compile(r"(?:--pid|-p)[= ](?P<pid>\d{1,10})")
_REFUSED = ("Error: ", "Permission Denied")
UNNAMED = "thread"
FRAMES_LIMIT = 64
THREADS_LIMIT = 256


def read_stacks(record: PollRecord) -> tuple[Said, ...]:
    """A dump of each process in the output. A dump without a thread, or a refusal, is a failure."""
    if record.error:
        return (unusable(record, "a stack dump"),)
    dumps = _read_json(record) if record.stdout.lstrip().startswith("[") else _read_text(record)
    lines = record.stderr.splitlines() + record.stdout.splitlines()
    refused = next((line for line in lines if line.startswith(_REFUSED)), "")
    if refused:
        return (failed(record, refused.strip()[:300], refused), *dumps)
    return dumps or _read_faulthandler(record) or (unusable(record, "a stack dump"),)


def _read_text(record: PollRecord) -> tuple[Said, ...]:
    """`Process …`, then threads with their frames indented by four; locals are indented deeper and are not frames."""
    dumps: list[tuple[int, str, list[Thread], str]] = []
    frames: list[str] = []
    for line in record.stdout.splitlines():
        process, head, frame = _PROCESS.match(line), _THREAD.match(line), _FRAME.match(line)
        if process is not None:
            dumps.append((int(process["pid"]), process["title"].strip(), [], line))
        elif head is not None:
            if not dumps:
                dumps.append((_asked_pid(record), "", [], line))
            frames = []
            dumps[-1][2].append(Thread(head["name"] or f"{UNNAMED} {head['id']}", head["status"] or "", ()))
        elif frame is not None and dumps and dumps[-1][2] and len(frames) < FRAMES_LIMIT:
            frames.append(frame["frame"])
            dumps[-1][2][-1] = structs.replace(dumps[-1][2][-1], frames=tuple(frames))
    return tuple(_dump(record, *dump) for dump in dumps if dump[2])


def _read_faulthandler(record: PollRecord) -> tuple[Said, ...]:
    """Python's own dump of one process, as `cat` shows its file."""
    threads = list(read_faulthandler(record.stdout))
    if not threads:
        return ()
    function, _, place = threads[-1].frames[0].rpartition(" (")
    number = place.rstrip(")").rpartition(":")[2]
    line = line_with(record.stdout, f"line {number} in {function}")
    return (Said(StacksPolled(record.target, _asked_pid(record), "", tuple(threads[:THREADS_LIMIT])), line),)


def _read_json(record: PollRecord) -> tuple[Said, ...]:
    """`--json`: an array of threads; each names its process."""
    try:
        found = orjson.loads(record.stdout)
    except orjson.JSONDecodeError as error:
        return (failed(record, f"the JSON is damaged: {error}"),)
    threads: dict[int, list[Thread]] = {}
    titles: dict[int, str] = {}
    for entry in found if isinstance(found, list) else []:
        thread = _thread(entry) if isinstance(entry, dict) else None
        if thread is None:
            return (failed(record, "an entry of the JSON holds no list of frames (the key frames)"),)
        info = entry.get("process_info")
        pid = entry.get("pid")
        pid = pid if isinstance(pid, int) else _asked_pid(record)
        threads.setdefault(pid, []).append(thread)
        titles[pid] = str(info.get("command_line") or "") if isinstance(info, dict) else titles.get(pid, "")
    return tuple(_dump(record, pid, titles[pid], threads[pid], "") for pid in threads)


def _thread(entry: Mapping[str, Any]) -> Thread | None:
    frames = entry.get("frames")
    if not isinstance(frames, list):
        return None
    status = "active" if entry.get("active") else "idle"
    if entry.get("owns_gil"):
        status += "+gil"
    name = str(entry.get("thread_name") or f"{UNNAMED} {entry.get('os_thread_id') or entry.get('thread_id') or '?'}")
    return Thread(name, status, tuple(_frame(frame) for frame in frames[:FRAMES_LIMIT] if isinstance(frame, dict)))


def _frame(frame: Mapping[str, Any]) -> str:
    """A frame in the text form. A native frame has no line."""
    file = frame.get("short_filename") or frame.get("filename") or frame.get("module") or "?"
    line = frame.get("line")
    return f"{frame.get('name') or '?'} ({file}:{line})" if line else f"{frame.get('name') or '?'} ({file})"


def _dump(record: PollRecord, pid: int, title: str, threads: list[Thread], header: str) -> Said:
    line, read = _telling_line(record.stdout, threads, header)
    return Said(StacksPolled(record.target, pid, title, tuple(threads[:THREADS_LIMIT])), line, read)


def _telling_line(text: str, threads: list[Thread], header: str) -> tuple[str, str]:
    """The innermost frame of the active thread, else the dump's header, as the output has it."""
    for thread in sorted(
        threads, key=lambda thread: (not thread.status.startswith("active"), thread.name == "MainThread")
    ):
        if not thread.frames:
            continue
        name = thread.frames[0].rpartition(" (")[0]
        for piece in (thread.frames[0], f'"name": "{name}"', f'"name":"{name}"'):
            at = text.find(piece, max(text.find(header), 0) if header else 0)
            if at >= 0:
                start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
                return text[start : end if end >= 0 else len(text)], piece
    return header, ""


def _asked_pid(record: PollRecord) -> int:
    """The pid that the command asked for; 0 where it names none."""
    asked = _ASKED.search(" ".join(record.command))
    return int(asked["pid"]) if asked else 0

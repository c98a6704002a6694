"""`wedgewatch consume`: an example of a supervisor. It follows the verdict topic and prints; it never acts."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dataflow.envelope import Poison, unwrapped
from dataflow.kafka import Topic, Trouble
from dataflow.kafka_follower import Follower, Heard, Position
from dataflow.kafka_settings import Brokers
from dataflow.known_ids import KnownIds
from dataflow.outcome import Outcome, SettingsError
from dataflow.sinks import Sink

Record = dict[str, Any]

TURN_SECONDS = 0.5


@dataclass(slots=True)
class Kills:
    """Jobs whose newest verdict is KILL, and whether one turned to it."""

    verdicts: dict[str, str]
    turned: str = ""

    def hear(self, record: Record) -> None:
        """Takes a record."""
        if record["kind"] != "verdict":
            return
        job, says = record["job"], record["verdict"]
        if says == "KILL" and self.verdicts.get(job) != "KILL":
            self.turned = self.turned or job
        self.verdicts[job] = says


class Places:
    """A file in which it stands how far one has read. Raises SettingsError where it holds something else, OSError where
    it can't be read or written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[Position, ...]:
        """The positions; none where there is no file."""
        with suppress(FileNotFoundError):
            try:
                return msgspec.json.decode(self._path.read_bytes(), type=tuple[Position, ...])
            except msgspec.MsgspecError as error:
                raise SettingsError(f"{self._path}: holds no positions of `consume`: {error}") from error
        return ()

    def write(self, positions: tuple[Position, ...]) -> None:
        """Replaces them in one step."""
        new = self._path.with_name(f"{self._path.name}.new")
        new.write_bytes(msgspec.json.encode(positions) + b"\n")
        new.replace(self._path)


class Supervisor:
    """Hears the topic and gives each record on once. tell gets what people should know: poison, what was lost, and when
    trouble begins, changes and ends."""

    def __init__(self, brokers: Brokers, follower: Follower, sink: Sink, tell: Callable[[str], None]) -> None:
        self.kills = Kills({})
        self._brokers = brokers
        self._follower = follower
        self._sink = sink
        self._tell = tell
        self._seen = KnownIds()
        self._told = ""

    def turn(self) -> Heard:
        """One look. Raises what the sink raises."""
        heard = self._follower.poll(TURN_SECONDS)
        self._tell_of(heard)
        for message in heard.messages:
            record = unwrapped(message.value)
            if isinstance(record, Poison):
                self._tell(f"{message.place}: {record.why}; it is passed over: {record.quote}")
            elif record["id"] not in self._seen:
                self._sink.write(record)
                self._seen.add(record["id"])
                self.kills.hear(record)
        return heard

    def _back(self) -> str:
        return f"{self._brokers.name}: heard again"

    def _tell_of(self, heard: Heard) -> None:
        for note in heard.notes:
            self._tell(note)
        said = "" if heard.trouble is None else str(heard.trouble)
        if said == self._told:
            return
        self._tell(f"{said}; it is tried again, and nothing is heard until then" if said else self._back())
        self._told = said


def consume(
    brokers: Brokers,
    sink: Sink,
    outcome: Outcome,
    tell: Callable[[str], None],
    from_beginning: bool,
    exit_on_kill: bool,
    places: Places | None,
) -> str:
    """Follows until the run is halted, or a job turned KILL where that is asked for: that job, or "". Raises OSError:
    BrokerError where the brokers refuse this consumer at once, or what the sink or the places say."""
    kept = places.read() if places is not None else ()
    follower = Follower(brokers, (Topic.VERDICTS.under(brokers.prefix),), kept, from_end=not from_beginning)
    supervisor = Supervisor(brokers, follower, sink, tell)
    was_heard = False
    try:
        while not outcome.halted:
            heard = supervisor.turn()
            if not was_heard and heard.trouble is not None and heard.trouble.trouble is Trouble.DENIED:
                raise heard.trouble
            was_heard = was_heard or heard.trouble is None
            if places is not None and follower.positions != kept:
                kept = follower.positions
                places.write(kept)
            if exit_on_kill and supervisor.kills.turned:
                return supervisor.kills.turned
    finally:
        follower.close()
    return ""

"""The time formats of the speakers, from seconds after the run's start."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """Turns seconds since `start` (aware, UTC) into each speaker's own way of writing a time."""

    start: datetime

    def moment(self, at: float) -> datetime:
        """The wall time of a moment of the run."""
        return self.start + timedelta(milliseconds=round(at * 1000))

    def iris(self, at: float) -> str:
        """`[22:47:31]`: UTC, no date."""
        return self.moment(at).strftime("[%H:%M:%S]")

    def hour(self, at: float) -> str:
        """`22:47:31`, as the fd monitor writes it."""
        return self.moment(at).strftime("%H:%M:%S")

    def loguru(self, at: float) -> str:
        """`2026-03-14 22:47:31.123`: node time, no zone."""
        return self.moment(at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    def ray(self, at: float) -> str:
        """`2026-03-14 22:47:31,123`, of Ray's own loggers."""
        return self.loguru(at).replace(".", ",")

    def vllm(self, at: float) -> str:
        """`03-14 22:47:31`: no year."""
        return self.moment(at).strftime("%m-%d %H:%M:%S")

    def c10(self, severity: str, at: float) -> str:
        """`E314 22:47:31.123000417`: unpadded month, nanoseconds."""
        moment = self.moment(at)
        return f"{severity}{moment.month}{moment.day:02d} {moment.strftime('%H:%M:%S.%f')}417"

    def nccl(self, at: float) -> str:
        """`[2026-03-14 22:47:31]`, before a NCCL WARN."""
        return self.moment(at).strftime("[%Y-%m-%d %H:%M:%S]")

    def iso(self, at: float) -> str:
        """`2026-03-14T22:47:31.123Z`, of polls."""
        return self.moment(at).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    def iso_us(self, at: float) -> str:
        """`2026-03-14T22:47:31.123000Z`, of Harbor's results."""
        return self.moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def epoch(self, at: float) -> int:
        """Whole seconds since 1970."""
        return int(self.moment(at).timestamp())

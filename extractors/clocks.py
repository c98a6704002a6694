"""The time formats of the speakers, to microseconds UTC: full, year-less and date-less clocks, and inheritance.

A node's local time is taken for UTC unless the transport's own prefix, which is UTC, says otherwise.
"""

from datetime import UTC, datetime

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
HALF_DAY_US = DAY_US // 2
OTHER_ZONE_US = 600 * SECOND_US
"""A payload clock this far from the transport's clock is in another time zone, or wrong."""
CACHE_LIMIT = 65_536


def parse_iso(text: str) -> int | None:
    """Microseconds of an ISO 8601 time (`Z`, an offset, or naive taken as UTC), None where it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * SECOND_US + moment.microsecond


def fraction_us(digits: str) -> int:
    """The digits after a decimal point as microseconds."""
    return int(digits[:6].ljust(6, "0")) if digits else 0


def write_iso(at_us: int) -> str:
    """RFC 3339 UTC with milliseconds."""
    moment = datetime.fromtimestamp(at_us // SECOND_US, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_us % SECOND_US // 1000:03d}Z"


class Clock:
    """The clock of one file. anchor_us is a moment near the file's first line, by which absent dates are guessed.

    Remembers the newest time it gave out, so that lines without one inherit it.
    """

    def __init__(self, anchor_us: int) -> None:
        self.anchor_us = anchor_us
        self.newest_us: int | None = None
        self._transport_us: int | None = None
        self._seconds: dict[str, int] = {}

    def full(self, second: str, digits: str = "") -> int | None:
        """`2026-07-01 22:47:31` with the digits of its fraction."""
        at = self._seconds.get(second)
        if at is None:
            parsed = parse_iso(second)
            if parsed is None:
                return None
            at = self._keep(second, parsed)
        return at + fraction_us(digits)

    def month_day(self, month: int, day: int, time: str, digits: str = "") -> int | None:
        """A clock without a year: the year that brings it nearest to what the file has shown."""
        key = f"{month}-{day} {time}"
        at = self._seconds.get(key)
        if at is None:
            near = self.newest_us if self.newest_us is not None else self.anchor_us
            year = datetime.fromtimestamp(near // SECOND_US, UTC).year
            guesses = [parse_iso(f"{y:04d}-{month:02d}-{day:02d} {time}") for y in (year - 1, year, year + 1) if y > 0]
            known = [guess for guess in guesses if guess is not None]
            if not known:
                return None
            at = self._keep(key, min(known, key=lambda guess: abs(guess - near)))
        return at + fraction_us(digits)

    def time_of_day(self, time: str) -> int | None:
        """The transport's `22:47:31` without a date: nearest to the file's newest transport time, across midnight."""
        try:
            seconds = int(time[0:2]) * 3600 + int(time[3:5]) * 60 + int(time[6:8])
        except ValueError:
            return None
        near = self._transport_us if self._transport_us is not None else self.anchor_us
        at = near - near % DAY_US + seconds * SECOND_US
        if at - near > HALF_DAY_US:
            at -= DAY_US
        elif near - at > HALF_DAY_US:
            at += DAY_US
        if self._transport_us is None or at > self._transport_us:
            self._transport_us = at
        return at

    def settle(self, transport_us: int | None, own_us: int | None) -> int | None:
        """A line's own time, from its transport's and its payload's clocks; None where it has neither.

        A payload date that is whole days off the transport's guess corrects the guess.
        """
        if transport_us is None:
            settled = own_us
        elif own_us is None:
            settled = transport_us
        else:
            days = round((own_us - transport_us) / DAY_US)
            if days and abs(own_us - transport_us - days * DAY_US) < OTHER_ZONE_US:
                transport_us += days * DAY_US
                self._transport_us = transport_us
            settled = own_us if abs(own_us - transport_us) < OTHER_ZONE_US else transport_us
        if settled is not None:
            self.newest_us = settled
        return settled

    def _keep(self, key: str, at_us: int) -> int:
        if len(self._seconds) >= CACHE_LIMIT:
            self._seconds.clear()
        self._seconds[key] = at_us
        return at_us

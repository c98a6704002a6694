"""The time formats of the speakers, to microseconds UTC: full, year-less and date-less clocks, and inheritance.

A node's local time is taken for UTC unless the transport's own prefix, which is UTC, says otherwise.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
DAY_US = 24 * HOUR_US
HALF_DAY_US = DAY_US // 2
OTHER_ZONE_US = 600 * SECOND_US
"""A payload clock this far from the transport's clock is in another time zone, or wrong."""
MONTH_US = 31 * DAY_US
"""A payload date this far from the transport's needs a second line that says the same: no job is silent for so long."""
LATEST_US = 4_102_444_800 * SECOND_US
"""2100: clocks before 1970 or after this are broken, and no time is read from them."""
CACHE_LIMIT = 65_536
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SECONDS: dict[str, int] = {}
"""Written dates and times of all files: thousands of a job's files tell the same seconds."""
_MINUTE = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]):")
_SECONDS_US = {f"{second:02d}": second * SECOND_US for second in range(61)}
"""A leap second is the sixtieth."""
UNDOUBTED_US = 150 * DAY_US
"""A date without a year that is so near is nearer than in any other year."""


@lru_cache(maxsize=CACHE_LIMIT)
def parse_iso(text: str) -> int | None:
    """Microseconds of an ISO 8601 time (`Z`, an offset, or naive taken as UTC), None where it is none, or one outside
    of 1970–2100."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at_us = int(moment.timestamp()) * SECOND_US + moment.microsecond
    return at_us if 0 <= at_us < LATEST_US else None


@lru_cache(maxsize=CACHE_LIMIT)
def _day_us(date: str) -> int | None:
    """Midnight of a `2026-07-01`."""
    return parse_iso(f"{date} 00:00:00") if _DATE.fullmatch(date) else None


@lru_cache(maxsize=DAY_US // SECOND_US // 60)
def _minute_us(minute: str) -> int | None:
    """How far into the day a `22:47:` is."""
    found = _MINUTE.fullmatch(minute)
    return None if found is None else (int(found[1]) * 60 + int(found[2])) * 60 * SECOND_US


def _into_the_day_us(time: str) -> int | None:
    """How far into the day a `22:47:31` is."""
    minute_us, second_us = _minute_us(time[:6]), _SECONDS_US.get(time[6:])
    return None if minute_us is None or second_us is None else minute_us + second_us


@lru_cache(maxsize=64)
def _year_of(day: int) -> int:
    """The year of a day since the epoch."""
    return datetime.fromtimestamp(day * DAY_US // SECOND_US, UTC).year


def _nearest_day_us(date: str, into_us: int, near_us: int) -> int | None:
    """The `07-01` of that year in which a moment so far into it is the nearest; None where it is in no year."""
    year = _year_of(near_us // DAY_US)
    days = [_day_us(f"{y:04d}-{date}") for y in (year - 1, year, year + 1) if y > 0]
    return min((day for day in days if day is not None), key=lambda day: abs(day + into_us - near_us), default=None)


def _moment_us(date: str, time: str) -> int | None:
    """A written second. Equal dates and times repeat, so that their parts are looked up."""
    day_us, into_us = _day_us(date), _into_the_day_us(time)
    return None if day_us is None or into_us is None else day_us + into_us


def fraction_us(digits: str) -> int:
    """The digits after a decimal point as microseconds."""
    return int(digits[:6].ljust(6, "0")) if digits else 0


def write_iso(at_us: int) -> str:
    """RFC 3339 UTC with milliseconds; a moment out of 1970–2100 (a deadline that lies far) as the nearest in it."""
    at_us = max(0, min(at_us, LATEST_US))
    moment = datetime.fromtimestamp(at_us // SECOND_US, UTC)
    return f"{moment.isoformat()[:19]}.{at_us % SECOND_US // 1000:03d}Z"


def whole_days_us(apart_us: int) -> int:
    """The whole days that stand between two clocks, one of which guessed its date."""
    return round(apart_us / DAY_US) * DAY_US


_LOOKED_UP = ("seconds", "days", "_dates")


class Clock:
    """The clock of one file. anchor_us is a moment near the file's first line, by which absent dates are guessed;
    ahead_us is how far the file's own clock is known to run ahead, and is taken off.

    Remembers the newest time it gave out, so that lines without one inherit it; seconds are the written seconds with a
    date that were read before, in any file, days those without a year, whose meaning is this file's own, as that of
    their dates is.
    """

    def __init__(self, anchor_us: int, ahead_us: int = 0) -> None:
        self.anchor_us = anchor_us
        self.ahead_us = ahead_us
        self.newest_us: int | None = None
        self.seconds = _SECONDS
        self.days: dict[str, int] = {}
        self._dates: dict[tuple[int, int], int] = {}
        self._transport_us: int | None = None
        self._said, self._said_us = "", 0
        self._dated = anchor_us > 0
        self._doubted_days = 0

    def __getstate__(self) -> dict[str, object]:
        """What the file has shown, without what was looked up."""
        return {name: value for name, value in self.__dict__.items() if name not in _LOOKED_UP}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.seconds, self.days, self._dates = _SECONDS, {}, {}

    def full(self, second: str, digits: str = "") -> int | None:
        """`2026-07-01 22:47:31` with the digits of its fraction."""
        at = self.seconds.get(second)
        if at is None:
            at = _moment_us(second[:10], second[11:]) if second[10:11] in (" ", "T") else None
            if at is not None and second[10] == " ":
                _keep(self.seconds, second, at)
            elif at is None and (at := parse_iso(second)) is None:
                return None
        return at + fraction_us(digits)

    def month_day(self, month: int, day: int, time: str, digits: str = "") -> int | None:
        """A clock without a year: the year that brings it nearest to what the file has shown. Where nothing has shown
        one it is 1970: never before the epoch, by which the job's end would lie after its last line."""
        key = f"{month:02d}-{day:02d} {time}"
        at = self.days.get(key)
        if at is None:
            into_us, near = _into_the_day_us(time), self.newest_us if self.newest_us is not None else self.anchor_us
            if into_us is None:
                return None
            day_us = self._dates.get((month, day))
            if day_us is None or not -UNDOUBTED_US < day_us - near < UNDOUBTED_US:
                day_us = _nearest_day_us(key[:5], into_us, near)
                if day_us is None:
                    return None
                self._dates[month, day] = day_us
            at = day_us + into_us
            _keep(self.days, key, at)
        return at + fraction_us(digits)

    def time_of_day(self, time: str) -> int | None:
        """The transport's `22:47:31` without a date: nearest to the file's newest transport time, across midnight."""
        if time == self._said:
            return self._said_us
        into_us = _into_the_day_us(time)
        if into_us is None:
            return None
        near = self._transport_us if self._transport_us is not None else self.anchor_us
        at = near - near % DAY_US + into_us
        if at - near > HALF_DAY_US and at >= DAY_US:
            at -= DAY_US
        elif near - at > HALF_DAY_US:
            at += DAY_US
        if self._transport_us is None or at > self._transport_us:
            self._transport_us = at
        self._said, self._said_us = time, at
        return at

    def settle(self, transport_us: int | None, own_us: int | None) -> int | None:
        """A line's own time, from its transport's and its payload's clocks; None where it has neither.

        A payload date that is whole days off the transport's guess corrects the guess; over a month only with a second
        line, lest one broken date move all that follow.
        """
        if transport_us is None:
            settled = None if own_us is None else own_us - self.ahead_us
        elif own_us is None:
            settled = transport_us
        elif -OTHER_ZONE_US < own_us - transport_us < OTHER_ZONE_US:
            settled = own_us
            self._dated, self._doubted_days = True, 0
        else:
            settled = self._corrected(transport_us, own_us)
        if settled is not None:
            self.newest_us = settled
        return settled

    def _corrected(self, transport_us: int, own_us: int) -> int:
        """What two clocks that are far apart come to."""
        days = round((own_us - transport_us) / DAY_US)
        whole = bool(days) and abs(own_us - transport_us - days * DAY_US) < OTHER_ZONE_US
        if whole and self._dated and days != self._doubted_days and abs(days) * DAY_US >= MONTH_US:
            self._doubted_days = days
            return transport_us
        self._dated, self._doubted_days = True, 0
        if not whole:
            return transport_us
        self._transport_us = transport_us + days * DAY_US
        self._said = ""
        return own_us


def _keep(known: dict[str, int], written: str, at_us: int) -> None:
    if len(known) >= CACHE_LIMIT:
        known.clear()
    known[written] = at_us

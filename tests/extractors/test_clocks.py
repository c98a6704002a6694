"""Clocks without a date or a year, and how a line's two clocks are settled."""

from extractors.clocks import SECOND_US, Clock, parse_iso, write_iso

EVENING = parse_iso("2026-07-01T23:50:00Z") or 0


def test_a_time_of_day_crosses_midnight_into_the_next_day() -> None:
    clock = Clock(EVENING)
    assert write_iso(clock.time_of_day("23:59:58") or 0) == "2026-07-01T23:59:58.000Z"
    assert write_iso(clock.time_of_day("00:00:03") or 0) == "2026-07-02T00:00:03.000Z"


def test_a_late_line_from_before_midnight_stays_on_its_day() -> None:
    clock = Clock(EVENING)
    clock.time_of_day("00:00:03")
    assert write_iso(clock.time_of_day("23:59:59") or 0) == "2026-07-01T23:59:59.000Z"
    assert write_iso(clock.time_of_day("00:00:04") or 0) == "2026-07-02T00:00:04.000Z"


def test_an_anchor_after_midnight_puts_the_evening_on_the_day_before() -> None:
    clock = Clock(parse_iso("2026-07-02T00:05:00Z") or 0)
    assert write_iso(clock.time_of_day("23:58:00") or 0) == "2026-07-01T23:58:00.000Z"


def test_a_clock_without_a_year_takes_the_nearest_one_across_new_year() -> None:
    clock = Clock(parse_iso("2026-12-31T23:00:00Z") or 0)
    assert write_iso(clock.month_day(1, 1, "00:10:00", "25") or 0) == "2027-01-01T00:10:00.250Z"


def test_a_day_that_does_not_exist_gives_no_time() -> None:
    clock = Clock(parse_iso("2026-03-01T00:00:00Z") or 0)
    assert clock.month_day(2, 30, "10:00:00") is None
    assert clock.full("2026-02-30 10:00:00") is None


def test_a_payload_in_another_zone_gives_way_to_the_transport() -> None:
    clock = Clock(EVENING)
    transport = clock.time_of_day("23:55:00")
    own = clock.full("2026-07-01 16:55:00")
    assert clock.settle(transport, own) == transport


def test_a_payload_date_corrects_the_day_that_was_guessed() -> None:
    clock = Clock(EVENING)
    transport = clock.time_of_day("23:55:00")
    own = clock.full("2026-07-04 23:54:59", "500")
    assert clock.settle(transport, own) == own
    assert write_iso(clock.time_of_day("23:55:01") or 0) == "2026-07-04T23:55:01.000Z"


def test_fractions_of_any_length_are_microseconds() -> None:
    clock = Clock(EVENING)
    base = clock.full("2026-07-01 23:55:00") or 0
    assert clock.full("2026-07-01 23:55:00", "5") == base + SECOND_US // 2
    assert clock.full("2026-07-01 23:55:00", "123456789") == base + 123456


def test_a_clock_without_a_year_and_an_anchor_never_falls_before_the_epoch() -> None:
    assert write_iso(Clock(0).month_day(10, 24, "16:25:39") or 0) == "1970-10-24T16:25:39.000Z"
    assert write_iso(Clock(0).time_of_day("22:47:31") or 0) == "1970-01-01T22:47:31.000Z"


def test_times_outside_of_1970_to_2100_are_none() -> None:
    assert parse_iso("1969-12-31T23:59:59Z") is None
    assert parse_iso("0001-01-01T00:00:00+10:00") is None
    assert parse_iso("9999-12-31T23:59:59-10:00") is None
    assert write_iso(-1) == "1970-01-01T00:00:00.000Z"
    assert write_iso(10**20) == "2100-01-01T00:00:00.000Z"


def test_one_date_a_year_away_moves_the_transports_clock_only_with_a_second() -> None:
    clock = Clock(EVENING)
    near, far = clock.time_of_day("23:51:00"), clock.full("2027-07-01 23:51:00")
    assert clock.settle(near, far) == near
    assert write_iso(clock.time_of_day("23:52:00") or 0) == "2026-07-01T23:52:00.000Z"
    assert clock.settle(near, far) == far


def test_a_date_days_away_after_a_long_silence_is_believed_at_once() -> None:
    clock = Clock(EVENING)
    own = clock.full("2026-07-04 23:51:00")
    assert clock.settle(clock.time_of_day("23:51:00"), own) == own

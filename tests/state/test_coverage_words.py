"""What was read, as the record and the report tell it: bounded, with what is left out summed up and said."""

import orjson

from extractors.record import SourceEnded, SourceKind
from state.coverage_words import SOURCES_TOLD, coverage_line, coverage_record
from state.trackers.coverage import Reading, SourceCoverage
from tests.builders import case_after, reading, saw, started

MINUTE_US = 60_000_000
T0 = 1_784_534_400_000_000


def actor(lines: int = 10, begin: int = 0, **said: object) -> SourceCoverage:
    return SourceCoverage(
        SourceKind.ACTOR, Reading.READ, lines, T0 + begin * MINUTE_US, T0 + (begin + 5) * MINUTE_US, **said
    )


def many(count: int) -> dict[str, SourceCoverage]:
    return {f"ray_session_logs/rank0-node/worker-{n:04}.err": actor(begin=n % 50) for n in range(count)}


def test_few_sources_have_an_entry_each() -> None:
    assert list(coverage_record(many(SOURCES_TOLD)) or ()) == sorted(many(SOURCES_TOLD))


def test_many_sources_are_summed_up_by_folder_and_their_number_is_said() -> None:
    told = coverage_record({**many(900), "finelog.log": actor(7)}) or {}
    assert len(told) == SOURCES_TOLD + 1
    left_out = told["ray_session_logs/… (837 more files)"]
    assert left_out["lines"] == 8_370
    assert (left_out["from"], left_out["to"]) == ("2026-07-20T08:00:00.000Z", "2026-07-20T08:54:00.000Z")
    assert sum(entry["lines"] for entry in told.values()) == 9_007
    assert "finelog.log" in told


def test_source_with_something_amiss_keeps_its_entry() -> None:
    torn = "ray_session_logs/rank9-node/worker-9999.err"
    told = coverage_record({**many(900), torn: actor(complete=False, gaps=("head missing",), late=3, unparsed=2)}) or {}
    assert told[torn] == {
        "lines": 10,
        "from": "2026-07-20T08:00:00.000Z",
        "to": "2026-07-20T08:05:00.000Z",
        "complete": False,
        "gaps": ["head missing"],
        "late": 3,
        "unparsed": 2,
    }


def test_record_of_thousands_of_torn_files_stays_small() -> None:
    gaps = tuple(f"line {n} is {'x' * 500}" for n in range(64))
    torn = {f"slurm/{n}.out": actor(complete=False, gaps=gaps) for n in range(5_000)}
    assert len(orjson.dumps(coverage_record(torn))) < 80_000


def test_further_gaps_of_a_source_are_counted() -> None:
    told = coverage_record({"finelog.log": actor(gaps=tuple(f"gap {n}" for n in range(9)))}) or {}
    assert told["finelog.log"]["gaps"] == ["gap 0", "gap 1", "gap 2", "gap 3", "and 5 more gaps"]


def test_no_source_is_null() -> None:
    assert coverage_record({}) is None
    assert coverage_line(None) == "Read: nothing"


def test_file_that_is_still_read_counts_its_lines_so_far() -> None:
    seen = case_after(reading(), started(10, "step")).coverage.sources
    assert (coverage_record(seen) or {})["finelog.log"]["lines"] == seen["finelog.log"].newest.line


def test_line_of_the_report_tells_lines_times_and_what_is_not_whole() -> None:
    told = coverage_record({**many(900), "finelog.log": actor(1_000, complete=False, gaps=("head missing",), late=1)})
    assert coverage_line(told) == (
        "Read: 10,000 lines of 901 sources, 2026-07-20T08:00:00Z to 08:54:00Z; not whole: finelog.log (head missing); "
        "1 late line, 0 unparsed"
    )


def test_whole_sources_are_said_to_be_whole() -> None:
    ended = saw(9, SourceEnded(SourceKind.AGGREGATED, 900, 64_000, unparsed=2, complete=True))
    line = coverage_line(coverage_record(case_after(reading(), ended).coverage.sources))
    assert line == "Read: 900 lines of 1 source; each of them whole; 0 late lines, 2 unparsed"

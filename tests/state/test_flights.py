"""Who is missing in a collective, by dumps of the flight recorder."""

from extractors.flight_recorder import FlightAnalysed, FlightGroup, FlightRecorded
from tests.builders import case_after, saw, us

WORLD = (0, 1, 2, 3)


def waits(name, ranks, sequence, since, enqueued=None, local="7"):
    told = (local, enqueued or sequence, sequence, "nccl:all_to_all", us(since))
    return FlightGroup(name, f"{name} group", hash(ranks), *told)


def left(name, ranks, enqueued):
    """A group whose collectives are all over on this rank: its own number of it is on file, and how far it came."""
    return FlightGroup(name, f"{name} group", hash(ranks), "7", enqueued)


def dump(rank, *groups, status=None, newest=None):
    source = f"flight_recorder/rank_{rank}.json"
    recorded = FlightRecorded(rank, groups, status or {}, None if newest is None else us(newest))
    return saw(100, recorded, source=source, pattern="flight_recorder")


def absences(*observations):
    return case_after(*observations).flights.absences


def test_the_rank_that_never_entered_what_the_others_wait_in_is_missing():
    seen = absences(*(dump(rank, waits("ep", WORLD, 41, 5)) for rank in (0, 1, 2)), dump(3, left("ep", WORLD, 40)))
    assert [(each.missing, each.sequence, each.waiting) for each in seen] == [((3,), 41, (0, 1, 2))]
    assert seen[0].group == "ep group"


def test_a_rank_whose_dump_is_not_on_file_is_not_said_to_be_missing():
    assert absences(*(dump(rank, waits("ep", WORLD, 41, 5)) for rank in (0, 1, 2))) == ()


def test_a_rank_that_waits_in_nothing_is_judged_by_the_number_that_its_peers_give_the_group():
    silent = FlightGroup("ep", "ep group", hash(WORLD))
    others = [dump(rank, waits("ep", WORLD, 41, 5)) for rank in (0, 1, 2)]
    assert [each.missing for each in absences(*others, dump(3, silent, status={"7": 40}))] == [(3,)]
    assert absences(*others, dump(3, silent, status={"7": 41})) == ()
    assert absences(*others, dump(3, silent)) == ()


def test_a_rank_that_is_held_up_in_another_group_is_excused():
    pair, line = (0, 1), (1, 2)
    seen = absences(
        dump(0, waits("tp", pair, 9, 5)),
        dump(1, left("tp", pair, 8), waits("pp", line, 20, 1)),
        dump(2, left("pp", line, 19)),
    )
    assert [(each.missing, each.group) for each in seen] == [((2,), "pp group")]


def test_of_several_collectives_that_a_rank_did_not_enter_the_first_is_told():
    seen = absences(
        dump(0, waits("dp", (0, 1), 7, 30), waits("ep", (0, 1), 41, 5)),
        dump(1, left("dp", (0, 1), 6), left("ep", (0, 1), 40)),
    )
    assert [(each.missing, each.group) for each in seen] == [((1,), "ep group")]


def test_ranks_that_all_wait_in_the_same_collective_miss_nobody():
    assert absences(*(dump(rank, waits("ep", WORLD, 41, 5)) for rank in WORLD)) == ()


def test_report_of_an_analyser_is_put_together_from_its_lines():
    lines = (
        FlightAnalysed(412),
        FlightAnalysed(None, "7:mesh_fsdp", begins=False),
        FlightAnalysed(None, "", "nccl:all_reduce", begins=False),
        FlightAnalysed(None, "", "", (3,), begins=False),
    )
    (told,) = absences(*(saw(at, line) for at, line in enumerate(lines)))
    assert (told.missing, told.group, told.operation, told.sequence) == ((3,), "7:mesh_fsdp", "nccl:all_reduce", 412)


def test_a_dump_of_an_earlier_trouble_makes_its_rank_miss_nothing():
    waiting = [dump(rank, waits("ep", WORLD, 41, 9000)) for rank in (0, 1, 2)]
    assert absences(*waiting, dump(3, left("ep", WORLD, 40), newest=60)) == ()
    assert [each.missing for each in absences(*waiting, dump(3, left("ep", WORLD, 40), newest=8990))] == [(3,)]


def test_thousands_of_ranks_are_compared_in_no_time():
    world = tuple(range(4096))
    group = waits("world", world, 41, 5)
    seen = absences(
        *(dump(rank, group) for rank in world[:-2]), *(dump(rank, left("world", world, 40)) for rank in world[-2:])
    )
    assert [(each.missing, len(each.waiting)) for each in seen] == [((4094, 4095), 4094)]

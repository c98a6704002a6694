"""Communicators that were left half-built, and ranks behind."""

from extractors.nccl import CommClosed, CommCut, CommInit, CommTorn
from extractors.record import SourceKind
from extractors.trainer import ForwardEntered
from state.trackers.nccl import NcclTracker
from tests.builders import ACTOR_LOG, case_after, reading, saw

GROUP = "0x1f2e3d4c5b6a7988"


def init(at, rank, complete, ranks=4, source=ACTOR_LOG, repeated=1, group=GROUP):
    signal = CommInit(f"node-a:{100 + rank}", f"0x{rank}", group, rank, ranks, complete)
    return saw(at, signal, source=source, repeated=repeated)


def nccl(*observations):
    homes = (reading(), reading(SourceKind.ACTOR, ACTOR_LOG))
    return case_after(*homes, *observations).nccl


def test_complete_communicator_is_a_count():
    seen = nccl(*(init(1, rank, False) for rank in range(4)), *(init(2, rank, True) for rank in range(4)))
    assert (seen.communicators, seen.complete) == ((), 1)


def test_ranks_that_never_completed_and_never_began_are_named():
    seen = nccl(*(init(1, rank, False) for rank in range(3)), init(2, 0, True), init(2, 1, True))
    (built,) = seen.communicators
    assert (built.unfinished, built.absent) == ((2,), (3,))


def test_aggregated_log_alone_proves_no_absence():
    seen = nccl(init(1, 0, False, source="finelog.log"))
    (built,) = seen.communicators
    assert (built.unfinished, built.absent) == ((), ())


def test_deduplicated_copies_complete_a_communicator():
    seen = nccl(
        init(1, 0, False, source="finelog.log"),
        init(2, 0, True, source="finelog.log"),
        init(3, 3, True, source="finelog.log", repeated=3),
    )
    assert seen.complete == 1


def split(at, process, rank, complete, ranks=2, group="color 7 of child 1", comm="0xa", source=ACTOR_LOG):
    return saw(at, CommInit(f"node-a:{process}", comm, group, rank, ranks, complete), source=source)


def test_ranks_that_completed_without_a_commid_are_counted_and_nobody_is_missed():
    seen = nccl(*(init(1, rank, True, ranks=16, group="") for rank in (2, 4, 5, 8, 9, 12, 14, 15)))
    (built,) = seen.communicators
    assert (built.group, built.ranks, built.completed_count) == ("", 16, 8)
    assert (built.unfinished, built.absent) == ((), ())


def test_communicators_without_a_commid_are_whole_once_each_rank_has_completed_as_often():
    twice = [
        saw(at, CommInit(f"node-a:{r}", f"0x{at}", "", r, 4, True), source=ACTOR_LOG) for r in range(4) for at in (1, 2)
    ]
    assert (nccl(*twice).communicators, nccl(*twice).complete) == ((), 2)
    assert [built.completed_count for built in nccl(*twice[:-1]).communicators] == [3]


def test_single_rank_communicators_without_a_commid_are_each_complete():
    lines = [saw(at, CommInit("node-a:1", f"0x{at}", "", 0, 1, True), source=ACTOR_LOG) for at in (1, 2)]
    assert nccl(*lines).complete == 2


def test_echo_of_a_line_without_a_commid_in_the_aggregated_log_counts_no_second_time():
    own = [init(1, rank, True, group="") for rank in range(4)]
    echo = [init(2, rank, True, group="", source="finelog.log") for rank in range(3)]
    seen = nccl(*own, *echo)
    assert (seen.communicators, seen.complete) == ((), 1)


def test_ranks_of_a_split_without_a_commid_are_joined_across_processes():
    seen = nccl(split(1, 11, 0, False), split(1, 12, 1, False), split(2, 11, 0, True))
    (built,) = seen.communicators
    assert (built.unfinished, built.absent) == ((1,), ())
    assert (
        nccl(split(1, 11, 0, False), split(1, 12, 1, False), split(2, 11, 0, True), split(2, 12, 1, True)).complete == 1
    )


def test_missing_rank_of_a_split_is_named_where_one_communicator_alone_can_be_meant():
    (built,) = nccl(split(1, 11, 1, False, ranks=3), split(1, 12, 2, False, ranks=3)).communicators
    assert (built.unfinished, built.absent) == ((1, 2), (0,))
    two = nccl(split(1, 11, 1, False), split(1, 12, 1, False)).communicators
    assert [(built.unfinished, built.absent) for built in two] == [((1,), ()), ((1,), ())]


def test_torn_completion_makes_the_unfinished_ranks_unknown():
    began = [init(1, rank, False) for rank in range(4)]
    done = [init(2, rank, True) for rank in range(3)]
    assert nccl(*began, *done).communicators[0].unfinished == (3,)
    torn = saw(3, CommTorn(GROUP, True), source=ACTOR_LOG)
    assert nccl(*began, *done, torn).complete == 1
    (built,) = nccl(*began, *done[:2], torn).communicators
    assert (built.unfinished, built.torn) == ((), 1)


def test_torn_start_makes_the_absent_ranks_unknown():
    began = [init(1, rank, False) for rank in range(1, 3)]
    assert nccl(*began).communicators[0].absent == (0, 3)
    (built,) = nccl(saw(0, CommTorn(GROUP, False), source=ACTOR_LOG), *began).communicators
    assert (built.unfinished, built.absent) == ((1, 2), ())


def test_completion_whose_start_is_missing_proves_no_absence():
    (built,) = nccl(init(1, 1, True), init(1, 2, False)).communicators
    assert (built.started, built.unfinished, built.absent) == ((1, 2), (2,), ())


def test_only_rank_0_speaking_names_no_other_rank():
    (built,) = nccl(init(1, 0, False)).communicators
    assert (built.unfinished, built.absent) == ((0,), ())


def test_ranks_that_all_completed_prove_that_the_unheard_took_part():
    (built,) = nccl(init(1, 1, False), init(2, 1, True)).communicators
    assert (built.completed_count, built.unfinished, built.absent) == (1, (), ())


def test_line_of_a_complete_communicator_that_comes_again_opens_no_new_one():
    whole = [init(at, rank, at == 2) for at in (1, 2) for rank in range(4)]
    seen = nccl(*whole, init(3, 1, True, source="finelog.log"))
    assert (seen.communicators, seen.complete) == ((), 1)


def test_ten_thousand_ranks_fit_a_small_snapshot_before_and_after_they_complete():
    tracker = NcclTracker()
    for complete in (False, True):
        for number in range(4):
            for rank in range(10_000):
                tracker._init(init(1, rank, complete, ranks=10_000, group=f"0x{number}"))
        assert len(tracker.snapshot()) < 64 * 1024
    assert (tracker.view().complete, NcclTracker.restore(tracker.snapshot()).view().complete) == (4, 4)


def test_destroyed_split_is_forgotten():
    assert nccl(split(1, 11, 0, False), saw(2, CommClosed("node-a:11", "0xa", "destroy"))).communicators == ()


def test_destroyed_communicator_is_forgotten():
    seen = nccl(init(1, 0, False), saw(2, CommClosed("node-a:100", "0x0", "destroy")))
    assert seen.communicators == ()


def test_new_attempt_forgets_half_built_ones():
    assert nccl(init(1, 0, False), saw(900, ForwardEntered(0), attempt=1)).communicators == ()


def test_rank_without_its_forward_marker_is_behind():
    marks = [saw(at, ForwardEntered(rank)) for at in (10, 500) for rank in range(4) if (at, rank) != (500, 2)]
    assert nccl(*marks).behind == (2,)


def test_forward_that_just_begins_leaves_nobody_behind():
    marks = [saw(10, ForwardEntered(rank)) for rank in range(4)]
    assert nccl(*marks, saw(500, ForwardEntered(0))).behind == ()


def cut(at, rank, ranks=4, group=GROUP[:9]):
    return saw(at, CommCut(group, rank, ranks), source=ACTOR_LOG)


def test_a_rank_whose_line_is_cut_is_neither_absent_nor_unfinished():
    (built,) = nccl(*(init(1, rank, False) for rank in (0, 1)), cut(2, 2)).communicators
    assert (built.started, built.unfinished, built.absent, built.torn) == ((0, 1, 2), (0, 1), (), 1)


def test_the_cut_line_of_a_rank_that_began_leaves_open_whether_it_completed():
    (built,) = nccl(*(init(1, rank, False) for rank in range(4)), cut(2, 3), init(3, 0, True)).communicators
    assert (built.completed_count, built.unfinished) == (1, (1, 2))


def test_a_cut_line_of_another_communicator_hides_no_absent_rank():
    begun = [init(1, rank, False) for rank in (0, 1, 2)]
    for other in (cut(2, 3, ranks=8), cut(2, 3, group="0x99")):
        assert [built.absent for built in nccl(*begun, other).communicators] == [(3,)]

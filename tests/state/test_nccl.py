"""Communicators that were left half-built, and ranks behind."""

from extractors.nccl import CommClosed, CommInit
from extractors.record import SourceKind
from extractors.trainer import ForwardEntered
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


def test_line_without_a_group_is_not_joined():
    assert nccl(init(1, 0, False, group="")).communicators == ()


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

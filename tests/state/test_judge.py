"""When an answer is said: what waits, and whose time an answer bears that only time has changed."""

import msgspec

from extractors.polls import StatePolled
from extractors.record import Beat
from state.judge import TOGETHER_US, Judge
from state.policy import SECOND_US
from tests.builders import us
from tests.state.streams import STEP_US, beats, running, said


class Impatient(Judge):
    """Judges every beat by itself."""

    def _may_wait(self, beat: Beat) -> bool:
        return False


def test_an_answer_that_only_time_changes_bears_the_time_of_its_own_beat() -> None:
    stream = beats(*running(3 * 3600), until=3 * 3600)
    together, most = said(Judge(), stream)
    assert most == TOGETHER_US // STEP_US - 1
    assert together == said(Impatient(), stream)[0]
    assert len({record["at"] for record in together}) > 2


def test_the_next_verdict_says_that_the_flip_of_the_last_one_fired_and_the_one_after_does_not() -> None:
    late = [each for each in running(3600) if not isinstance(each.signal, StatePolled) or each.at_us >= us(1500)]
    records, _ = said(Judge(10 * 60 * SECOND_US), beats(*late, until=3600))
    verdicts = [each for each in records if each["kind"] == "verdict"]
    fired = [place for place, each in enumerate(verdicts) if "The flip signal of" in each["reasoning"]]
    assert fired == [2]
    assert [each["at"][11:19] for each in verdicts[:4]] == ["08:10:10", "08:20:10", "08:25:10", "08:35:10"]
    assert verdicts[1]["flip_signal"]["signal"] == "evidence_arrived"
    words = "The flip signal of 08:20:10Z (evidence_arrived) fired at 08:25:10Z: gate A misses it no more."
    assert words in verdicts[2]["reasoning"]


def test_a_judge_that_comes_back_from_a_snapshot_still_watches() -> None:
    judge, stream = Judge(), beats(*running(3600), until=3600)
    said(judge, stream[:90])
    restored = msgspec.msgpack.decode(judge.snapshot(), type=Judge)
    assert restored.watch == judge.watch
    assert judge.watch is not None


def test_a_snapshot_holds_what_was_said_and_no_waiting_case() -> None:
    judge = Judge()
    said(judge, beats(*running(3600), until=3600)[:-3])
    assert judge.waiting
    assert b"waiting" in judge.snapshot()
    assert len(judge.snapshot()) < 1_000

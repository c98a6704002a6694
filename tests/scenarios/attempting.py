"""The trials of a scenario: `trial 7`, its end and how it went, as its own files tell."""

import re

from tests.captures.writing.run import Run
from tests.captures.writing.trials import (
    ADD_TESTS,
    PLANS,
    REFUSED_401,
    Course,
    Failure,
    started_trial,
    torn_trial,
    trial,
)
from tests.scenarios.scenes import settings
from tests.scenarios.speakers import Cue, Speaks

_FAILURES = {"add-tests error": ADD_TESTS, "401": REFUSED_401}
_SPEECH: dict[str, tuple[str, ...]] = {
    "sense": PLANS,
    "scripts": ("город 窓 δρόμος rain שלום 川 дом مطر μέρα river 鳥 улица",) * 2,
    "loops": ("run it and then " * 40,),
    "junk": ("qwzrtxkvbnplmhgf" * 20,),
    "chinese": ("我先看一下这个脚本, 然后运行 pytest, 修改 parser 的 split 函数再试一次。",),
    "nothing": ("",),
}
"""What an agent says, by its words: of these all but `sense` and `chinese` are no language, `nothing` is empty."""
_COURSE = ("setup", "llm", "verifier", "teardown", "late")


def _trial(run: Run, cue: Cue, found: re.Match[str]) -> None:
    """`reward=0`, `unscored`, `starts`, `starts in silence`, `torn`, `add-tests error`, `401`, `raises DaytonaError: no
    runner` (in front of it `reward=0` where it was scored all the same); each with the settings of its course."""
    number = int(found["number"])
    head, raising, raised = cue.text.partition("raises ")
    words, said = settings(head)
    if words.startswith("starts"):
        started_trial(run, number, cue.at, silent=words == "starts in silence")
    elif words == "torn":
        torn_trial(run, number, cue.at)
    else:
        reward = float(said["reward"]) if "reward" in said else None
        took = float(said["took"]) if "took" in said else None
        failure = _failure(raised) if raising else _FAILURES.get(words)
        trial(run, number, cue.at, reward, failure, took, _course(said))


def _failure(raised: str) -> Failure:
    kind, _, message = raised.partition(": ")
    return Failure(kind, "harbor.trial", message, '  File "/opt/harbor/trial.py", line 9')


def _course(said: dict[str, str]) -> Course:
    seconds = {name: float(said[name]) for name in _COURSE if name in said}
    speech = said.get("says", "sense")
    return Course(
        turns=int(said["turns"]) if "turns" in said else None,
        tokens=0 if speech == "nothing" else 310,
        plans=PLANS if speech == "unkept" else _SPEECH[speech],
        kept=speech != "unkept",
        **seconds,
    )


SPEAKERS: dict[str, Speaks] = {r"trial (?P<number>\d+)": _trial}

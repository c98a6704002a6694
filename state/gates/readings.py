"""What gate B quotes and in which words: GPUs of each role, the engines' load, and probes that gave no answer."""

from collections.abc import Iterable

from extractors.record import Evidence
from state.case import Case
from state.gate import Gap
from state.policy import GPU_POLL_MAX_AGE, SECOND_US, STAGE_SETTLES, Stage
from state.trackers.gpus import TargetPoll
from state.trackers.heartbeat import Buffer
from state.trackers.unanswered import PollFailedSeen
from state.wording import plural, span

GENERATING = (Stage.GENERATION, Stage.EVALUATION)


def fresh_polls(case: Case, polls: Iterable[TargetPoll]) -> tuple[TargetPoll, ...]:
    """The GPU polls that are not too old to be quoted."""
    return tuple(poll for poll in polls if case.seconds_since(poll.at_us) <= GPU_POLL_MAX_AGE)


def gpu_lines(case: Case) -> tuple[Evidence, ...]:
    """The newest poll of a policy target and of an engine target; of any target where no role is known yet."""
    gpus = case.gpus
    newest = [
        max(fresh, key=lambda poll: poll.at_us)
        for polls in (gpus.policy, gpus.engine)
        if (fresh := fresh_polls(case, polls))
    ]
    if not newest:
        newest = sorted(fresh_polls(case, gpus.unknown), key=lambda poll: poll.at_us)[-1:]
    return tuple(dict.fromkeys(poll.evidence for poll in newest))


def gpu_words(case: Case) -> str:
    """The GPUs of each role in a few words, never together."""
    gpus = case.gpus
    parts = [("policy", gpus.policy), ("engine", gpus.engine)]
    if not gpus.policy and not gpus.engine:
        parts = [("polled", gpus.unknown)]
    said = [_role_words(role, fresh) for role, polls in parts if (fresh := fresh_polls(case, polls))]
    return "; ".join(said)


def _role_words(role: str, polls: tuple[TargetPoll, ...]) -> str:
    cards = [card for poll in polls for card in poll.gpus]
    used = [card.utilization_percent for card in cards if card.utilization_percent is not None]
    drawn = [card.power_watts for card in cards if card.power_watts is not None]
    words = plural(len(cards), f"{role} GPU")
    if used:
        words += f" at {sum(used) / len(used):.0f} % ({min(used):.0f} to {max(used):.0f} %)"
    if drawn:
        words += f" drawing {sum(drawn) / len(drawn):.0f} W each"
    return words


def engines_counted(case: Case) -> int:
    """How many engines the fleet has: as many as are declared, where each one's silence could be seen; else as many as
    have spoken, since a de-duplicated log leaves engines out."""
    seen = case.engines.engines
    declared = case.facts.facts.engine_count
    if declared is not None and all(engine.complete for engine in seen):
        return max(declared, len(seen))
    return len(seen)


def fleet_cap(case: Case) -> int | None:
    """Decode slots of the fleet (max_num_seqs × engines), None where max_num_seqs is not known."""
    slots = case.facts.facts.max_num_seqs
    return None if slots is None else slots * engines_counted(case)


def engine_words(case: Case) -> str:
    """The fleet's load as its newest lines say it."""
    seen = case.engines.engines
    load = case.engines.load(case.now_us)
    cap = fleet_cap(case)
    held = f"{load.running} requests" if cap is None else f"{load.running} of {cap} decode slots"
    verb = "engine holds" if len(seen) == 1 else "engines hold"
    return f"{len(seen)} {verb} {held} with {load.waiting} waiting, the fullest KV cache at {load.kv_percent:.0f} %"


def engine_lines(case: Case) -> tuple[Evidence, ...]:
    """The newest engine line."""
    newest = case.engines.newest
    return () if newest is None else (newest.evidence,)


def buffer_of_phase(case: Case) -> Buffer | None:
    """The buffer, where its bar was printed since the open phase began: what it held for an earlier step says nothing.
    A bar that begins with the phase may carry a time of whole seconds, just before the phase's own."""
    buffer, since_us = case.heartbeat.buffer, generating_since(case)
    if buffer is None or since_us is None:
        return None
    begun_with_it = buffer.fill_us >= since_us - SECOND_US
    return buffer if buffer.newest_us > since_us or begun_with_it else None


def buffer_words(case: Case) -> str:
    """Where the generation buffer stands, and since when."""
    buffer = buffer_of_phase(case)
    if buffer is None:
        return "no buffer bar was printed since the phase began"
    return f"the buffer stands at {buffer.held}/{buffer.needed} for {span(case.seconds_since(buffer.since_us))}"


def buffer_lines(case: Case) -> tuple[Evidence, ...]:
    """The newest line of the open phase's bar."""
    buffer = buffer_of_phase(case)
    return () if buffer is None else (buffer.evidence,)


def phase_lines(case: Case) -> tuple[Evidence, ...]:
    """The line that opened the innermost phase."""
    phase = case.phases.innermost
    return () if phase is None else (phase.evidence,)


def generating_since(case: Case) -> int | None:
    """Since when the trainer generates or evaluates, None where it does neither."""
    phase = case.phases.innermost
    if case.phases.stage not in GENERATING or phase is None:
        return None
    return phase.started_us


def generating_for(case: Case) -> float:
    """Seconds that the open generation or evaluation phase has lasted; 0 outside of one."""
    since = generating_since(case)
    return 0.0 if since is None else case.seconds_since(since)


def settling(case: Case) -> bool:
    """Whether generation began within the last minute and no engine has had the time to say anything of it."""
    since_us, newest = generating_since(case), case.engines.newest
    if since_us is None or case.seconds_since(since_us) > STAGE_SETTLES:
        return False
    return newest is None or newest.last.at_us < since_us


def minutes_of_window(case: Case, seconds: float) -> tuple[int, ...]:
    """Moments a minute apart over the last `seconds`, ends included, oldest first."""
    count = int(seconds // 60)
    return tuple(case.now_us - step * 60 * SECOND_US for step in range(count, -1, -1))


def gap_of(what: str, failed: PollFailedSeen) -> Gap:
    """A gap that shows the command which was tried and what it printed instead."""
    asked = failed.failure
    where = f" of {asked.target}" if asked.target else ""
    return Gap(what, f"the {asked.probe} probe{where} failed: {asked.why}", asked.command, asked.exit, asked.output)


def newest_first(failures: Iterable[PollFailedSeen]) -> list[PollFailedSeen]:
    """Failed polls, newest first."""
    return sorted(failures, key=lambda failed: (-failed.at_us, failed.failure.target, failed.failure.command))

"""OpenRLHF: the bars of its Ray PPO trainer and of its actor's optimiser (0.4 to 0.9), and the
step line of the newer ones (0.8 on)."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.trainer import PolicyProgress, StepCompleted, StepProgress
from extractors.trainer_bars import bar_of

_EPISODE = "Episode ["
_EPOCH = "Train epoch ["


@pattern(
    "openrlhf",
    Nature.HEARTBEAT,
    hints=(_EPISODE,),
    samples={
        "(PPOTrainer pid=5150) \rEpisode [1/1]:  40%|████      | 8/20 [12:03<18:05, 90.46s/it]": StepProgress(8, 20),
        "Episode [3/4]:   5%|▌         | 1/20 [01:30<28:35, 90.28s/it]": StepProgress(41, 80),
    },
    rejects=(
        "Episode [1/1] begins",
        "Episode [0/4]:   5%|▌         | 1/20 [01:30<28:35, 90.28s/it]",
        "Episode [x]: 1/2",
    ),
)
def openrlhf_episode_bar(text: str) -> StepProgress | None:
    """The rollout batches of an episode, counted over all episodes."""
    found = _round(text, _EPISODE)
    if found is None:
        return None
    number, of, done, total = found
    return StepProgress((number - 1) * total + done, of * total)


@pattern(
    "openrlhf",
    Nature.HEARTBEAT,
    hints=(_EPOCH,),
    samples={
        "(ActorModelRayActor pid=900) \rTrain epoch [1/1]:  25%|██▌       | 4/16 [00:40<02:00, 10.00s/it, pg=-0.02, "
        "ret=0.4]": PolicyProgress(4, 16),
    },
    rejects=("Train epoch [1/1] begins", "Policy Train epoch [1/1]: 3/4 (75%) [480s]"),
)
def openrlhf_optimiser_bar(text: str) -> PolicyProgress | None:
    """The micro-batches of one optimiser round of an actor or critic, drawn by rank 0."""
    found = _round(text, _EPOCH)
    return None if found is None else PolicyProgress(found[2], found[3])


@pattern(
    "openrlhf",
    Nature.PROGRESS,
    hints=("✨ Global step ",),
    regex=r"✨ Global step (\d+)(?: \[\w+\])?: \{",
    samples={
        "(PPOTrainer pid=5150) INFO 03-04 09:30:00 ppo_trainer.py:118] ✨ Global step 7: {'policy_loss': 0.25, "
        "'reward': 0.5}": StepCompleted(7, None, None),
        "✨ Global step 8 [replay]: {'policy_loss': 0.25}": StepCompleted(8, None, None),
    },
    rejects=("✨ Global step next", "the ✨ Global step 7: {'policy_loss': 0.25}"),
)
def openrlhf_step(found: Any) -> StepCompleted:
    """A global step is done, with its measures as a dict."""
    return StepCompleted(int(found[1]), None, None)


def _round(text: str, start: str) -> tuple[int, int, int, int] | None:
    """(number of the round, rounds, done, total) of a bar `Episode [1/4]:  40%|████ | 8/20 [12:03<…`."""
    if not text.startswith(start):
        return None
    round_of, closed, frame = text[text.rfind(start) + len(start) :].partition("]: ")
    number, _, of = round_of.partition("/")
    bar = bar_of(frame) if closed else None
    if bar is None or bar[1] is None or not (number.isdigit() and of.isdigit()) or int(number) < 1:
        return None
    return int(number), int(of), bar[0], bar[1]


PATTERNS = (openrlhf_episode_bar, openrlhf_optimiser_bar, openrlhf_step)

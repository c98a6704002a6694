"""A probe that would change something is refused for its words; look-alikes are not."""

import shlex

import pytest

from dataflow.refusal import DEEPEST, refusal_of
from dataflow.refusal_words import ANYWHERE, FIRST, TOOLS

PIECES = (*ANYWHERE, FIRST, *TOOLS)


@pytest.mark.parametrize("typed", [typed for piece in PIECES for typed in piece.samples])
def test_command_that_changes_something_is_refused_with_the_word_and_what_it_does(typed: str) -> None:
    command = shlex.split(typed)
    refusal = refusal_of(command)
    assert refusal is not None
    assert refusal.does in str(refusal)
    said = command[refusal.index].replace("'", "")
    assert refusal.word.split(" ")[-1] in said


@pytest.mark.parametrize("typed", [typed for piece in PIECES for typed in piece.lookalikes])
def test_command_that_only_looks_is_not_refused(typed: str) -> None:
    assert refusal_of(shlex.split(typed)) is None


@pytest.mark.parametrize("group", ANYWHERE, ids=lambda group: group.does)
def test_each_word_is_refused_as_program_sub_command_flag_value_and_inside_a_shell(group: object) -> None:
    for word in sorted(group.words):  # type: ignore[attr-defined]
        for command in (
            [word],
            [f"/usr/local/bin/{word}", "42"],
            [word.upper()],
            ["tool", "job", word, "42"],
            ["tool", f"--{word}"],
            ["tool", f"--force-{word}=yes"],
            ["tool", f"--{word}_all"],
            ["tool", f"--action={word}"],
            ["tool", f"-{word}"],
            ["sh", "-c", f"nvidia-smi && {word} 42"],
            ["bash", "-c", f'"{word}" 42'],
            ["bash", "-c", f"nvidia-smi\n{word} 42"],
            ["bash", "-c", f"bash -c 'sh -c \"{word} 42\"'"],
            ["sh", "-c", f"echo `{word} 42`"],
            ["sh", "-c", f'grep x "$({word} 42)"'],
            ["sh", "-c", f"it's {word} 42"],
            ["kubectl", "exec", "pod-0", "--", word],
            ["env", "A=b", "ssh", "node", f"sudo {word} 42"],
        ):
            assert refusal_of(command) is not None, command


@pytest.mark.parametrize(
    "name", ["killer-bee", "stopgap", "rl-restarted-3", "applying", "scaled-up", "drainpipe", "farm"]
)
def test_words_that_only_hold_such_a_word_are_names(name: str) -> None:
    for command in (
        ["poll", "--cluster", name],
        ["poll", f"--cluster={name}"],
        [f"/opt/{name}/bin/poll"],
        ["poll", name],
    ):
        assert refusal_of(command) is None, command


def test_shells_nested_beyond_understanding_are_refused() -> None:
    text = "nvidia-smi -L"
    for _ in range(DEEPEST + 1):
        text = shlex.join(["sh", "-c", text])
    refusal = refusal_of(["sh", "-c", text])
    assert refusal is not None
    assert "nested too deeply" in refusal.does


def test_an_empty_word_is_none_to_refuse() -> None:
    assert refusal_of(["poll", "", "--"]) is None

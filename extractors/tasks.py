"""Iris task paths, as its log lines and its client write them."""


def task_and_attempt(task: str) -> tuple[str, int]:
    """`/alice/rl-80b/0:2` or `/alice/rl-80b/0 attempt=2` as the path without its attempt, and the attempt."""
    path, _, named = task.partition(" attempt=")
    if _is_number(named):
        return path, int(named)
    head, colon, number = path.rpartition(":")
    return (head, int(number)) if colon and _is_number(number) else (path, 0)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10

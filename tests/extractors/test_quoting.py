"""Quotes: clean, bounded, and without secrets."""

import pytest

from extractors.quoting import MASK, QUOTE_LIMIT, masked, quote


def test_control_sequences_and_characters_are_removed() -> None:
    assert quote("\x1b[32mgreen\x1b[0m\x07 and\x00 \x1b]0;title\x07plain\u202e") == "green and plain"


def test_a_line_of_500_characters_stands_whole() -> None:
    assert quote("x" * QUOTE_LIMIT) == "x" * QUOTE_LIMIT


def test_a_longer_line_shows_a_window_around_what_was_read() -> None:
    line = "a" * 3000 + "WANDB_MIRROR" + "b" * 3000
    shown = quote(line, "WANDB_MIRROR")
    assert len(shown) == QUOTE_LIMIT
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "WANDB_MIRROR" in shown
    assert shown.strip("…") in line


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Bearer abcdefghijklmnop1234",
        "HF_TOKEN=hf_abcdefghijklmnopqrst",
        "api_key='sk-abcdefghijklmnop123456'",
        "https://kim:hunter2hunter2@host/path",
        "WANDB_API_KEY=0123456789abcdef0123",
    ],
)
def test_secrets_are_masked(secret: str) -> None:
    shown = masked(f"before {secret} after")
    assert MASK in shown
    for word in ("abcdefghijklmnop", "hunter2", "0123456789abcdef"):
        assert word not in shown


def test_plain_words_about_tokens_stay() -> None:
    line = "Avg prompt throughput: 123.4 tokens/s, prompt_tokens: 900, GPU KV cache size: 1,234,567 tokens"
    assert masked(line) == line

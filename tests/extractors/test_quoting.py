"""Quotes: clean, bounded, and without secrets."""

import time

import pytest

from extractors.quoting import MASK, QUOTE_LIMIT, masked, masked_words, quote


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


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Basic c3dvcmRmaXNoZXM=",
        "redis://:c3dvcmRmaXNo@host:6379/0",
        "password: 'c3dvcmRmaXNo'",
        r"\"api_key\": \"c3dvcmRmaXNo\"",
        "X-Amz-Signature=c3dvcmRmaXNo&x=1",
        "GiBhf_c3dvcmRmaXNoc3dvcmRmaXNo",
    ],
)
def test_other_dresses_of_secrets_are_masked(secret: str) -> None:
    assert "c3dvcmRmaXNo" not in masked(f"before {secret} after")


def test_a_secret_whose_name_is_the_word_before_is_masked_in_a_command() -> None:
    words = ["tool", "--token", "abcdefghijklmnop", "-H", "Authorization: Bearer abcdefghijklmnop", "--once"]
    assert masked_words(words) == ["tool", "--token", MASK, "-H", f"Authorization: Bearer {MASK}", "--once"]


@pytest.mark.parametrize("gap", range(0, 460, 23))
def test_no_window_shows_a_part_of_a_secret_or_of_a_mask(gap: int) -> None:
    secret = "Bearer " + "k" * 300
    line = "a" * 900 + secret + " " * 3 + "b" * gap + "HINT" + "c" * gap + " " + secret + "d" * 900
    shown = quote(line, "HINT")
    assert "HINT" in shown
    assert "kkkk" not in shown
    assert len(shown) <= QUOTE_LIMIT
    parts = [part for cut in shown.split("…") for part in cut.split(MASK)]
    assert all(part in line for part in parts)


@pytest.mark.parametrize(
    "part", ["a", "_token", "token ", "signature-", "://a:", "eyJ", "eyJabcdefghijk.", "\x1b[", "\x1b]0;"]
)
def test_a_line_of_a_million_characters_is_quoted_at_once(part: str) -> None:
    line = part * (500_000 // len(part)) + " HINT " + part * (500_000 // len(part))
    began = time.process_time()
    assert len(quote(line, "HINT")) <= QUOTE_LIMIT
    assert time.process_time() - began < 1.0

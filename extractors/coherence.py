"""Whether what an agent wrote is language at all. Serves gate C rules 7–10.

Only clear junk counts: token salad of many scripts, a loop that fills a message, unbroken junk. Odd, wrong or terse
text is coherent, and text that nobody kept is unknown.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

import orjson

TEXT_LIMIT = 20_000
MESSAGES_LIMIT = 64
TAIL = 2_000
"""A loop runs until the token limit, so it stands in a message's tail; these many characters of it are looked at."""
LOOP_LENGTH = 300
LOOP_REPEATS = 6
SHORT_LOOP = 100
SHORT_LOOP_REPEATS = 10
SHORT_LOOP_SHARE = 0.9
"""A message shorter than LOOP_LENGTH loops where hardly anything else is in it."""
LOOP_RATIO = 0.25
"""Text that deflate can't shrink below this share does not loop."""
SALAD_LETTERS = 60
SALAD_SCRIPTS = 3
SHORT_SALAD_LETTERS = 30
"""From so many letters on, where three foreign scripts meet."""
SALAD_FOREIGN = 0.25
SALAD_SWITCHES = 0.3
PAIR_SWITCHES = 0.5
"""Of two foreign scripts more changes are asked, as two can meet in one sentence."""
SOUP = 200
SOUP_SHARE = 0.6
SOUP_SYMBOLS = 12
RUN = 20
RUN_KINDS = 2
"""A message of one or two characters over and over: what broken weights give (`!!!!`)."""
UNBROKEN = 200
UNBROKEN_SHARE = 0.6
REPLACED_SHARE = 0.1
JUNK_MESSAGES = 0.5


class Coherence(StrEnum):
    """What the agent's own messages of one trial look like."""

    COHERENT = "coherent"
    INCOHERENT = "incoherent"
    EMPTY = "empty"
    UNKNOWN = "unknown"


def coherence_of(messages: Sequence[str]) -> Coherence:
    """The coherence of the messages that an agent wrote in one trial. No message, or only blank ones, is EMPTY."""
    texts = [text for text in (message.strip()[:TEXT_LIMIT] for message in messages[:MESSAGES_LIMIT]) if text]
    if not texts:
        return Coherence.EMPTY
    junk = sum(is_junk(text) for text in texts)
    if junk >= JUNK_MESSAGES * len(texts) or is_salad(" ".join(texts)[:TEXT_LIMIT]):
        return Coherence.INCOHERENT
    return Coherence.COHERENT


def is_junk(text: str) -> bool:
    """Whether one message is no language: a salad, a loop, unbroken, or a soup of symbols. Of a JSON reply it is what
    its longest string is."""
    main = _main_string(text)
    return is_salad(text) or any(is_loop(part) or is_unbroken(part) or is_soup(part) for part in {text, main})


def _main_string(text: str) -> str:
    """The longest string of a JSON object's own fields where it makes up most of the reply, else the text itself."""
    if not text.startswith("{"):
        return text
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    longest = max((value for value in found.values() if isinstance(value, str)), key=len, default="")
    return longest if 2 * len(longest) >= len(text) else text


def is_salad(text: str) -> bool:
    """Letters of several foreign scripts, a good share of them, changing from word to word.

    A model may think in Chinese with English terms, and a task may be about translations: one foreign script is no
    sign, and several are none while their letters stay few.
    """
    if text.isascii():
        return False
    words = [word for word in map(_script_of_word, re.findall(r"[^\W\d_]+", text)) if word]
    letters = Counter(script for character in text if (script := _script(character)))
    total = sum(letters.values())
    if total < SHORT_SALAD_LETTERS:
        return False
    foreign = {script: count for script, count in letters.items() if script != "LATIN" and count >= 0.02 * total}
    fewest = SALAD_SCRIPTS if total < SALAD_LETTERS else SALAD_SCRIPTS - 1
    if len(foreign) < fewest or sum(foreign.values()) < SALAD_FOREIGN * total:
        return False
    switches = sum(a != b or a == "MIXED" for a, b in pairwise(words))
    wanted = SALAD_SWITCHES if len(foreign) >= SALAD_SCRIPTS else PAIR_SWITCHES
    return switches >= wanted * max(1, len(words) - 1)


def is_loop(text: str) -> bool:
    """The tail repeats one piece six times or more, over at least half of what was looked at; a short message one
    piece ten times or more, and nothing besides."""
    tail = text[-TAIL:]
    if len(tail) < LOOP_LENGTH:
        repeated = _longest_repetition(tail[::-1], SHORT_LOOP_REPEATS) if len(tail) >= SHORT_LOOP else 0
        return repeated > 0 and repeated >= SHORT_LOOP_SHARE * len(tail)
    if len(zlib.compress(tail.encode(), 1)) > LOOP_RATIO * len(tail.encode()):
        return False
    # A loop inside a JSON reply has the reply's closing brackets behind it.
    return any(
        _longest_repetition(end[::-1], LOOP_REPEATS) >= max(LOOP_LENGTH, len(end) / 2)
        for end in (tail, tail.rstrip('"}]\n '))
    )


def is_unbroken(text: str) -> bool:
    """One run without a space fills the message, and it is no encoded data, no code and no script without spaces."""
    longest = max(text.split(), key=len, default="")
    if len(longest) < UNBROKEN or len(longest) < UNBROKEN_SHARE * len(text) or "://" in longest:
        return False
    digits = sum(character.isdigit() for character in longest)
    letters = sum(character.isalpha() for character in longest)
    spaceless = sum(_script(character) in ("CJK", "THAI", "LAO", "KHMER", "MYANMAR") for character in longest)
    if spaceless > len(longest) / 2 or re.fullmatch(r"[\[{\"].*[\]}\"]", longest):
        return False
    return letters >= 0.9 * len(longest) and digits < 0.03 * len(longest)


def is_soup(text: str) -> bool:
    """A tenth or more are replacement characters (bytes that were no text), most are symbols of many kinds, or all are
    one or two characters."""
    if len(text) >= RUN and len(set(text) - {" ", "\n"}) <= RUN_KINDS:
        return True
    if len(text) >= 40 and text.count("\ufffd") >= REPLACED_SHARE * len(text):
        return True
    symbols = Counter(character for character in text if not character.isalnum() and not character.isspace())
    return len(text) >= SOUP and len(symbols) >= SOUP_SYMBOLS and sum(symbols.values()) >= SOUP_SHARE * len(text)


def _longest_repetition(text: str, times: int) -> int:
    """The length of the longest prefix that repeats one piece so many times or more (Knuth-Morris-Pratt)."""
    failure = [0] * len(text)
    length = 0
    for i in range(1, len(text)):
        k = failure[i - 1]
        while k and text[i] != text[k]:
            k = failure[k - 1]
        failure[i] = k + 1 if text[i] == text[k] else 0
        if (i + 1) >= times * (i + 1 - failure[i]):
            length = i + 1
    return length


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    """A letter's script by its Unicode name, the East Asian ones as one; empty where it is no letter."""
    if not character.isalpha():
        return ""
    script = unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
    return "CJK" if script in ("CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HALFWIDTH", "FULLWIDTH") else script


def _script_of_word(word: str) -> str:
    scripts = {script for character in word if (script := _script(character))}
    return "MIXED" if len(scripts) > 1 else next(iter(scripts), "")

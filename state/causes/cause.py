"""What a cause is: what an error code means, whether it passes by itself, and what to do about it.

Data, said once; patterns name a code, gates and verdicts take the words from here.
"""

from dataclasses import dataclass
from enum import StrEnum


class Transient(StrEnum):
    """Whether a relaunch alone can be expected to pass it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. hang: a signature of gate A rule 5; fatal: the line itself ends its process.

    title completes «the first cause is …»; fix is an instruction; relaunch says relaunch or hold. source is where the
    fix is known from: the program (with the versions whose text says it), its own documentation or its message.
    """

    code: str
    title: str
    transient: Transient
    fix: str
    relaunch: str
    source: str
    hang: bool = False
    fatal: bool = False
    oom: str = ""

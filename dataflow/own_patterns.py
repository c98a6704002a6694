"""A user's own patterns: a Python file, or a module, with a `PATTERNS` tuple, held to the laws of the catalogue."""

import importlib
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import ModuleType

from dataflow.outcome import SettingsError
from extractors.catalogue import CATALOGUE, Catalogue
from extractors.laws import broken, taken_from
from extractors.pattern import Pattern
from state.causes import CAUSES
from state.track import FOLDED

MOST_TOLD = 20
"""Broken laws that are told; the rest are counted."""


def use_own_patterns(modules: tuple[str, ...]) -> None:
    """Reads with these modules' patterns, too, from here on. Raises SettingsError where one can't be loaded, or breaks
    a law."""
    found = {name: _load(name) for name in modules}
    patterns = {name: _patterns_of(name, module) for name, module in found.items()}
    whole = Catalogue((*CATALOGUE.whole.patterns, *(pattern for own in patterns.values() for pattern in own)))
    wrong = list(_twice(patterns, whole)) or list(_broken(patterns, whole))
    if wrong:
        more = [f"{len(wrong) - MOST_TOLD} more broken laws"] if len(wrong) > MOST_TOLD else []
        raise SettingsError("\n".join(wrong[:MOST_TOLD] + more))
    CATALOGUE.use(whole, _digest(found.values()))


Own = dict[str, tuple[Pattern, ...]]
"""The patterns of each module, by the name that it was asked for by."""


def _twice(patterns: Own, whole: Catalogue) -> Iterator[str]:
    names = Counter(pattern.name for pattern in whole.patterns)
    for name, own in patterns.items():
        yield from (f"{name}: {p.name}: another pattern has this name" for p in own if names[p.name] > 1)


def _broken(patterns: Own, whole: Catalogue) -> Iterator[str]:
    shipped = CATALOGUE.whole.patterns
    for name, own in patterns.items():
        for pattern in own:
            yield from (f"{name}: {pattern.name}: {what}" for what in broken(pattern, whole, FOLDED, CAUSES))
        yield from (f"{name}: {what}" for what in taken_from(shipped, own, whole))


def _digest(modules: Iterable[ModuleType]) -> str:
    """Tells what was written, a package with all its files."""
    digest = blake2b(digest_size=8)
    for module in modules:
        file = Path(module.__file__ or "")
        for path in sorted(file.parent.rglob("*.py")) if hasattr(module, "__path__") else [file]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _load(name: str) -> ModuleType:
    """The module of a name, or of a file's path. Whatever its code raises is told as its fault."""
    try:
        if not name.endswith(".py") and os.sep not in name:
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(f"own_patterns_{Path(name).stem}", name)
        if spec is None or spec.loader is None:
            raise ImportError("no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        line = _line_of(error, name)
        raise SettingsError(f"{name}: {line}cannot be loaded: {type(error).__name__}: {error}") from error


def _line_of(error: Exception, name: str) -> str:
    """Where in the file it went wrong, as `line 7: `; empty where it is not known."""
    if isinstance(error, SyntaxError):
        return ""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == Path(name).name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: " if line else ""


def _patterns_of(name: str, module: ModuleType) -> tuple[Pattern, ...]:
    said = getattr(module, "PATTERNS", None)
    if not isinstance(said, tuple | list) or not said:
        raise SettingsError(f"{name}: has no PATTERNS: name its patterns in a tuple at the foot of the file")
    for each in said:
        if not isinstance(each, Pattern):
            raise SettingsError(f"{name}: PATTERNS: {each!r:.80} is no pattern: put @pattern(…) before the function")
    return tuple(said)

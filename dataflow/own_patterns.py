"""A user's own patterns: Python files, or modules, with a `PATTERNS` tuple, held to the laws of the catalogue."""

import importlib
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from hashlib import blake2b
from pathlib import Path
from types import ModuleType

from dataflow.outcome import SettingsError, plain
from extractors.catalogue import CATALOGUE, Catalogue
from extractors.laws import broken, taken_from
from extractors.own import guarded, misshapen, trouble_of
from extractors.pattern import Pattern
from state.causes import CAUSES
from state.track import FOLDED

MOST_TOLD = 20
"""Broken laws that are told; the rest are counted."""
Own = dict[str, tuple[Pattern, ...]]
"""The patterns of each module, by the name that it was asked for by."""


def use_own_patterns(modules: Iterable[str]) -> None:
    """Reads with these modules' patterns, too, from here on. What they print goes to standard error. Raises
    SettingsError where one can't be loaded, or breaks a law."""
    named = {os.path.realpath(name) if _is_path(name) else name: name for name in modules if name}
    known = set(sys.modules)
    with redirect_stdout(sys.stderr):
        loaded = {name: _load(name) for name in named.values()}
        patterns = {name: _patterns_of(name, module) for name, module in loaded.items()}
        _refuse([f"{name}: {p.name}: {what}" for name, own in patterns.items() for p in own for what in misshapen(p)])
        own = {name: tuple(guarded(each, FOLDED, CAUSES) for each in said) for name, said in patterns.items()}
        whole = Catalogue((*CATALOGUE.whole.patterns, *(pattern for each in own.values() for pattern in each)))
        _refuse(list(_twice(own, whole)))
        _refuse(list(_broken(own, whole)))
    read = (sys.modules.keys() - known) | {module.__name__ for module in loaded.values()}
    CATALOGUE.use(whole, _digest(sys.modules[name] for name in sorted(read)))


def _refuse(wrong: list[str]) -> None:
    if wrong:
        more = [f"{len(wrong) - MOST_TOLD} more broken laws"] if len(wrong) > MOST_TOLD else []
        raise SettingsError("\n".join([*map(plain, wrong[:MOST_TOLD]), *more]))


def _twice(patterns: Own, whole: Catalogue) -> Iterator[str]:
    names, shipped = Counter(pattern.name for pattern in whole.patterns), CATALOGUE.by_name
    for name, own in patterns.items():
        for pattern in own:
            if names[pattern.name] > 1:
                whose = "a shipped pattern" if pattern.name in shipped else "another pattern"
                yield f"{name}: {pattern.name}: {whose} has this name: give the function another one"


def _broken(patterns: Own, whole: Catalogue) -> Iterator[str]:
    shipped = CATALOGUE.whole.patterns
    for name, own in patterns.items():
        for pattern in own:
            for what in broken(pattern, whole, FOLDED, CAUSES):
                trouble = trouble_of(pattern)
                yield f"{name}: {pattern.name}: {what}{f'; its function last failed: {trouble}' if trouble else ''}"
        yield from (f"{name}: {what}" for what in taken_from(shipped, own, whole))


def _digest(modules: Iterable[ModuleType]) -> str:
    """Tells what was written in the modules that were loaded, those that they import among them."""
    digest = blake2b(digest_size=8)
    for module in modules:
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.isfile(file):
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _module_of(path: str) -> str:
    """The name as which a file is loaded, the same at each start."""
    place = os.path.realpath(path).encode("utf-8", "surrogateescape")
    return f"own_patterns_{blake2b(place, digest_size=8).hexdigest()}"


def _is_path(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _load(name: str) -> ModuleType:
    """The module of a name, or of a file's path. Whatever its code raises is told as its fault."""
    if os.path.isdir(name) and _is_path(name):
        raise SettingsError(f"{name}: is a folder; name a file, or a package that Python can import")
    try:
        if not _is_path(name):
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(_module_of(name), name)
        if spec is None or spec.loader is None:
            raise ImportError("it is no Python file (.py)")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = plain(f"{_line_of(error, name)}cannot be loaded: {type(error).__name__}: {error}")
        raise SettingsError(f"{name}: {why}") from error


def _line_of(error: BaseException, name: str) -> str:
    """Where in the file it went wrong, as `line 7: `; empty where it is not known."""
    line, trace = 0, None if isinstance(error, SyntaxError) else error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == Path(name).name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: " if line else ""


def _patterns_of(name: str, module: ModuleType) -> tuple[Pattern, ...]:
    said = getattr(module, "PATTERNS", None)
    if said is None:
        raise SettingsError(f"{name}: has no PATTERNS: name its patterns in a tuple at the foot of the file")
    if not isinstance(said, tuple | list) or not said:
        raise SettingsError(f"{name}: PATTERNS must be a tuple of patterns, (one,) where there is one: {said!r:.80}")
    for each in said:
        if not isinstance(each, Pattern):
            raise SettingsError(f"{name}: PATTERNS: {each!r:.80} is no pattern: put @pattern(…) before the function")
    return tuple(said)

"""The cause catalogue: data, said once. Patterns name a code; gates and verdicts take the words from here."""

from state.causes import cluster, distributed, engines, machine, trainer
from state.causes.cause import Cause, Transient

CAUSES: dict[str, Cause] = {
    row.code: row for rows in (distributed, engines, cluster, machine, trainer) for row in rows.ROWS
}

__all__ = ["CAUSES", "Cause", "Transient"]

"""Ray's event files (`events/event_GCS.log`, `event_RAYLET.log`, …): one JSON object a line. A part of `ray`.

Keys are those of Ray 2.0 to 2.60, in any order; of what is left out nothing is said. The line's time is its own
`time_stamp` (local, up to 2.9) or `timestamp` (epoch).
"""

import orjson

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

_LIMIT = 65_536
"""Characters of a line that is still read as an event; Ray's are below a thousand."""


def _event(text: str, label: str) -> tuple[str, str] | None:
    """(the node's address or name, the message's beginning) of an event with this label; None where it is none."""
    if not text.startswith("{") or len(text) > _LIMIT:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or found.get("label") != label or "severity" not in found:
        return None
    fields = found.get("custom_fields")
    fields = fields if isinstance(fields, dict) else {}
    node = fields.get("ip") or found.get("host_name") or found.get("source_hostname") or ""
    return str(node)[:80], str(found.get("message") or "").replace("\\n", " ").partition(".")[0][:120]


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=('"RAY_NODE_REMOVED"',),
    samples={
        '{"severity": "ERROR", "label": "RAY_NODE_REMOVED", "time": "1930000000", "message": "node removed"}': (
            Fault("node_died", "a node was lost")
        ),
        '{"time_stamp":"2031-03-14 09:10:01.000714","severity":"ERROR","label":"RAY_NODE_REMOVED","event_id":"0a1b",'
        '"source_type":"GCS","host_name":"head-0","pid":"99","message":"The node has been marked dead",'
        '"custom_fields":{"ip":"10.1.0.7","node_id":"77ab"}}': Fault("node_died", "a node was lost", entity="10.1.0.7"),
        '{"custom_fields":{"ip":"10.1.0.7","node_id":"77ab"},"event_id":"0a1b","host_name":"head-0","label":'
        '"RAY_NODE_REMOVED","message":"The node has been marked dead","pid":"99","severity":"ERROR",'
        '"source_type":"GCS","timestamp":1930000000}': Fault("node_died", "a node was lost", entity="10.1.0.7"),
    },
    rejects=(
        '{"severity": "INFO", "label": "RAY_NODE_ADDED", "message": "after \\"RAY_NODE_REMOVED\\""}',
        'grep -c "RAY_NODE_REMOVED" events/event_GCS.log',
    ),
)
def node_removed_event(text: str) -> Fault | None:
    """The head's own record that it lost a node. Its message is the line that gcs_server and the driver print too."""
    event = _event(text, "RAY_NODE_REMOVED")
    # Without the address of the lost node the host is that of the head, which tells the event.
    node = event[0] if event and '"ip"' in text else ""
    return None if event is None else Fault("node_died", "a node was lost", entity=node)


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=('"RAYLET_MARKED_DEAD"',),
    samples={
        '{"severity": "ERROR", "label": "RAYLET_MARKED_DEAD", "time": "1930000000", "message": "raylet marked dead"}': (
            Fault("raylet_died", "a raylet ended unexpectedly")
        ),
        '{"custom_fields":{"node_id":"77ab"},"event_id":"0a1b","host_name":"gpu-07","label":"RAYLET_MARKED_DEAD",'
        '"message":"[Timeout] Exiting","pid":"99","severity":"FATAL","source_type":"RAYLET","timestamp":1930000000}': (
            Fault("raylet_died", "a raylet ended unexpectedly", entity="gpu-07")
        ),
    },
    rejects=('{"severity": "INFO", "label": "RAY_NODE_ADDED", "message": "\\"RAYLET_MARKED_DEAD\\""}',),
)
def raylet_marked_dead_event(text: str) -> Fault | None:
    """A raylet's own record that the head holds it for dead, on which it ends."""
    event = _event(text, "RAYLET_MARKED_DEAD")
    return None if event is None else Fault("raylet_died", "a raylet ended unexpectedly", entity=event[0])


PATTERNS = (node_removed_event, raylet_marked_dead_event)

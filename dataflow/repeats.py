"""Files that are sent whole and come twice: after a kill a shipper sends again what it doesn't know to have arrived."""

from hashlib import blake2b

_BYTES = 12


class Repeats:
    """Tells words of files that are there, whole, from those of other contents, by the parts that came before them.
    Plain data, so that it can be kept."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, set[bytes]]] = {}
        self._told: dict[tuple[str, bool], bytes] = {}

    def part(self, host: str, name: str, offset: int, data: bytes) -> None:
        """A part came."""
        place = blake2b(f"{offset} {name}".encode("utf-8", "surrogatepass"))
        place.update(data)
        self._parts.setdefault(host, {}).setdefault(name, set()).add(place.digest()[:_BYTES])

    def has(self, host: str, name: str, ended: bool) -> bool:
        """Whether this was told of the very same files. Of a repeat only the end may have come. name is that of the
        file, or of their folder."""
        parts, own = self._parts.pop(host, {}), set()
        for each, digests in parts.items():
            if each == name or each.startswith(f"{name}/"):
                own |= digests
        known = self._told.get((name, ended))
        if known is not None and own <= {known[at : at + _BYTES] for at in range(0, len(known), _BYTES)}:
            return True
        self._told[name, ended] = b"".join(sorted(own))
        return False

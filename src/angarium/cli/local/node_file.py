"""A node's settings in a local cluster: written at each start, until somebody edits them.

The first line has a fingerprint of the others. Where it does not fit, the file is somebody's own by
now: it is kept as it is, and only looked through for what the cluster cannot start without.
"""

from __future__ import annotations

import hashlib
import tomllib
from typing import TYPE_CHECKING, Any, Final

from angarium.cli.complaints import Refusal
from angarium.log.folder_modes import private_opener

if TYPE_CHECKING:
    from pathlib import Path

_HEAD: Final = (
    "# Written by `angarium up` at each start, until you edit it: then it stays as it is. "
)

_NEEDED: Final = (("node", "data"), ("listen", "wire_port"))
"""Where `up` looks for a node, whatever else its settings say."""


def is_edited(path: Path) -> bool:
    """Tell whether a file has been changed since it was written here, or was never written here."""
    if not path.exists():
        return False
    head, _, rest = path.read_text(encoding="utf-8").partition("\n")
    return head != _head(rest)


def write_unless_edited(path: Path, content: str, *, is_new: bool) -> None:
    """Write settings; what somebody edited is kept, if the node can be started with it.

    `is_new`: the node has no data, so how it comes into the cluster matters. Raises `Refusal`.
    """
    if is_edited(path):
        _check(path, tomllib.loads(content), is_new=is_new)
    else:
        with open(path, "w", encoding="utf-8", opener=private_opener) as file:
            file.write(f"{_head(content)}\n{content}")


def _head(content: str) -> str:
    return f"{_HEAD}({hashlib.sha256(content.encode()).hexdigest()[:12]})"


def _check(path: Path, planned: dict[str, Any], *, is_new: bool) -> None:
    try:
        kept = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Refusal(f"{path} was edited, and cannot be read any more: {error}") from None
    needed = list(_NEEDED)
    for section in ("compat", "tls", "security"):
        needed += [(section, name) for name in planned.get(section, {})]
    if is_new:
        needed += [("node", "form"), ("node", "id"), ("node", "join_token_file")]
    wrong = []
    for section, name in needed:
        wanted = planned.get(section, {}).get(name)
        found = kept.get(section, {}).get(name)
        if found != wanted:
            wrong.append(f"{section}.{name} is {_shown(found)}, and has to be {_shown(wanted)}")
    if planned.get("users") and not kept.get("users"):
        lines = " and ".join(f'{name} = "{known}"' for name, known in planned["users"].items())
        wrong.append(f"[users] is empty, and needs for instance {lines}")
    if wrong:
        raise Refusal(
            f"{path} was edited, so it is kept as it is; but this start needs other values:"
            f" {'; '.join(wrong)}. Write that into it, start as before, or delete the file to have"
            " it written again"
        )


def _shown(value: object) -> str:
    if value is None:
        return "not there"
    return str(value).lower() if isinstance(value, bool) else repr(value)

"""`angarium tls init | renew | show`: certificates for those who have none, and a look at any."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.app.processes import machine_name
from angarium.cli.complaints import Refusal
from angarium.cli.output import print_json, print_table
from angarium.security.tls.certificate import CLUSTER_PATTERN, NAME_PATTERN, Certificate
from angarium.security.tls.issuing import Authority, Names, names_in, write_secret

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

EXPIRED: Final = 1
"""The exit status of `show` if a certificate has expired."""

HERE: Final = ("localhost", "127.0.0.1", "::1")
"""By which every node may be dialled on its own machine."""


def init(options: Namespace) -> int:
    """Make what is not there yet."""
    folder = Path(options.folder)
    _check(options.cluster, CLUSTER_PATTERN, "--cluster", "small letters, digits, dots and dashes")
    wanted = [*_nodes(options), *_clients(options), *_gateways(options)]
    authority = _authority(folder, options)
    made = []
    for path, names in wanted:
        if not _crt(path).exists():
            _issue(authority, path, names, options.days)
            made.append(path)
    for path in made:
        print(f"made {_crt(path)} and its key")
    if not made:
        print(f"everything is there already; `angarium tls renew {folder}` makes it anew")
    print(_HOW.format(ca=folder / "ca.crt", crt=_crt(wanted[0][0]), key=_key(wanted[0][0])))
    return 0


def renew(options: Namespace) -> int:
    """Make certificates anew, with the names they have, or the authority."""
    folder = Path(options.folder)
    if options.authority:
        return _renew_authority(folder)
    paths = [path.with_suffix("") for path in _certificates(folder)]
    there = {path.name for path in paths}
    unknown = ", ".join(name for name in options.names if name not in there)
    if unknown:
        known = ", ".join(sorted(there)) or "none"
        raise Refusal(f"{folder}: there is no certificate of {unknown}; there are: {known}")
    authority = Authority.read(folder / "ca.crt", folder / "ca.key")
    for path in paths:
        if not options.names or path.name in options.names:
            _issue(authority, path, names_in(_crt(path)), options.days)
            print(f"renewed {_crt(path)} and its key")
    return 0


def show(options: Namespace) -> int:
    """Print the days that are left, and the names."""
    now = time.time()
    found = [(path, Certificate.in_file(path)) for path in _shown(options.paths)]
    rows = [
        {
            "file": str(path),
            "days_left": int(one.days_left(now) // 1),
            "expires": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.expires_at)),
            "uris": list(one.uris),
            "hosts": [*one.dns_names, *one.addresses],
            "issuer": one.issuer,
        }
        for path, one in found
    ]
    if options.format == "json":
        print_json(rows)
    else:
        print_table(
            ("file", "days left", "expires", "names", "issuer"),
            [
                (
                    row["file"],
                    row["days_left"],
                    str(row["expires"])[:10],
                    " ".join([*one.uris, *one.dns_names, *one.addresses]) or one.common_name,
                    row["issuer"],
                )
                for row, (_, one) in zip(rows, found, strict=True)
            ],
            none=f"There is no certificate in {', '.join(options.paths)}.",
        )
    return EXPIRED if any(one.expires_at <= now for _, one in found) else 0


# --- what is wanted ----------------------------------------------------------------------------


def _nodes(options: Namespace) -> Iterator[tuple[Path, Names]]:
    others = options.clients or options.gateways
    # Who wants a certificate for somebody else wants no key of a node besides.
    for text in options.nodes or ([] if others else [f"node={machine_name()}"]):
        yield _listening(options, text, "node")


def _gateways(options: Namespace) -> Iterator[tuple[Path, Names]]:
    """Return those of gateways: they listen as nodes do, and are none."""
    for text in options.gateways:
        yield _listening(options, text, "gateway")


def _listening(options: Namespace, text: str, kind: str) -> tuple[Path, Names]:
    name, _, hosts = text.partition("=")
    _check(name, NAME_PATTERN, f"--{kind}", "letters, digits, dots, dashes and underscores")
    named = [one.strip().strip("[]") for one in hosts.split(",") if one.strip()]
    return (
        Path(options.folder) / f"{kind}s" / name,
        Names(
            common_name=name,
            uri=f"angarium://{options.cluster}/{kind}/{name}",
            hosts=tuple(dict.fromkeys((*(named or [name]), *HERE))),
        ),
    )


def _clients(options: Namespace) -> Iterator[tuple[Path, Names]]:
    for name in options.clients:
        _check(name, NAME_PATTERN, "--client", "letters, digits, dots, dashes and underscores")
        uri = f"angarium://{options.cluster}/client/{name}"
        yield Path(options.folder) / "clients" / name, Names(common_name=name, uri=uri)


def _check(text: str, pattern: str, flag: str, allowed: str) -> None:
    if not re.fullmatch(pattern, text):
        raise Refusal(f"{flag}: {text!r} is not a name; {allowed} are allowed")


# --- files -------------------------------------------------------------------------------------


def _authority(folder: Path, options: Namespace) -> Authority:
    certificate, key = folder / "ca.crt", folder / "ca.key"
    if certificate.exists():
        return Authority.read(certificate, key)
    made = Authority.make(f"Angarium authority of {options.cluster}", days=options.authority_days)
    _private(folder)
    write_secret(key, made.key_pem)
    write_secret(certificate, made.pem)
    print(f"made {certificate} and its key: keep {key} away from the nodes")
    return made


def _renew_authority(folder: Path) -> int:
    """Make a new authority beside the one before; certificates stay as they are.

    They are left for a second step: whoever meets a certificate of the new one before it has the
    new file would take it for a stranger's.
    """
    certificate, key = folder / "ca.crt", folder / "ca.key"
    before = Certificate.in_file(certificate)
    days = max(1, int((before.expires_at - before.begins_at) // 86_400))
    made = Authority.make(before.common_name, days=days)
    content = made.pem + certificate.read_bytes()
    write_secret(key, made.key_pem)
    write_secret(certificate, content)
    print(
        f"made a new authority; {certificate} holds it and the one before. Bring that file to every"
        f" node and client, then run `angarium tls renew {folder}` and bring the certificates."
    )
    return 0


def _issue(authority: Authority, path: Path, names: Names, days: int) -> None:
    certificate, key = authority.issue(names, days=days)
    _private(path.parent)
    write_secret(_key(path), key)
    write_secret(_crt(path), certificate)


def _private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _certificates(folder: Path) -> Iterator[Path]:
    for kind in ("nodes", "clients", "gateways"):
        yield from sorted((folder / kind).glob("*.crt"))


def _shown(paths: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.crt")) if path.is_dir() else [path]


def _crt(path: Path) -> Path:
    return path.with_name(f"{path.name}.crt")


def _key(path: Path) -> Path:
    return path.with_name(f"{path.name}.key")


_HOW: Final = """
For a node, in its node.toml (ca.crt and its own two files lie on its machine):

    [tls]
    certificate = "{crt}"
    private_key = "{key}"
    authorities = "{ca}"

For clients, in the environment, or in a profile (`angarium profile list --help`):

    export ANGARIUM_TLS_CA={ca}"""

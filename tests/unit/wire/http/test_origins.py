"""Which web pages may send requests: scheme, host and port decide, and what the browser says."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from angarium.wire.http.messages import Head, Page, Request
from angarium.wire.http.origins import Origins, WebOrigin, check_no_link
from angarium.wire.http.request_reader import RequestRefused

CONSOLE = "https://console.example.org"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"


def asked(method: str = "POST", *, tls: bool = False, **headers: Any) -> Request:
    """Return a request; `tls`: whether the client speaks TLS to this listener."""
    said = {"host": "broker.example.org", **headers}
    named = {name.replace("_", "-").encode(): value.encode() for name, value in said.items()}
    head = Head(
        method=method.encode(),
        target=b"/v1/topics",
        headers=list(named.items()),
        named=named,
        body_bytes=0,
        keep_alive=True,
        is_http_1_1=True,
    )
    connection: Any = SimpleNamespace(is_encrypted=tls)
    return Request(connection, head, b"")


def is_admitted(request: Request, *allowed: str) -> bool:
    try:
        Origins(allowed).admit(request)
    except RequestRefused as error:
        return error.status != 403
    return True


@pytest.mark.parametrize(
    ("tls", "host", "origin", "may"),
    [
        (False, "broker.example.org", "http://broker.example.org", True),
        (False, "broker.example.org:80", "http://broker.example.org", True),
        (False, "broker.example.org", "http://broker.example.org:80", True),
        (False, "Broker.Example.ORG.", "http://broker.example.org", True),
        (False, "[::1]:7402", "http://[::1]:7402", True),
        (True, "broker.example.org", "https://broker.example.org", True),
        (True, "broker.example.org:443", "https://broker.example.org", True),
        (True, "broker.example.org:7402", "https://broker.example.org:7402", True),
        # Another scheme, with the ports that are not written.
        (True, "broker.example.org", "http://broker.example.org", False),
        (True, "broker.example.org:7402", "http://broker.example.org:7402", False),
        (False, "broker.example.org", "https://broker.example.org", False),
        # Another port.
        (True, "broker.example.org", "https://broker.example.org:8443", False),
        (True, "broker.example.org:80", "https://broker.example.org", False),
        (False, "broker.example.org:443", "http://broker.example.org", False),
        # Another host.
        (False, "broker.example.org", "http://example.org", False),
        (False, "broker.example.org", "http://broker.example.org.evil.example", False),
        # No origins of pages.
        (False, "broker.example.org", "null", False),
        (False, "broker.example.org", "", False),
        (False, "broker.example.org", "://broker.example.org", False),
        (False, "broker.example.org", "ftp://broker.example.org", False),
        (False, "broker.example.org", "http://user@broker.example.org", False),
        (False, "broker.example.org", "http://broker.example.org/", False),
        (False, "a b", "http://a b", False),
    ],
)
def test_a_page_is_ours_if_scheme_host_and_port_are(
    tls: bool, host: str, origin: str, may: bool
) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        assert is_admitted(asked(method, tls=tls, host=host, origin=origin)) is may


def test_no_host_is_no_origin() -> None:
    request = asked(origin="http://none")
    request.named = {b"origin": b"http://none"}
    assert not is_admitted(request)


def test_the_page_behind_a_proxy_that_ends_tls_is_named_in_the_settings() -> None:
    request = asked(origin="https://broker.example.org", sec_fetch_site="same-origin")
    assert not is_admitted(request)
    for listed in ("https://broker.example.org", "https://Broker.example.org:443"):
        assert is_admitted(request, listed)
    assert not is_admitted(request, "http://broker.example.org")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "something-new"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_a_browser_calls_another_site_changes_nothing(method: str, site: str) -> None:
    said: list[dict[str, Any]] = [
        {},
        {"sec_fetch_dest": "document"},
        {"origin": "http://broker.example.org"},
    ]
    for more in said:
        assert not is_admitted(asked(method, sec_fetch_site=site, **more)), more
    named = asked(method, sec_fetch_site=site, origin=CONSOLE)
    assert not is_admitted(named)
    assert is_admitted(named, CONSOLE)


def test_a_link_may_lead_to_what_changes_nothing() -> None:
    for site in ("cross-site", "same-site"):
        link = asked("GET", sec_fetch_site=site, sec_fetch_dest="document")
        assert is_admitted(link)
        assert link.page is Page.LINK
        with pytest.raises(RequestRefused):
            check_no_link(link)
        for dest in ("image", "iframe", "empty", "script"):
            assert not is_admitted(asked("GET", sec_fetch_site=site, sec_fetch_dest=dest)), dest
    for site in ("same-origin", "none"):
        own = asked("GET", sec_fetch_site=site, sec_fetch_dest="document")
        assert is_admitted(own)
        check_no_link(own)


@pytest.mark.parametrize(
    ("headers", "may"),
    [
        ({}, True),
        ({"user_agent": "curl/8.14.1"}, True),
        ({"user_agent": BROWSER}, False),
        ({"user_agent": BROWSER, "referer": "http://broker.example.org/graphql"}, True),
        ({"user_agent": BROWSER, "referer": "http://broker.example.org"}, True),
        ({"user_agent": BROWSER, "referer": "http://evil.example/broker.example.org/"}, False),
        ({"user_agent": BROWSER, "referer": "https://broker.example.org/graphql"}, False),
        ({"user_agent": BROWSER, "referer": "http://broker.example.org:8080/"}, False),
        ({"user_agent": BROWSER, "referer": "nonsense"}, False),
    ],
)
def test_a_browser_that_does_not_say_where_it_comes_from_follows_no_link(
    headers: dict[str, Any], may: bool
) -> None:
    """Without TLS browsers send `Sec-Fetch-Site` to localhost alone."""
    request = asked("GET", **headers)
    with nullcontext() if may else pytest.raises(RequestRefused, match="link on a page"):
        check_no_link(request)


def test_what_an_origin_is() -> None:
    parsed = WebOrigin.parsed
    assert parsed("HTTPS://Example.org") == ("https", "example.org", 443)
    assert parsed("http://example.org.:8080") == ("http", "example.org", 8080)
    for text in ("null", "*", "", "example.org", "http://", "http://a:b", "http://a:123456"):
        assert parsed(text) is None, text

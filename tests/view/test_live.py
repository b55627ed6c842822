"""The page that is served: to this machine, to who has the token, and to no page of another origin."""

from __future__ import annotations

import http.client
import json
import socket
from urllib.parse import urlsplit

import numpy as np
import pytest

import zwang as zw
from tests.view.scenes import scene_in
from zwang.errors import ShapeError, StateError
from zwang.mechanism.samples import double_pendulum


@pytest.fixture
def shown():
    with zw.view(double_pendulum(), browser=False) as page:
        yield page


def ask(page, path=None, method="GET", **headers):
    """Status and body of a request; a header is replaced by giving it, `Sec_Fetch_Site` for Sec-Fetch-Site."""
    url = urlsplit(page.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, url.path if path is None else path, headers=named)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


def test_the_page_is_there_for_who_has_the_address(shown):
    status, body, headers = ask(shown)
    assert status == 200 and scene_in(body)["title"] == "double pendulum" and scene_in(body)["live"]
    assert headers["Cache-Control"] == "no-store" and headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in headers


def test_only_this_machine_is_listened_to(shown):
    assert shown._server.server_address[0] == "127.0.0.1"
    port = shown._server.server_port
    try:
        known = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except socket.gaierror:
        known = []  # a machine that does not know its own name
    for address in {str(info[4][0]) for info in known}:
        if not address.startswith("127."):
            with pytest.raises(OSError):
                socket.create_connection((address, port), timeout=1).close()


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/"}, {"path": "/wrong/"}, {"path": "/events"}, {"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Host": ""},
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
    ],
)  # fmt: skip
def test_everyone_else_gets_nothing(shown, change):
    status, body, _ = ask(shown, **change)
    assert (status, body) == (404, "not found")


def test_nothing_else_is_served(shown):
    token = urlsplit(shown.url).path
    for path in (token.rstrip("/"), token + "../", token + "etc/passwd", token + "events/"):
        assert ask(shown, path)[0] == 404
    for method in ("POST", "PUT", "OPTIONS", "HEAD"):
        assert ask(shown, method=method)[0] == 501


def test_tokens_are_long_and_never_the_same():
    tokens = set()
    for _ in range(3):
        with zw.view(double_pendulum(), browser=False) as page:
            tokens.add(urlsplit(page.url).path.strip("/"))
    assert len(tokens) == 3 and all(len(token) >= 32 for token in tokens)


def test_configurations_reach_pages_that_listen_and_the_latest_those_that_come_later(shown):
    shown.show([0.1, 0.2])
    shown.show([0.3, 0.4])
    url = urlsplit(shown.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    connection.request("GET", url.path + "events", headers={"Origin": f"http://{url.netloc}"})
    answer = connection.getresponse()
    assert answer.status == 200 and answer.getheader("Content-Type") == "text/event-stream"

    def message():
        while not (line := answer.readline()).startswith(b"data: "):
            assert line
        return json.loads(line[6:])

    assert message() == {"q": [0.3, 0.4], "world": 0}
    shown.show([0.5, 0.6])
    assert message() == {"q": [0.5, 0.6], "world": 0}
    connection.close()


def test_what_is_no_configuration_is_refused(shown):
    with pytest.raises(ShapeError):
        shown.show([1.0])
    with pytest.raises(StateError):
        shown.show([1.0, np.nan])
    with pytest.raises(ShapeError, match="worlds 0 to 0"):
        shown.show([1.0, 2.0], world=1)


def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_out(shown):
    text = shown._repr_html_()
    assert text.startswith('<iframe sandbox="allow-scripts"') and text.count("<") == 2


def test_a_closed_page_is_gone():
    page = zw.view(double_pendulum(), browser=False)
    page.close()
    with pytest.raises(OSError):
        ask(page)

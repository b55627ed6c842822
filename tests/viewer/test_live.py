"""The live page is served to this computer only, only with the token, and not to pages of another origin."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import numpy as np
import pytest
import rich

import zwang as zw
from zwang.errors import ShapeError, SimulationError, StateError
from zwang.mechanism.samples import double_pendulum

viser = pytest.importorskip("viser")
guard = pytest.importorskip("zwang.viewer.page.server_guard")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture(scope="module")
def served():
    with zw.view(double_pendulum(), browser=False) as page:
        yield page


def ask(page, path=None, method="GET", **headers):
    """Status, body and headers of a response; a header is given by its name, `Sec_Fetch_Site` for
    Sec-Fetch-Site.
    """
    url = urlsplit(page.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, url.path if path is None else path, headers=named)
    response = connection.getresponse()
    found = response.status, response.read(), dict(response.getheaders())
    connection.close()
    return found


@contextlib.contextmanager
def websocket(page, path=None, **headers):
    """A websocket as viser's page opens it: at the page's own address, with its origin."""
    url = urlsplit(page.url)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named = {"Origin": f"http://{url.netloc}", **named}
    where = f"ws://{url.netloc}{url.path.rstrip('/') if path is None else path}"
    protocol = [f"viser-v{viser.__version__}"]
    with client.connect(where, subprotocols=protocol, additional_headers=named, proxy=None) as opened:
        yield opened


FOREIGN_REQUESTS = [
    {"path": "/"},
    {"path": "/wrong/"},
    {"path": "/?token"},
    {"Host": "evil.example"},
    {"Host": "evil.example:80"},
    {"Host": ""},
    {"Host": "127.0.0.1:1"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
]


def test_the_page_is_served_at_its_address(served):
    status, body, headers = ask(served)
    assert status == 200 and b"<html" in body and len(body) > 100_000
    assert headers["Cache-Control"] == "no-store" and headers["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    assert ask(served, urlsplit(served.url).path.rstrip("/"))[0] == 200
    with websocket(served) as opened:
        assert len(opened.recv(timeout=20)) > 100


@pytest.mark.parametrize("change", FOREIGN_REQUESTS)
def test_other_requests_get_404(served, change):
    status, body, headers = ask(served, **change)
    assert (status, body) == (404, b"not found")
    assert served.url not in str(headers)


@pytest.mark.parametrize("change", [c for c in FOREIGN_REQUESTS if "Host" not in c])
def test_other_websocket_requests_get_404(served, change):
    with pytest.raises(exceptions.InvalidStatus, match="404"), websocket(served, **change):
        pass


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "localhost"])
def test_no_websocket_for_another_host(served, host):
    """As after a name server's lie: the address is ours, the name is not."""
    url = urlsplit(served.url)
    lines = [
        f"GET {url.path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: viser-v{viser.__version__}",
    ]
    for wanted, text in ((b"404", lines), (b"101", [lines[0], f"Host: {url.netloc}", *lines[2:]])):
        with socket.create_connection((url.hostname, url.port), timeout=20) as connection:
            connection.sendall("\r\n".join([*text, "", ""]).encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 " + wanted)


def test_nothing_else_is_served(served):
    token = urlsplit(served.url).path
    for path in (token + "index.html", token + "../", token + "etc/passwd", "/index.html", "//" + token):
        assert ask(served, path)[0] == 404
    for method in ("POST", "PUT", "OPTIONS", "DELETE"):
        with contextlib.suppress(http.client.HTTPException, OSError):  # it hangs up
            assert ask(served, method=method)[0] >= 400


def test_the_server_listens_on_the_loopback_address_only(served):
    """127.0.0.2 is this machine too, and reaches who listens to all addresses."""
    assert served._page.server.get_host() == "127.0.0.1"
    known = {"127.0.0.2"}
    with contextlib.suppress(socket.gaierror):  # a machine that does not know its own name
        known |= {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in known - {"127.0.0.1"}:
        with pytest.raises(OSError):
            socket.create_connection((address, urlsplit(served.url).port), timeout=1).close()


def test_no_page_can_request_a_public_address(served):
    handlers = served._page.server._websock_server._incoming_handlers
    assert handlers and not [kind for kind in handlers if "Share" in kind.__name__]


def test_tokens_are_long_and_never_the_same():
    tokens = {guard.ServerGuard().token for _ in range(20)}
    assert len(tokens) == 20 and all(len(token) >= 32 for token in tokens)


def test_a_server_that_cannot_be_guarded_is_stopped(monkeypatch):
    """If a version of viser starts its server differently, the server is stopped before it serves a page."""
    started = []
    make = viser.ViserServer

    def remembered(*arguments, **settings):
        started.append(make(*arguments, **settings))
        return started[-1]

    monkeypatch.setattr(guard, "_guard_inserted", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(viser, "ViserServer", remembered)
    with pytest.raises(SimulationError, match="cannot guard"):
        zw.view(double_pendulum(), browser=False)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", started[0].get_port()), timeout=1).close()


def test_without_viser_an_error_names_the_package_to_install():
    code = (
        "import sys; sys.modules['viser'] = None\nimport zwang as zw\n"
        "from zwang.mechanism.samples import double_pendulum\n"
        "try: zw.view(double_pendulum(), browser=False)\n"
        "except zw.errors.MissingExtraError as error: print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'zwang[view]'" in printed and len(printed.splitlines()) == 1


def test_viser_is_loaded_when_a_page_is_shown_and_not_before():
    code = "import sys, zwang as zw; zw.view, zw.save_html; "
    code += "print('viser' in sys.modules, 'websockets' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["False", "False"]


def test_nothing_is_printed(capsys):
    with zw.view(double_pendulum(), browser=False):
        pass
    assert capsys.readouterr().out == ""


def test_nothing_is_printed_in_a_notebook(monkeypatch):
    """In a notebook, rich, with which viser prints, passes its lines to the notebook."""
    console, shown = rich.get_console(), []
    monkeypatch.setattr(console, "print", lambda *words, **_: console.quiet or shown.append(words))
    zw.view(double_pendulum(), browser=False).close()
    assert shown == [] and not console.quiet


def test_configurations_are_shown(served):
    served.show([0.3, 0.4])
    np.testing.assert_array_equal(served._page.playback.configuration(0, 0.0), [0.3, 0.4])


def test_invalid_configurations_raise_errors(served):
    with pytest.raises(ShapeError):
        served.show([1.0])
    with pytest.raises(StateError):
        served.show([1.0, np.nan])
    with pytest.raises(ShapeError, match="worlds 0 to 0"):
        served.show([1.0, 2.0], world=1)


def test_a_notebook_shows_the_offline_page_in_a_sandboxed_frame(served):
    text = served._repr_html_()
    assert text.startswith('<iframe sandbox="allow-scripts"') and text.count("<") == 2


def test_a_closed_page_is_no_longer_served():
    page = zw.view(double_pendulum(), browser=False)
    page.close()
    page.close()
    with pytest.raises(OSError):
        ask(page)

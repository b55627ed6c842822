"""Headless Chromium for tests, controlled over a pipe by the DevTools protocol, without further packages."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BROWSER = next(
    (p for n in ("google-chrome", "chromium", "chromium-browser", "chrome") if (p := shutil.which(n))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
TIMEOUT = 60.0  # [s]
LAUNCH = """import os, sys
ends = [os.dup(int(end)) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)  # where the browser reads and writes
    os.set_inheritable(number, True)  # also if it was there already
os.execv(sys.argv[3], sys.argv[3:])"""


class Browser:
    """One tab. `errors` collects the exceptions and the console errors of the pages."""

    def __init__(self, profile: Path, size: tuple[int, int] = (1280, 760)):
        browser_in, self_out = os.pipe()
        self_in, browser_out = os.pipe()
        command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        command = [sys.executable, "-c", LAUNCH, str(browser_in), str(browser_out), *command]
        self._process = subprocess.Popen(
            command, pass_fds=(browser_in, browser_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(browser_in)
        os.close(browser_out)
        self._in, self._out, self._rest, self._count = self_in, self_out, b"", 0
        self.errors: list[str] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(*size)

    def resize(self, width: int, height: int) -> None:
        """The size of the window in pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def open(self, url: str) -> None:
        """Go to a page and wait until it has drawn."""
        self.call("Page.navigate", url="about:blank")
        self.errors.clear()
        self.call("Page.navigate", url=url)
        self.until(
            "document.readyState === 'complete' && "
            "(Boolean(window.zwang) || document.getElementById('error')?.hidden === false)"
        )
        self.settle()

    def settle(self) -> None:
        """Wait until the page has drawn its last changes."""
        self.run(
            "new Promise(done => requestAnimationFrame(() => "
            "requestAnimationFrame(() => requestAnimationFrame(done))))"
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(json.dumps(found["exceptionDetails"])[:800])
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true. Raises TimeoutError."""
        end = time.monotonic() + TIMEOUT
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def screenshot(self) -> bytes:
        """The window as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command of the protocol; events that arrive before it are searched for errors."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (response := self._next()).get("id") != self._count:
            self._record_errors(response)
        if "error" in response:
            raise AssertionError(f"{method}: {response['error']}")
        return response["result"]

    def _record_errors(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"].get("exception", params)))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str(params["args"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], TIMEOUT)[0]:
                raise TimeoutError("the browser does not respond")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise ConnectionError("the browser has ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = None
            self.call("Browser.close")
        except (ConnectionError, TimeoutError, BrokenPipeError):
            pass
        os.close(self._in)
        os.close(self._out)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

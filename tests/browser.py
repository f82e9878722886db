"""A browser without a window, driven over its debugging protocol.

Standard library only: chromium is started with --remote-debugging-pipe, which
reads and writes JSON, each message ended by NUL, on descriptors 3 and 4.

    with Browser() as b:
        page = b.open("/path/page.html", width=1280, height=800)
        page.js("document.title")
        page.key("Tab")
        page.close()

The network is off; page.requests, page.said are what the page asked for and
what came on its console.  As a program:

    browser.py shot PAGE PNG [WIDTHxHEIGHT] [dark] [JS ...]
"""
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds for an answer


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="pipeformer-browser.")
        to, self.out = os.pipe()
        self.inp, back = os.pipe()

        def ends():  # in the child: first out of the way, then to 3 and 4
            a = fcntl.fcntl(to, fcntl.F_DUPFD, 10)
            b = fcntl.fcntl(back, fcntl.F_DUPFD, 10)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--user-data-dir=" + self.dir,
             "--no-first-run", "--disable-extensions", "--disable-sync",
             "--disable-background-networking", "--disable-dev-shm-usage",
             "--disable-component-update", "--password-store=basic",
             "--host-resolver-rules=MAP * ~NOTFOUND", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=ends, pass_fds=(3, 4))
        os.close(to)
        os.close(back)
        self.buf, self.last, self.pages = b"", 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.inp)
        os.close(self.out)
        shutil.rmtree(self.dir, ignore_errors=True)

    def message(self, until):
        while b"\0" not in self.buf:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.inp, 1 << 20)
            if not got:
                raise EOFError("the browser has ended")
            self.buf += got
        text, self.buf = self.buf.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, params=None, session=None):
        self.last += 1
        m = {"id": self.last, "method": method, "params": params or {}}
        if session:
            m["sessionId"] = session
        data = json.dumps(m).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        until = time.monotonic() + LIMIT
        while True:
            m = self.message(until)
            if m.get("id") == self.last:
                if "error" in m:
                    raise RuntimeError("%s: %s" % (method, m["error"]))
                return m["result"]
            page = self.pages.get(m.get("sessionId"))
            if page and "method" in m:
                page.event(m["method"], m["params"])

    def open(self, path, width=1280, height=800, dark=False):
        target = self.call("Target.createTarget",
                           {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {
            "targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.call("Network.emulateNetworkConditions", {
            "offline": True, "latency": 0, "downloadThroughput": 0,
            "uploadThroughput": 0})
        page.call("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": False})
        page.call("Emulation.setFocusEmulationEnabled", {"enabled": True})
        page.shade(dark)
        page.call("Page.navigate", {"url": pathlib.Path(path).resolve()
                                    .as_uri()})
        page.wait("document.readyState === 'complete'")
        return page


# Keys that are more than their name: code, text.
KEYS = {" ": (32, " "), "Enter": (13, "\r"), "Tab": (9, ""), "Home": (36, ""),
        "End": (35, ""), "Escape": (27, ""), "PageUp": (33, ""),
        "PageDown": (34, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, ""),
        "ArrowRight": (39, ""), "ArrowDown": (40, "")}
SHIFT = 8


class Page:
    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session
        self.requests, self.said = [], []

    def call(self, method, params=None):
        return self.browser.call(method, params, self.session)

    def event(self, method, p):
        if method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(p["args"]))
        elif method == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.said.append(d.get("exception", d).get("description", str(d)))
        elif method == "Log.entryAdded":
            self.said.append(p["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.said.append("dialog: " + p["message"])
            self.call("Page.handleJavaScriptDialog", {"accept": True})

    def js(self, text):
        """The value of an expression; of a promise, what it becomes."""
        got = self.call("Runtime.evaluate", {
            "expression": text, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in got:
            raise RuntimeError("%s: %s" % (text, got["exceptionDetails"]))
        return got["result"].get("value")

    def wait(self, text):
        until = time.monotonic() + LIMIT
        while not self.js(text):
            if time.monotonic() > until:
                raise TimeoutError(text)
            time.sleep(0.02)

    def frame(self):
        """Until what was asked for is drawn."""
        self.js("new Promise((f) => requestAnimationFrame(() =>"
                " requestAnimationFrame(() => setTimeout(f, 0))))")

    def key(self, key, times=1, modifiers=0):
        code, text = KEYS.get(key, (0, key))
        p = {"key": key, "code": "Space" if key == " " else key,
             "windowsVirtualKeyCode": code, "modifiers": modifiers}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", dict(
                p, type="keyDown" if text else "rawKeyDown", text=text))
            self.call("Input.dispatchKeyEvent", dict(p, type="keyUp"))
        self.frame()

    def mouse(self, kind, x, y, modifiers=0):
        self.call("Input.dispatchMouseEvent", {
            "type": kind, "x": x, "y": y, "modifiers": modifiers,
            "button": "none" if kind == "mouseMoved" else "left",
            "clickCount": 0 if kind == "mouseMoved" else 1})

    def middle(self, selector, k=0):
        """Of the k-th such element, which is brought into view."""
        return self.js("""(() => {
            const e = document.querySelectorAll(%s)[%d];
            e.scrollIntoView({ block: 'nearest' });
            const b = e.getBoundingClientRect();
            return [b.x + b.width / 2, b.y + b.height / 2];
        })()""" % (json.dumps(selector), k))

    def hover(self, selector, k=0):
        x, y = self.middle(selector, k)
        self.mouse("mouseMoved", x, y)
        self.frame()

    def click(self, selector, k=0, modifiers=0):
        x, y = self.middle(selector, k)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, modifiers)
        self.frame()

    def shade(self, dark):
        self.call("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}]})

    def shot(self, path):
        data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", {"targetId": self.target})
        del self.browser.pages[self.session]


def main(argv):
    if argv[:1] != ["shot"] or len(argv) < 3:
        sys.exit("usage: browser.py shot PAGE PNG [WxH] [dark] [JS ...]")
    width, height = map(int, (argv[3] if len(argv) > 3 else "1280x800")
                        .split("x"))
    rest = argv[4:]
    with Browser() as b:
        page = b.open(argv[1], width, height, dark=rest[:1] == ["dark"])
        for text in rest[rest[:1] == ["dark"]:]:
            page.js(text)
            page.frame()
        page.frame()
        page.shot(argv[2])
        for s in page.said:
            print(s, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])

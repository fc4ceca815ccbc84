"""A headless Chromium, driven through its own DevTools protocol over two pipes. Python's standard library alone."""

import base64
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time


def expect(true, what, got=""):
    if not true:
        raise AssertionError(f"{what}{f', got {got}' if got != '' else ''}")


def unique_names(scripts, least):
    """The scripts of a page are one: a function that two of them define would be the last one's, without a word."""
    seen = {}
    for file in sorted(scripts.glob("*.js")):
        for name in re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", file.read_text(), re.M):
            expect(name not in seen, f"{name} must be defined once", f"{seen.get(name)} and {file.name}")
            seen[name] = file.name
    expect(len(seen) > least, "the scripts must have been read", len(seen))


def find_chromium():
    """The path of Debian's chromium, or of one of its relatives; None where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One browser process with a fresh profile. Messages end with a zero byte, in both directions."""

    def __init__(self, path):
        self.profile = tempfile.TemporaryDirectory(prefix="engram-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        # The browser reads from descriptor 3 and writes to 4, whatever the pipes have here.
        def place_pipes():
            high = [os.dup2(to_browser, 40), os.dup2(from_browser, 41)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--mute-audio",
             "--hide-scrollbars", f"--user-data-dir={self.profile.name}"],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.events, self.next_id = b"", [], 0

    def close(self):
        try:
            self.call("Browser.close", timeout=10)
        except (OSError, TimeoutError, RuntimeError):
            self.process.kill()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for end in (self.write_end, self.read_end):
            os.close(end)
        # Its helpers may still be writing there.
        shutil.rmtree(self.profile.name, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("the browser said nothing in time")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        raw, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(raw)

    def call(self, method, session=None, timeout=60, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        deadline = time.monotonic() + timeout
        while True:
            answer = self.message(deadline)
            if answer.get("id") != self.next_id:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def page(self, **how):
        return Page(self, **how)


class Page:
    """A tab of its own. What it asks of the network, says on the console and throws is kept."""

    def __init__(self, browser, width=1600, height=1000, dark=False, scripts=True):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.width, self.height = width, height
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def events(self, method):
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event.get("method") == method]

    def open(self, url, ready="document.documentElement.dataset.ready === 'true'", timeout=30):
        """Opens the address; returns the seconds until it is ready. `ready`: an expression; empty: when it has loaded."""
        begun = time.monotonic()
        self.call("Page.navigate", url=url)
        while time.monotonic() - begun < timeout:
            if not ready:
                self.call("Page.getLayoutMetrics")  # events come with answers
                if self.events("Page.loadEventFired"):
                    return time.monotonic() - begun
            try:
                if ready and self.value(ready):
                    return time.monotonic() - begun
            except RuntimeError:
                pass  # one document goes, the other comes
            time.sleep(0.01)
        raise TimeoutError(f"{url} must be ready within {timeout} s\n  " + "\n  ".join(self.faults()))

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return result["result"].get("value")

    def faults(self):
        """Errors and warnings of the console, what was thrown, and what the page asked of anybody but its own address."""
        faults = [f"console: {' '.join(str(part.get('value', part.get('description'))) for part in event['args'])}"
                  for event in self.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        faults += [f"thrown: {event['exceptionDetails'].get('exception', {}).get('description', event['exceptionDetails']['text'])}"
                   for event in self.events("Runtime.exceptionThrown")]
        faults += [f"log: {event['entry']['text']}" for event in self.events("Log.entryAdded")
                   if event["entry"]["level"] in ("error", "warning")
                   and not event["entry"]["text"].startswith("Canvas2D: Multiple readback")]  # by who looks at pixels
        return faults

    def requests(self):
        """What it asked for, but for data that stand in the page itself."""
        urls = [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith("data:")]

    def key(self, key, code=None, shift=False):
        names = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, " ": 32}
        event = {"key": key, "code": code or key, "windowsVirtualKeyCode": names.get(key, ord(key[0])), "modifiers": 8 if shift else 0}
        if key in ("Enter", " "):
            event["text"] = "\r" if key == "Enter" else " "
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in event.items() if k != "text"})

    def mouse(self, kind, x, y, button="none", buttons=0, clicks=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=clicks)

    def screenshot(self, file, clip=None, whole=True):
        """A PNG of the whole page, of the window, or of what clip() says: (x, y, width, height) of the page."""
        how = {"format": "png", "captureBeyondViewport": False}
        if whole or clip:
            # A window as high as the page: capturing beyond it would have charts resized while the picture is taken.
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            self.resize(self.width, min(size["height"], 16000))
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = clip() if clip else (0, 0, size["width"], min(size["height"], 16000))
            how["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", **how)["data"]))
        if whole or clip:
            self.resize(self.width, self.height)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=int(height), deviceScaleFactor=1,
                  mobile=width < 500)
        time.sleep(0.4)  # frames, in which charts follow

    def clip_of(self, selector, margin=8):
        """Where an element lies on the page, for screenshot()."""
        box = self.value(f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
                         "return [box.left + scrollX, box.top + scrollY, box.width, box.height]; })()")
        return (max(0, box[0] - margin), max(0, box[1] - margin), box[2] + 2 * margin, box[3] + 2 * margin)

    def draw_all(self):
        """Has everything drawn that waits until somebody sees it."""
        self.value("(() => { for (const element of [...waiting.keys()]) drawNow(element); })()")

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        self.browser.events = [event for event in self.browser.events if event.get("sessionId") != self.session]

"""What becomes of a page of `engram watch` in a browser while its runs begin, go on and go, and its reader does things."""

import fcntl
import json
import shutil
import signal
import subprocess
import time

from devtools import expect

ASK = "document.dispatchEvent(new Event('visibilitychange'))"  # now, and not two seconds later
DETAILS = "[...document.querySelectorAll('#provenance details')].map(element => element.open)"
SORT = "document.querySelector('#runs-table th:nth-child(3)')"
STEPS = "[...document.querySelectorAll('#runs-table tbody td:nth-child(3)')].map(cell => Number(cell.dataset.order))"


def until(page, expression, what, ask=""):
    begun = time.monotonic()
    while True:
        try:
            if ask:
                page.value(ask)
            if page.value(expression):
                return
        except RuntimeError:
            pass  # one document goes, the other comes
        expect(time.monotonic() - begun < 30, what)
        time.sleep(0.05)


class Server:
    """A process of `engram watch`; its address is None where the program has no server."""

    def __init__(self, runs, *arguments):
        self.process = subprocess.Popen([runs.program, "watch", *arguments, "--only-logs"], cwd=runs.folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            said = self.process.communicate()[1]
            expect("built without cpp-httplib" in said, "watch must print its address", said)

    @property
    def port(self):
        return self.url.rstrip("/").rsplit(":", 1)[1]

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate()


class GrowingRuns:
    """Copies of a run whose logs grow line by line, as if they were trained."""

    def __init__(self, runs, names):
        self.folder, self.names, self.locks = runs.folder, names, []
        self.lines = (runs.folder / "all-attention/metrics.jsonl").read_text().splitlines(keepends=True)
        self.fed = {name: 0 for name in names}
        for name in names:
            (self.folder / name).mkdir()
            shutil.copy(self.folder / "all-attention/config.toml", self.folder / name)
            self.locks.append(open(self.folder / name / "lock", "w"))
            fcntl.flock(self.locks[-1], fcntl.LOCK_EX)

    def feed(self, name, reports):
        """So many reports of training, and what is between them."""
        with open(self.folder / name / "metrics.jsonl", "a") as log:
            while reports:
                line = self.lines[self.fed[name]]
                self.fed[name] += 1
                reports -= '"event":"train"' in line
                log.write(line)

    def write(self, name, line):
        with open(self.folder / name / "metrics.jsonl", "a") as log:
            log.write(json.dumps(line) + "\n")

    def feed_and_see(self, page, name, reports):
        self.feed(name, reports)
        step = [line["step"] for line in map(json.loads, self.lines[:self.fed[name]]) if line["event"] == "train"][-1]
        until(page, f"page.runs[{self.names.index(name)}].step >= {step}", f"what '{name}' reports must come", ASK)


def growing(check):
    """Two runs that have not begun when their page is opened."""
    runs = GrowingRuns(check.runs, ["late", "later"])
    with Server(check.runs, "late", "later") as server:
        if not server.url:
            return
        page = check.browser.page()
        page.open(server.url)
        hidden = "document.getElementById('progress').classList.contains('hidden')"
        expect(page.value(hidden), "a run without a report has no part Training")
        runs.feed_and_see(page, "late", 3)
        page.draw_all()
        if page.value("hasCharts"):
            expect(page.value("charts[0].chart.scales.y.type") == "linear", "bits per character have a linear axis")
        runs.feed_and_see(page, "later", 2)
        page.draw_all()
        # Without Chart.js it has nothing to show.
        expect(page.value(hidden) != page.value("hasCharts"), "the first report must bring the part Training")
        if page.value("hasCharts"):
            charts(check, runs, page)
        reader(runs, page)
        gone(runs, page, server)
        strangers = [asked for asked in page.requests() if not asked.startswith(server.url)]
        expect(strangers == [] and page.faults() == [], "watch asks its own program alone", strangers + page.faults())
        port = server.port
    page.value("window.isOld = true")
    # As many runs as before: their names alone would be new.
    with Server(check.runs, "transformer-xl", "recurrent", "--port", port):
        until(page, "!window.isOld && page.runs[0].name === 'transformer-xl'",
              "another program at the address must have the page loaded anew", ASK)
    page.close()
    check.pages += 1


def charts(check, runs, page):
    """Charts go on where they are, and leave nothing behind."""
    page.value("""(() => {
      window.listeners = 0;
      const add = window.addEventListener;
      window.addEventListener = (...all) => (++listeners, add.apply(window, all)); })()""")
    held = "[charts.length, waiting.size, listeners, document.querySelectorAll('canvas').length]"
    before = page.value(held)
    for _ in range(3):
        runs.feed_and_see(page, "late", 1)
    expect(page.value(held) == before, "what comes must not make more charts, or listeners", page.value(held))
    # Who looks at an earlier step and a part of the charts goes on doing so.
    page.value("(() => { const slider = document.querySelector('#span-maps input'); slider.value = 1; "
               "slider.dispatchEvent(new Event('input')); zoom([1, 3]); })()")
    kept = "[document.querySelector('#span-maps .controls span').textContent, byId('zoom-out').classList.contains('hidden')]"
    seen = page.value(kept)
    expect(seen[0] == "step 2" and not seen[1], "the second report, and a button that shows all again", seen)
    runs.feed_and_see(page, "late", 2)
    expect(page.value(kept) == seen, "news must leave the step and the range as they were", page.value(kept))
    page.value("byId('theme').click()")
    expect(page.value(kept) == seen, "so must other colours", page.value(kept))
    page.value("zoom(null), view.moments.clear(), drawAll()")
    page.draw_all()
    expect(page.value("document.querySelector('#span-maps input').value === document.querySelector('#span-maps input').max"),
           "who has chosen none sees the newest step")


def reader(runs, page):
    """What a reader has sorted, opened and looked at stays when the page has news."""
    page.value(f"{SORT}.querySelector('button').click(), {SORT}.querySelector('button').click()")
    page.value("document.querySelectorAll('#provenance details').forEach(element => element.open = !element.open)")
    page.value(f"{SORT}.querySelector('button').focus()")
    opened = page.value(DETAILS)
    expect(True in opened and len(opened) > 2, "there must be something to open", opened)
    # A row more of the history, so that the part is another one.
    runs.write("later", {"event": "resume", "step": 3, "steps": 30})
    runs.feed_and_see(page, "later", 9)
    expect("resume" in page.value("byId('provenance').textContent"), "the history must have the resume")
    expect(page.value(f"{SORT}.getAttribute('aria-sort')") == "descending", "the runs must stay sorted")
    steps = page.value(STEPS)
    expect(steps == sorted(steps, reverse=True) and len(set(steps)) == 2, "by what they are sorted by", steps)
    expect(page.value(DETAILS) == opened, "what was opened or closed must stay so", page.value(DETAILS))
    expect(page.value(f"document.activeElement === {SORT}.querySelector('button')"), "the focus must stay where it was",
           page.value("document.activeElement.outerHTML.slice(0, 80)"))
    # A part without news is left alone.
    page.value("document.querySelector('#memory').dataset.mark = 'x', document.querySelector('#memory p:last-child').id = 'mark'")
    runs.feed_and_see(page, "later", 1)
    expect(page.value("!!byId('mark')"), "a part that is as it was must not be written anew")


def gone(runs, page, server):
    """Runs that are moved away stay on the page; an answer that is none is told as such."""
    said = "document.querySelector('.live').textContent"
    # A server that looks between the two sees one that has not begun beside one that goes on, and that is another story.
    server.process.send_signal(signal.SIGSTOP)
    for name in runs.names:
        (runs.folder / name).rename(runs.folder / (name + "-away"))
    server.process.send_signal(signal.SIGCONT)
    until(page, "byId('head').textContent.includes('The runs are gone')", "runs that are gone must be said to be", ASK)
    expect("live" in page.value(said) and page.value("page.runs[0].step > 0"), "and the page stays", page.value(said))
    for name in runs.names:
        (runs.folder / (name + "-away")).rename(runs.folder / name)
    until(page, "!byId('head').textContent.includes('gone')", "until they are back", ASK)
    page.value("window.realFetch = fetch, window.fetch = async () => new Response('no', {status: 500})")
    until(page, f"{said}.includes('an error, 500')", "an error of the program is no end of it", ASK)
    page.value("window.fetch = realFetch")
    until(page, f"{said}.endsWith('live')", "and goes", ASK)


def trained(check):
    """A run that is trained, interrupted, and left by the program that shows it."""
    training = check.runs.start("watched")
    try:
        check.runs.wait_for("watched", 3)
        with Server(check.runs, "watched") as server:
            if not server.url:
                print("  the program has no server; watch is not checked")
                return
            page = check.browser.page()
            page.open(server.url)
            state = "page.runs[0].state + ' ' + document.querySelector('#runs-table .state').textContent"
            expect(page.value(state) == "training training", "a run that goes on is being trained", page.value(state))
            first = page.value("page.runs[0].step")
            until(page, f"page.runs[0].step > {first}", "its steps must grow on the page")
            training.send_signal(signal.SIGINT)
            until(page, state + " === 'interrupted interrupted'", "and its end must be seen", ASK)
            training.wait()
            strangers = [asked for asked in page.requests() if not asked.startswith(server.url)]
            expect(strangers == [] and page.faults() == [], "watch asks its own program alone", strangers + page.faults())
        until(page, "document.querySelector('.live').classList.contains('lost')", "the end of the program too", ASK)
        page.close()
        check.pages += 1
    finally:
        if training.poll() is None:
            training.kill()
        training.wait()


def check_live(check):
    trained(check)
    growing(check)

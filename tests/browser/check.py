#!/usr/bin/env python3
"""Opens pages of `engram report` and `engram watch` in a real browser, and looks at what it makes of them.

  tests/browser/check.py PROGRAM                    what every day checks: half a minute
  tests/browser/check.py PROGRAM --large            logs of 100,000 lines too: a minute more
  tests/browser/check.py PROGRAM --screenshots DIR  keeps pictures of every page, 320, 800 and 1600 pixels wide

Ends with 77 where there is no Chromium.
"""

import argparse
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from devtools import Browser, expect, find_chromium, unique_names
from live_check import check_live
from runs import HOSTILE, MODELS, Runs

WIDTHS = (320, 800, 1600)


class Check:
    def __init__(self, browser, runs, screenshots):
        self.browser, self.runs, self.screenshots = browser, runs, screenshots
        self.pages = 0

    def report(self, name, *runs, **how):
        done = self.runs.engram("report", *runs, "--out", f"{name}.html", "--length", "8", **how)
        return f"file://{self.runs.folder / name}.html", done

    def open(self, url, name, width=1600, dark=False):
        """A page without a fault, drawn to its end."""
        page = self.browser.page(width=width, dark=dark)
        seconds = page.open(url)
        page.draw_all()
        expect(page.faults() == [], f"{name}: the console must be silent", page.faults())
        expect(page.requests() == [url], f"{name}: nothing must be asked for but the page itself", page.requests())
        wide = page.value("[document.documentElement.scrollWidth, innerWidth]")
        expect(wide[0] <= wide[1], f"{name}: must not be wider than a window of {width}", wide)
        lost = page.value("[...document.querySelectorAll('a[href^=\"#\"]')].map(link => link.hash.slice(1)).filter(id => !byId(id))")
        expect(lost == [], f"{name}: links must lead somewhere", lost)
        self.pages += 1
        if self.screenshots:
            page.screenshot(f"{self.screenshots}/{name}-{width}{'-dark' if dark else ''}.png")
        return page, seconds

    def every_width(self, url, name):
        for width in WIDTHS:
            page, _ = self.open(url, name, width, dark=width == 800)
            page.close()

    def numbers(self, page, run, index):
        """The lines on the screen are those of the log, and a pixel of a point has its colour."""
        train = [line for line in self.runs.lines(run) if line["event"] == "train"]
        # Alone, as dots of others may lie on its own.
        page.value(f"view.y = 'nats', view.smooth = 0, view.off = new Set(page.runs.keys()), view.off.delete({index}), redrawCharts()")
        shown = page.value(f"charts[0].chart.data.datasets.find(set => set.line.run === {index} && !set.line.faint && "
                           "!set.line.dots).data.map(point => [point.x, point.y])")
        expect(len(shown) == len(train), f"{run}: as many points as reports, {len(train)}", len(shown))
        for point, line in zip(shown, train):
            expect(point[0] == line["step"] and math.isclose(point[1], line["nll"], rel_tol=1e-6),
                   f"{run}: the point of step {line['step']} must be {line['nll']}", point)
        best = min(line["nll"] for line in self.runs.lines(run) if line["event"] == "valid_short")
        cell = page.value(f"document.querySelector('#runs-table tr[data-run=\"{index}\"]').cells[3].dataset.order")
        expect(math.isclose(float(cell), best, rel_tol=1e-5), f"{run}: the table's best loss must be {best}", cell)
        same = page.value(f"""(() => {{
          const chart = charts[0].chart, dots = chart.data.datasets.find(set => set.line.run === {index} && set.line.dots);
          const point = dots.data[dots.data.length - 1], scale = devicePixelRatio;
          const x = chart.scales.x.getPixelForValue(point.x) * scale, y = chart.scales.y.getPixelForValue(point.y) * scale;
          const {{data}} = chart.ctx.getImageData(Math.round(x) - 2, Math.round(y) - 2, 5, 5);
          const ink = [1, 3, 5].map(at => parseInt(dots.backgroundColor.slice(at, at + 2), 16));
          const far = at => ink.reduce((sum, part, i) => sum + Math.abs(part - data[at + i]), 0);
          return Math.min(...Array.from({{length: 25}}, (_, i) => far(4 * i))); }})()""")
        page.value("view.off.clear(), redrawCharts()")
        expect(same < 60, f"{run}: the dot of its last validation must be drawn in its colour", same)

    def keyboard(self, page):
        page.value("document.querySelector('#runs-table th:nth-child(7) button').focus()")
        page.key("Enter")
        order = page.value("[...document.querySelectorAll('#runs-table tbody td:nth-child(7)')].map(cell => Number(cell.dataset.order))")
        expect(order == sorted(order), "Enter on a heading must sort the runs by it", order)
        page.key("Enter")
        expect(page.value("document.querySelector('#runs-table th:nth-child(7)').getAttribute('aria-sort')") == "descending",
               "a second time the other way")
        lines = page.value("charts[0].chart.data.datasets.length")
        page.value("document.querySelector('#legend button').focus()")
        page.key(" ")
        expect(page.value("charts[0].chart.data.datasets.length") < lines, "Space on a run of the legend must take its lines away")
        page.key(" ")
        page.value("charts[0].plot.focus()")
        for _ in range(3):
            page.key("ArrowRight")
        shown = page.value("charts.filter(chart => chart.readout.style.display === 'block').length")
        expect(shown > 3, "the arrow keys must move one cursor over all charts", shown)
        page.key("+")
        expect(page.value("view.range !== null"), "+ must change the range of all charts")
        page.key("Escape")
        expect(page.value("view.range === null"), "Escape must show all of it again")
        # Everything that can be clicked can be reached.
        stops = page.value("[...document.querySelectorAll('button, a, input, summary, .plot')].every(element => element.tabIndex >= 0 "
                           "|| element.classList.contains('token'))")
        expect(stops, "Tab must reach every button")

    def mouse(self, page):
        page.value("charts[0].plot.scrollIntoView({block: 'center', behavior: 'instant'})")
        left, top, width, height = page.value("(() => { const box = charts[0].plot.getBoundingClientRect(); "
                                              "return [box.left, box.top, box.width, box.height]; })()")
        page.mouse("mouseMoved", left + width * 0.4, top + height / 2)
        expect(page.value("charts[0].readout.style.display") == "block", "the mouse must move the cursor")
        page.mouse("mousePressed", left + width * 0.4, top + height / 2, "left", 1, 1)
        page.mouse("mouseMoved", left + width * 0.7, top + height / 2, "left", 1)
        page.mouse("mouseReleased", left + width * 0.7, top + height / 2, "left", 0, 1)
        expect(page.value("view.range && view.range[1] > view.range[0]"), "dragging must choose a range")
        page.value("zoom(null)")

    def attention(self, page):
        """Heads are drawn, of every family, and a click on one shows it."""
        tabs = page.value("document.querySelectorAll('#attention-maps .tabs button').length")
        expect(tabs == len(MODELS), "every family must have its attention", tabs)
        page.value("document.querySelector('#attention-maps .tabs button').click()")
        page.draw_all()
        drawn = page.value("[...document.querySelectorAll('.head canvas')].map(canvas => new Set(canvas.getContext('2d')"
                           ".getImageData(0, 0, canvas.width, canvas.height).data).size)")
        expect(len(drawn) == 4 and min(drawn) > 8, "all heads must be drawn", drawn)
        page.value("document.querySelectorAll('.head')[2].click()")
        page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        title = page.value("document.querySelector('.closely h3').textContent")
        expect(title.startswith("Layer 1, head 0"), "a click on a head must show it closely", title)
        marked = page.value("[...document.querySelectorAll('.closely .token')].filter(token => token.style.background).length")
        expect(marked > 0, "the tokens that it looks at must be marked")
        page.value("byId('theme').click()")
        expect(page.value("document.querySelector('.closely h3').textContent") == title, "other colours must leave it")

        inks = "[...document.querySelectorAll('.head canvas')].map(canvas => canvas.getContext('2d')" \
               ".getImageData(0, 0, canvas.width, canvas.height).data.reduce((sum, part) => sum + part, 0))"
        page.draw_all()
        before = page.value(inks)
        page.value("document.querySelector('#attention-maps .controls .button').click()")
        changed = [one != other for one, other in zip(before, page.value(inks))]
        expect(changed.count(False) == 1, "on one scale only the head with the largest weight keeps its colours", changed)
        if page.value("hasCharts"):
            lines = page.value("charts.find(chart => chart.plot.closest('#offsets')).chart.data.datasets.map(set => "
                               "[set.label, set.data.length, set.data.every(point => point.x <= 0 && point.y >= 0)])")
            expect([line[0] for line in lines] == list(MODELS) and all(line[1] > 3 and line[2] for line in lines),
                   "every model must have its line of offsets", lines)

    def comparison(self):
        """Means and ranges over seeds are those of the logs."""
        url, _ = self.report("seeds", "seeds")
        page, _ = self.open(url, "seeds")
        if page.value("hasCharts"):
            chart = "charts.find(chart => chart.plot.closest('#comparison-chart')).chart"
            points = f"{chart}.data.datasets.map(set => [Boolean(set.line.faint), set.data.map(point => [point.x, point.y])])"
            shown = page.value(points)
            wanted = [[False, []]]
            for slots in (4, 8):
                best = [min(line["nll"] for line in self.runs.lines(f"seeds/slots-{slots}-seed-{seed}")
                            if line["event"] == "valid_short") / math.log(2) for seed in (1, 2)]
                wanted[0][1].append([slots, sum(best) / 2])
                wanted.append([True, [[slots, min(best)], [slots, max(best)]]])
            for (faint, line), (is_faint, expected) in zip(shown, wanted):
                expect(faint == is_faint and len(line) == len(expected) and
                       all(math.isclose(a, b, rel_tol=1e-5) for one, two in zip(line, expected) for a, b in zip(one, two)),
                       f"the comparison must show {expected}", line)
            page.value("[...document.querySelectorAll('#comparison-chart .button')].find(one => one.textContent === "
                       "'parameters').click()")
            page.draw_all()
            parameters = page.value(f"{chart}.data.datasets[0].data.map(point => point.y)")
            expect(len(parameters) == 2 and parameters[1] > parameters[0], "more slots are more parameters", parameters)
        expect(page.faults() == [], "nothing of this may raise an error", page.faults())
        page.close()

    def small(self):
        self.runs.make_small()
        url, _ = self.report("families", *MODELS)
        self.every_width(url, "families")
        page, _ = self.open(url, "families")
        has_charts = page.value("hasCharts")
        if has_charts:
            for index, run in enumerate(MODELS):
                self.numbers(page, run, index)
            self.keyboard(page)
            self.mouse(page)
        else:
            print("  the program was built without Chart.js: lines are not looked at, which most of this is about")
        self.attention(page)
        self.themes(url)
        for choice in ("tokens", "hours", "steps", "bits", "perplexity", "own unit", "x", "y"):
            page.value("[...document.querySelectorAll('#loss .button')].find(button => button.textContent === "
                       f"'{choice}'){'' if has_charts else '?'}.click()")
        page.value("byId('theme').click()")
        expect(page.call("Page.printToPDF")["data"].startswith("JVBERi"), "the page must go on paper")
        expect(page.faults() == [], "nothing of this may raise an error", page.faults())
        page.close()

        outcomes = ["diverged", "resumed", "empty", "sweep", HOSTILE, "nothing"]
        self.comparison()
        url, done = self.report("outcomes", *outcomes)
        expect(done.stderr.count("'nothing' must be a run") == 1, "what is no run must be said", done.stderr)
        self.every_width(url, "outcomes")
        page, _ = self.open(url, "outcomes")
        states = page.value("[...document.querySelectorAll('#runs-table .state')].map(cell => cell.textContent)")
        expect(states == ["diverged", "interrupted", "not begun", "done", "done", "done"], "states of runs", states)
        menu = page.value("[...document.querySelectorAll('#contents a')].map(link => link.textContent)")
        expect("Time" not in menu and "Loss" in menu and "Samples" in menu, "the menu must name what is not empty", menu)
        missing = page.value("[...document.querySelectorAll('section:not(.hidden) .missing')].map(note => note.textContent)")
        expect(len(missing) == 4 and all("diverged: no checkpoint was kept" in note for note in missing),
               "what is missing must be said in each part", missing)
        expect(page.value("page.runs[5].name") == HOSTILE and page.value("document.images.length") == 0,
               "a name must be no markup")
        if has_charts:
            self.numbers(page, "sweep/slots-4", 3)
        page.close()
        self.without_scripts(url)

    def themes(self, url):
        """Light, dark and paper: by the browser's setting, and by the button."""
        light, dark = "rgb(252, 252, 250)", "rgb(19, 21, 24)"
        shown = "getComputedStyle(document.body).backgroundColor"
        for is_dark in (False, True):
            page = self.browser.page(dark=is_dark)
            page.open(url)
            seen = [page.value(shown)]
            page.value("byId('theme').click()")
            seen.append(page.value(shown))
            expect(seen == ([dark, light] if is_dark else [light, dark]), "the colours by setting and by button", seen)
            page.value("root.dataset.theme = 'dark'")
            page.call("Emulation.setEmulatedMedia", media="print")
            ink = page.value("getComputedStyle(document.body).color")
            expect(ink == "rgb(27, 29, 32)", "ink on paper must be dark", ink)
            page.close()

    def without_scripts(self, url):
        page = self.browser.page(scripts=False)
        page.open(url, ready="")
        document = page.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        for selector, what in (("noscript svg polyline", "a drawing of the losses"), ("#runs-table tbody tr", "the runs"),
                               (".command", "the commands"), ("table.samples td", "samples")):
            found = page.call("DOM.querySelectorAll", nodeId=document, selector=selector)["nodeIds"]
            expect(found, f"without scripts there must be {what}")
        expect(page.faults() == [], "a page without scripts has no faults", page.faults())
        if self.screenshots:
            page.screenshot(f"{self.screenshots}/without-scripts-1600.png")
        page.close()

    def large(self):
        url, _ = self.report("large", *self.runs.make_large(8, 100_000))
        size = (self.runs.folder / "large.html").stat().st_size
        expect(size < 5_000_000, "eight runs of 100,000 reports must be a page below 5 MB", size)
        page, seconds = self.open(url, "large")
        print(f"  eight runs of 100,000 reports: {size / 1e6:.2f} MB, ready after {seconds:.2f} s")
        expect(seconds < 2, "and ready within two seconds", seconds)
        count = page.value("charts[0].chart.data.datasets[0].data.length")
        expect(2000 < count <= 4000, "of at most 4,000 points a line", count)
        page.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--screenshots", metavar="DIR")
    arguments = parser.parse_args()
    unique_names(Path(__file__).resolve().parents[2] / "apps/studies/page/script", 40)
    chromium = find_chromium()
    if not chromium:
        print("There is no Chromium: pages are not looked at.")
        return 77
    if arguments.screenshots:
        Path(arguments.screenshots).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="engram-pages-") as folder, Browser(chromium) as browser:
        check = Check(browser, Runs(str(Path(arguments.program).resolve()), folder), arguments.screenshots)
        check.small()
        check_live(check)
        if arguments.large:
            check.large()
        print(f"{check.pages} pages opened: no error, no request, numbers as in the logs.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Opens pages of `engram tape` in a real browser, and steps through them.

  tests/browser/tape.py PROGRAM                    what every day checks: a few seconds
  tests/browser/tape.py PROGRAM --screenshots DIR  keeps pictures of every page, 320 to 1600 pixels wide
  tests/browser/tape.py PROGRAM --picture FILE     makes the picture of docs/guide/tape.md alone

Ends with 77 where there is no Chromium.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from devtools import Browser, expect, find_chromium, unique_names

SCRIPTS = Path(__file__).resolve().parents[2] / "apps/tape/page"
WIDTHS = (320, 800, 1000, 1200, 1300, 1440, 1520, 1600)


class Check:
    def __init__(self, browser, program, folder, screenshots):
        self.browser, self.program, self.folder, self.screenshots = browser, program, Path(folder), screenshots
        self.pages = 0

    def make(self, name, *arguments):
        subprocess.run([self.program, "tape", "--out", f"{name}.html", *arguments], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)
        return f"file://{self.folder / name}.html"

    def open(self, url, name, width=1600, height=900, dark=False, at=0):
        page = self.browser.page(width=width, height=height, dark=dark)
        page.open(f"{url}#{at}")
        expect(page.faults() == [], f"{name}: the console must be silent", page.faults())
        expect([asked.split("#")[0] for asked in page.requests()] == [url], f"{name}: nothing must be asked for but the page itself",
               page.requests())
        wide = page.value("[document.documentElement.scrollWidth, innerWidth]")
        expect(wide[0] <= wide[1], f"{name}: must not be wider than a window of {width}", wide)
        self.header(page, f"{name}, {width} wide")
        self.pages += 1
        if self.screenshots:
            page.screenshot(f"{self.screenshots}/{name}-{width}{'-dark' if dark else ''}-{at}.png", whole=False)
        return page

    def header(self, page, name):
        """Title, facts and the button lie side by side or one below the other, each of them whole."""
        over = page.value("""(() => {
          const parts = [...document.querySelectorAll('header .made, header h1, header .facts > div, header #tools button')];
          const boxes = parts.map(part => part.getBoundingClientRect()), faults = [];
          const head = document.querySelector('header').getBoundingClientRect();
          boxes.forEach((box, i) => {
            if (box.bottom > head.bottom + 1) faults.push(parts[i].textContent + ' hangs out of the header');
            for (let j = 0; j < i; ++j)
              if (box.left < boxes[j].right - 1 && boxes[j].left < box.right - 1 && box.top < boxes[j].bottom - 1 &&
                  boxes[j].top < box.bottom - 1) faults.push(parts[j].textContent + ' lies over ' + parts[i].textContent);
          });
          const title = document.querySelector('header h1').getBoundingClientRect(), button = boxes[boxes.length - 1];
          if (button.top > title.bottom || button.right < head.right - 40) faults.push('the button is not at the upper right');
          return faults; })()""")
        expect(over == [], f"{name}: nothing of the header may overlap", over)

    def every_position(self, page, name):
        """What is shown belongs to the position, whichever it is."""
        for position in range(page.value("lastPosition") + 1):
            page.value(f"goTo({position})")
            words = page.value("[byId('where').textContent, document.querySelector('#now .phase').textContent, byId('slider').value, "
                               "document.querySelectorAll('.row.now').length, byId('now').textContent.includes('undefined')]")
            expect(words[2] == str(position), f"{name}: the slider must be at {position}", words)
            turn = page.value("turn")
            expect(words[3] == (0 if position == turn else 1), f"{name}: one row must be the present one", words)
            phase = "Forward" if position < turn else "The turn" if position == turn else "Backward"
            expect(words[0].startswith(phase) and words[1].startswith(phase), f"{name}: position {position}", words)
            expect(not words[4], f"{name}: nothing may be undefined at {position}")
        expect(page.faults() == [], f"{name}: no position may raise an error", page.faults())

    def numbers(self, page):
        """The cells are the numbers of the recording, and gradients stand beside their differences."""
        page.value("goTo(1)")
        cells = page.value("[...document.querySelector('#now .tensor .grid').children].map(cell => cell.title.split(': ')[1])")
        numbers = page.value("values[ops[1].outputs[0]].numbers.map(String)")
        expect(cells == numbers, "the first card must have the numbers of the output", cells)
        page.value("goTo(backwardPosition(1))")
        how = page.value("[...document.querySelectorAll('#now .how')].map(how => how.textContent)")
        wanted = page.value("ops[1].backward.shares.map(share => share.how.toUpperCase())")
        expect(how == wanted and len(how) > 1, "every share must say how it arrives", how)
        checks = page.value("[...document.querySelectorAll('#now .check')].map(check => check.className)")
        expect(checks and all(check.endswith("good") for check in checks), "gradients must be their differences", checks)
        # An add says what was there: the sum of the two is what is there now.
        sums = page.value("""(() => { for (let op = 0; op < ops.length; ++op) for (const share of ops[op].backward.shares)
          if (share.how === 'add' && share.before && share.before.some(was => was !== 0)) { goTo(backwardPosition(op));
            const card = [...document.querySelectorAll('.share')].find(card => card.textContent.includes('+ this share'));
            return [...card.querySelectorAll('.grid')].slice(0, 3).map(grid => Number(grid.children[0].title.split(': ')[1])); } })()""")
        expect(abs(sums[0] + sums[1] - sums[2]) < 1e-6, "was + share must be now", sums)

    def words(self, page):
        """Operands have their roles, and what was compared is said with its numbers."""
        attention = page.value("ops.findIndex(op => op.name === 'attention')")
        roles = "[...document.querySelectorAll('#now .tensor')].map(card => card.querySelector('.role')?.textContent ?? '')"
        page.value(f"goTo({attention})")
        wanted = ["query", "keys of the past", "values of the past", "keys", "values"]
        found = [role for role in page.value(roles) if role]
        expect(found == wanted, "operands of attention must have their roles", found)
        for op, role in ((1, "query"), (2, "keys"), (3, "values")):
            page.value(f"goTo({op})")
            expect(page.value(roles)[0] == f"{role} of {attention} attention", f"operation {op} makes the {role}", page.value(roles))
        page.value(f"goTo(backwardPosition({attention}))")
        given = [role for role in page.value(roles) if role]
        expect(sorted(given) == sorted(wanted), "gradients must have the roles of their values", given)
        page.value("goTo(turn)")
        count = page.value("tape.checked.toLocaleString('en')")
        expect(page.value("byId('agreed').textContent").startswith(f"✓ {count} of {count} agree: they are at most 1e−6 "),
               "the turn must say how many gradients agree, and how well", page.value("byId('agreed').textContent"))
        expect(page.value("values[tape.worst_value].difference === tape.worst && tape.worst <= tape.tolerance"),
               "the worst must be the worst")

    def role_words(self, page, name):
        unknown = page.value("ops.flatMap(op => op.kept).filter(kept => kept.value >= 0 && /quer|key|value/.test(kept.name) && "
                             "!roleWords[kept.name]).map(kept => kept.name)")
        expect(unknown == [], f"{name}: every operand that is a query, key or value must have a word", unknown)

    def keyboard(self, page):
        page.value("goTo(0), document.activeElement.blur()")
        at = "state.at"
        for key, place in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
            page.key(key)
            expect(page.value(at) == place, f"{key} must lead to {place}", page.value(at))
        page.key("End")
        expect(page.value(at) == page.value("lastPosition"), "End must lead to the end", page.value(at))
        page.key("Home")
        expect(page.value(at) == 0, "Home must lead to the beginning", page.value(at))
        page.value("byId('speed').value = '350'")
        page.key(" ")
        begun = time.monotonic()
        while page.value(at) < 2:
            expect(time.monotonic() - begun < 10, "Space must play")
            time.sleep(0.05)
        page.key(" ")
        expect(page.value("state.timer") == 0, "Space must stop it again")
        page.value("document.querySelector('.row.scope').focus()")
        rows = page.value("rows.length")
        page.key("Enter")
        expect(page.value("rows.length") < rows, "Enter on a scope must fold it", page.value("rows.length"))
        expect(page.value("document.activeElement.getAttribute('aria-expanded')") == "false", "and the focus must stay")
        page.key("Enter")
        expect(page.value("rows.length") == rows, "a second time unfolds it", page.value("rows.length"))
        stops = page.value("[...document.querySelectorAll('#deck button, #deck input, #deck select, .row.scope, #tools button')]"
                           ".every(element => element.tabIndex >= 0 && (element.textContent || element.getAttribute('aria-label')))")
        expect(stops, "Tab must reach everything, and everything must have a name")

    def mouse(self, page):
        left, top, width, height = page.value("(() => { const box = byId('curve').getBoundingClientRect(); "
                                              "return [box.left, box.top, box.width, box.height]; })()")
        page.mouse("mousePressed", left + width * 0.75, top + height / 2, "left", 1, 1)
        page.mouse("mouseReleased", left + width * 0.75, top + height / 2, "left", 0, 1)
        count = page.value("lastPosition + 1")
        expect(page.value("state.at") == int(0.75 * count), "a click on the curve must lead there", page.value("state.at"))
        page.value("document.querySelector('.row[data-op=\"3\"]').click()")
        expect(page.value("state.at === backwardPosition(3)"), "a click on an operation must lead to it", page.value("state.at"))

    def small(self):
        for family in ("all_attention", "transformer_xl", "product_key", "recurrent"):
            url = self.make(family, "--family", family)
            page = self.open(url, family)
            self.every_position(page, family)
            self.role_words(page, family)
            page.close()
        url = f"file://{self.folder}/all_attention.html"
        for width in WIDTHS:
            self.open(url, "widths", width, dark=width == 800, at=30).close()
        page = self.open(url, "all_attention", at=5)
        expect(page.value("state.at") == 5, "an address with a position must open there", page.value("state.at"))
        list_fits = page.value("byId('tape').scrollHeight <= byId('tape').clientHeight + 1 && "
                               "document.querySelector('.screen').scrollHeight <= innerHeight")
        expect(list_fits, "two layers must fit a screen of 1600 x 900")
        self.numbers(page)
        self.words(page)
        self.keyboard(page)
        self.mouse(page)
        page.value("byId('theme').click()")
        expect(page.faults() == [], "nothing of this may raise an error", page.faults())
        page.close()

    def large(self):
        url = self.make("large", "--set", "model.layers=30", "training.span_loss=0.1", "--numbers", "20", "--differences", "0")
        page = self.open(url, "large")
        expect(page.value("ops.length") > 250, "a large model must have many operations", page.value("ops.length"))
        expect(page.value("document.querySelectorAll('.row.scope[aria-expanded=\"false\"]').length") >= 30, "its layers must be folded")
        page.value("foldAll(false)")
        page.value("goTo(100)")
        expect(page.value("(() => { const row = document.querySelector('.row.now').getBoundingClientRect(), list = "
                          "byId('tape').getBoundingClientRect(); return row.top >= list.top && row.bottom <= list.bottom; })()"),
               "the present row must be scrolled to")
        expect(page.faults() == [], "unfolding must raise no error", page.faults())
        page.close()

    def without_scripts(self):
        page = self.browser.page(scripts=False)
        page.open(f"file://{self.folder}/all_attention.html", ready="")
        document = page.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        rows = page.call("DOM.querySelectorAll", nodeId=document, selector="details[open] tbody tr")["nodeIds"]
        expect(len(rows) == 17, "without scripts there must be a table of the operations", len(rows))
        expect(page.faults() == [], "a page without scripts has no faults", page.faults())
        page.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--screenshots", metavar="DIR")
    parser.add_argument("--picture", metavar="FILE")
    arguments = parser.parse_args()
    unique_names(SCRIPTS, 30)
    chromium = find_chromium()
    if not chromium:
        print("There is no Chromium: pages are not looked at.")
        return 77
    if arguments.screenshots:
        Path(arguments.screenshots).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="engram-tape-") as folder, Browser(chromium) as browser:
        check = Check(browser, str(Path(arguments.program).resolve()), folder, arguments.screenshots)
        if arguments.picture:
            # Backward through the map that makes values: its share is added to one that is there.
            page = check.open(check.make("picture"), "picture", 1440, 860, at=31)
            page.screenshot(arguments.picture, whole=False)
            return 0
        check.small()
        check.large()
        check.without_scripts()
        print(f"{check.pages} pages opened: no error, no request, numbers as recorded.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

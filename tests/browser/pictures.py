#!/usr/bin/env python3
"""The pictures of docs/guide/report.md and the README, from a page of `engram report`:

  bash apps/quickstart.sh                          # the data, once
  build/program/apps/engram sweep --config apps/configs/kjv/kjv-quick.toml --data runs/kjv-quick-data \\
      --out runs/kjv-spans --variant kjv-quick --variant short-spans:model.max_span=64 --variant few-slots:model.slots=48 \\
      --set schedule.steps=1200 training.gradient_report=true training.validate_every=150 --test
  build/program/apps/engram report runs/kjv-spans --out runs/kjv-spans.html
  python3 tests/browser/pictures.py runs/kjv-spans.html docs/pictures
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from devtools import Browser, find_chromium

WIDTH = 1080


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    with Browser(find_chromium()) as browser:
        page = browser.page(width=WIDTH, height=900)
        page.open(source.as_uri())
        page.draw_all()
        page.value("new Promise(done => setTimeout(done, 300))")

        def picture(name, first, last):
            """From one element to the end of another."""
            def clip():
                top, end = page.clip_of(first, 16), page.clip_of(last, 10)
                return 0, top[1], WIDTH, end[1] + end[3] - top[1]
            page.screenshot(folder / name, clip)

        picture("report.png", "header.top", "#loss-chart .chart")
        picture("spans.png", "#span-maps", "#span-maps")
        picture("attention.png", "#attention-maps", ".closely")
        if page.faults():
            print("\n".join(page.faults()), file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

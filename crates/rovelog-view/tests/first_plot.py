"""Measures the time until a first plot is drawn.

first_plot.py CHROMIUM ROVELOG LOG TOPIC:FIELD prints the time from the start of `rovelog view` until the signal is drawn,
for three attempts.
"""

import sys
import time
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from browser import SIZE, drawn, view


def main():
    chromium, rovelog, log, signal = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(3):
            page = browser.new_page(viewport=SIZE)
            start = time.monotonic()
            with view([rovelog], log) as address:
                page.goto(f"{address}#log={quote(Path(log).name)}&plot={quote(signal, safe=':')}")
                drawn(page, 1)
                print(f"{Path(log).name} {signal}: {time.monotonic() - start:.2f} s", flush=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

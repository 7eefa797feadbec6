"""Tests the page that opens logs in the browser, in a headless Chromium without a network.

page.py CHROMIUM ROVELOG PAGE LARGE FOLDER... drops each log of the folders on the page. Topics, counts and CSV files must
be equal to those of the command line, and damaged logs must show their problems. LARGE is a large RLD recording, whose
plots must first show a preview.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

LOG = re.compile(r"\.(ulg|rld|bag|vel)(\.(gz|bz2|xz|zst|lz4))?$")
#: Numbers of topics and rows per log whose CSV files are compared.
MAX_TOPICS, MAX_ROWS = 12, 50_000

TOPICS = "async n => JSON.parse(new TextDecoder().decode((await rovelogSource.ask(`logs/${n}/topics`)).bytes))"
# The result of a topic that cannot be decoded is null.
CSV = """async ([n, topic]) => {
    const asked = rovelogSource.ask(`logs/${n}/csv?${new URLSearchParams({ topic })}`);
    return asked.then(({ bytes }) => new TextDecoder().decode(bytes), () => null);
}"""


class Page:
    """The page in a browser, and a list of errors that occurred on it."""

    def __init__(self, browser, address):
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        self.context.set_offline(True)
        self.page, self.bad = self.context.new_page(), []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.bad.append(said.text))
        self.page.on("pageerror", lambda error: self.bad.append(str(error)))
        self.page.on("request", self.asked)
        self.page.goto(address)
        self.number = -1

    def asked(self, request):
        if not request.url.startswith(("file:", "blob:", "data:")):
            self.bad.append(f"request to {request.url}")

    def wait(self, condition, arg=None):
        """Waits until a function of the page returns true. Playwright's own wait is forbidden by the policy of the page."""
        end = time.time() + 60
        while not self.page.evaluate(condition, arg):
            assert time.time() < end, condition
            time.sleep(0.005)

    def drop(self, *files):
        """Opens the files of one log. Returns the text of the error, or None."""
        self.number += 1
        # The error of the log before would end the wait too early.
        self.page.evaluate("document.getElementById('problem').hidden = true")
        self.page.set_input_files("#more-files" if self.number else "#files", [str(file) for file in files])
        self.wait("n => !document.getElementById('problem').hidden || rovelogView.log()?.number === n", self.number)
        return None if self.page.evaluate("document.getElementById('problem').hidden") else self.page.text_content("#problem")

    def problems(self):
        """Opens the section with the findings and problems, and returns the number of problems."""
        self.page.evaluate("document.getElementById('findings').open = true")
        self.wait("() => found.childElementCount || document.getElementById('found-more').textContent.startsWith('Nothing')")
        rows = self.page.locator("#found td:first-child", has_text="bytes ").count()
        self.page.evaluate("document.getElementById('findings').open = false")
        return rows


def rovelog(program, *args):
    """Runs the command line, and returns its exit code and output."""
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
    return done.returncode, done.stdout


def companions(log):
    """The other files of a recording."""
    stem = log.name.removesuffix(".rld")
    return [other for other in sorted(log.parent.glob("*.rld")) if other != log
            and re.fullmatch(re.escape(stem) + r"(-ambient)?(_p\d+)?\.rld", other.name)] if log.name.endswith(".rld") else []


def compare(page, program, log, seen):
    code, out = rovelog(program, "topics", log, "-f", "json", "-q")
    error = page.drop(log, *companions(log))
    if code not in (0, 3):
        assert error, f"{log}: only the page opens it"
        seen["refused"] += 1
        return
    assert not error, f"{log}: {error}"
    wanted = {topic["name"]: (topic["type"], topic["count"]) for topic in json.loads(out)["topics"]}
    topics = page.page.evaluate(TOPICS, page.number)
    assert {topic["name"]: (topic["type"], topic["count"]) for topic in topics} == wanted, f"{log}: the topics differ"
    _, out = rovelog(program, "check", log, "-f", "json", "-q")
    if json.loads(out)["problems"]:
        assert page.problems() > 0, f"{log}: the page shows no problem of the file"
        seen["damaged"] += 1
    shown = [topic["name"] for topic in topics if topic["count"] > 0]
    chosen = [topic["name"] for topic in topics if 0 < topic["count"] <= MAX_ROWS][:MAX_TOPICS]
    with tempfile.TemporaryDirectory() as folder:
        rovelog(program, "export", log, "--to", "csv", "-o", folder, "--force", "-q")
        exported = {file.read_bytes().decode() for file in Path(folder).rglob("*.csv")}
    texts = {topic: page.page.evaluate(CSV, [page.number, topic]) for topic in chosen}
    for topic, text in texts.items():
        assert text is None or text in exported, f"{log}: {topic} differs from the command line's"
    if len(chosen) == len(shown):
        assert len(set(texts.values()) - {None}) == len(exported), f"{log}: the page exports other topics"
    seen["values"] += sum(text.count(",") for text in texts.values() if text)
    seen["logs"] += 1


def check_preview(page, large):
    """Drops a large recording. Its plots show a few samples first, and then all."""
    started = time.time()
    error = page.drop(large)
    assert not error, f"{large}: {error}"
    drawn = "rovelogView.drawn().filter(plot => plot).flatMap(plot => plot.series.map(({ count }) => count))"
    page.wait(f"() => {drawn}.length > 0")
    first, records = page.page.evaluate(f"() => [{drawn}[0], rovelogView.log().records]")
    middle = time.time()
    assert 0 < first < records / 10, f"{large}: {first} of {records} samples are drawn first"
    page.wait(f"records => rovelogView.drawn().every(plot => plot) && {drawn}.every(count => count === records)", records)
    print(f"{large.name}: first plots after {middle - started:.2f} s, all samples after {time.time() - started:.2f} s")


def main():
    chromium, program, address, large, *folders = sys.argv[1:]
    logs = sorted(log for folder in folders for log in Path(folder).rglob("*") if LOG.search(log.name))
    others = {other for log in logs for other in companions(log)}
    seen = {"logs": 0, "refused": 0, "damaged": 0, "values": 0}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page, started = Page(browser, Path(address).resolve().as_uri()), time.time()
        for log in logs:
            if log not in others:
                compare(page, program, log, seen)
            assert not page.bad, (log, page.bad)
            if page.number == 99:
                page.context.close()
                page = Page(browser, Path(address).resolve().as_uri())
        check_preview(page, Path(large))
        print(f"page: {seen['logs']} logs, {seen['values']} values of CSV files equal, {seen['damaged']} logs with problems, "
              f"{seen['refused']} refused, {time.time() - started:.0f} s")
        # The policy of the page forbids connections of scripts.
        page.bad.clear()
        refused = page.page.evaluate("fetch('https://example.com/').then(() => false, () => true)")
        assert refused and any("Content Security Policy" in said for said in page.bad), page.bad
        browser.close()


if __name__ == "__main__":
    main()

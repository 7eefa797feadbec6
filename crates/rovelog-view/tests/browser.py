"""Tests the page of `rovelog view`, and the pages of plots and reports, in a headless Chromium.

browser.py CHROMIUM ROVELOG [REAL] opens a log of each format, searches, adds signals, zooms, overlays another log, and
compares the drawn values with `rovelog cat`. It fails if the console shows an error, if a page sends a request to another
server, if axe reports an accessibility error, or if a hostile log runs a script.
"""

import csv
import io
import json
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[3]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
SIZE = {"width": 1280, "height": 900}
BAD = "<img src=x onerror=\"document.title='run';window.hit=1\">"

#: For each format, a real log and a corpus log, which is used if the real log is missing. Each log has a text to search
#: for, and a signal whose values are compared with `cat`.
LOGS = [
    [("ulog/sample_log_small.ulg", "battery voltage_v", ("battery_status/0", "voltage_v")),
     ("ulog/utc-gps-int32.ulg", "gps lat", ("vehicle_gps_position/0", "lat"))],
    [("rld/test_full.rld", "v1", ("samples", "V1")), ("rld/v4.rld", "v1", ("samples", "V1"))],
    [("rosbag12/indexed.bag", "orientation.x", ("/imu/data", "orientation.x")),
     ("rosbag/robot.bag", "latitude", ("/fix", "latitude"))],
    [("vel/gps_nmea_units.vel", "speed", ("OBDDataM", "speed")), ("vel/all-kinds.vel", "speed", ("OBDDataM", "speed"))],
]


class Seen:
    """A page of the browser, and a list of errors that occurred on it."""

    def __init__(self, browser, address="", **options):
        self.context = browser.new_context(viewport=SIZE, **options)
        self.page, self.bad, self.address = self.context.new_page(), [], address
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.bad.append(said.text))
        self.page.on("pageerror", lambda error: self.bad.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.bad.append("dialog"), dialog.dismiss()))
        self.page.on("request", self.asked)

    def asked(self, request):
        if not request.url.startswith((self.address or "file:", "data:")):
            self.bad.append(f"request to {request.url}")

    def finish(self, what):
        assert not self.bad, (what, self.bad)
        self.context.close()

    def accessible(self, what):
        found = self.page.evaluate(f"async () => {{ {AXE}; return (await axe.run()).violations }}")
        short = [(rule["id"], [node["html"][:160] for node in rule["nodes"]][:3]) for rule in found]
        assert not found, (what, short)


@contextmanager
def view(rovelog, *logs):
    """Runs a server that shows logs, and yields its URL."""
    server = subprocess.Popen([*rovelog, "view", "--no-open", "-q", *map(str, logs)], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), address
        yield address
    finally:
        server.terminate()
        server.wait()


def drawn(page, plots):
    """Waits until this number of plots is drawn and all have values. Returns the drawn data."""
    page.wait_for_function(
        "n => { const d = rovelogView.drawn(); return d.length === n && d.every(p => p && p.series.length) }", arg=plots
    )
    return page.evaluate("rovelogView.drawn()")


def cat(rovelog, log, topic, field):
    """Returns the times in nanoseconds and the values of a field, as printed by `rovelog cat`."""
    command = [*rovelog, "cat", str(log), "--topics", topic, "--fields", field.split("[")[0], "-f", "csv"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    name = next(key for key in rows[0] if key == field or key.endswith("." + field))
    value = {"true": 1.0, "false": 0.0}
    return [(int(row["t_ns"]), value.get(row[name]) if row[name] in value else float(row[name] or "nan")) for row in rows]


def same(a, b):
    """Compares two numbers. A 32-bit float is printed with its shortest digits, but drawn as a 64-bit float."""
    return a == b or struct.pack("f", a) == struct.pack("f", b)


def compare(page, rovelog, log, topic, field):
    """Compares the extreme values with `cat`. Then zooms until all values are drawn, and compares these, too."""
    rows = cat(rovelog, log, topic, field)
    label = f"{topic.removesuffix('/0')}.{field}"
    line = lambda: next(s for p in page.evaluate("rovelogView.drawn()") for s in p["series"] if s["label"] == label)
    whole = line()
    assert whole["count"] == len(rows), (whole["count"], len(rows))
    values = [v for _, v in rows if v == v]
    shown = [v for v in whole["v"] if v is not None]
    assert same(min(shown), min(values)) and same(max(shown), max(values)), label
    # Seconds are counted from the start of the log's data. The first value is always drawn.
    zero = rows[0][0] - round(whole["t"][0] * 1e9)
    exact = lambda points: [(zero + round(t * 1e9), v) for t, v in points]
    chart = page.get_by_role("img", name=label.rsplit(".", 1)[0]).last
    chart.focus()
    for _ in range(30):
        a, b = page.evaluate("rovelogView.view()")
        if sum(zero + a * 1e9 <= t <= zero + b * 1e9 for t, _ in rows) <= 200:
            break
        page.keyboard.press("+")
    page.wait_for_timeout(400)
    points = [(t, v) for t, v in zip(line()["t"], line()["v"]) if a <= t <= b]
    expected = [(t, v) for t, v in rows if zero + a * 1e9 - 500 <= t <= zero + b * 1e9 + 500 and v == v]
    found = [(t, v) for t, v in exact(points) if v is not None]
    assert len(found) > 1 and abs(len(found) - len(expected)) <= 2, (label, len(found), len(expected))
    # Values with the same time are drawn one after the other, 100 ns apart.
    for t, v in found[1:-1]:
        assert any(abs(t - other) < 2000 and same(v, value) for other, value in expected), (label, t, v)
    page.keyboard.press("f")


def look(browser, rovelog, log, words, signal):
    """Opens a log and uses the page as a user does."""
    with view(rovelog, log, "--max-unpacked", "3GiB") as address:
        seen = Seen(browser, address)
        page = seen.page
        page.goto(address)
        page.wait_for_function("() => document.querySelectorAll('#tree li').length > 0")
        before = len(drawn(page, page.locator("#plots figure").count()))
        page.keyboard.press("/")
        page.keyboard.type(words)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        page.get_by_role("treeitem", name=signal[1], exact=False).first.wait_for()
        row = page.locator("#tree li[aria-level='2']").get_by_text(signal[1], exact=True).first
        row.click()
        drawn(page, before + 1)
        # The findings and problems are those of the commands.
        page.get_by_text("Findings and problems of the file").click()
        page.wait_for_function("() => document.querySelector('#found tr') || /^Nothing/.test(document.getElementById('found-more').textContent)")
        listed = lambda command, key: len(json.loads(subprocess.run(
            [*rovelog, command, str(log), "-f", "json"], capture_output=True, text=True).stdout)[key])
        assert page.locator("#found tr").count() == listed("findings", "findings") + listed("check", "problems")
        # Another signal is dragged into the new plot.
        page.fill("#search", "")
        page.fill("#search", signal[1])
        other = page.locator("#tree li[aria-level='2']").first
        other.drag_to(page.locator("#plots figure").last)
        page.wait_for_timeout(300)
        # All plots share a time axis, so zooming in the first plot by dragging zooms all plots.
        page.evaluate("scrollTo(0, 0)")
        box = page.locator("#plots .u-over").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
        page.mouse.up()
        a, b = page.evaluate("rovelogView.view()")
        full = page.evaluate("rovelogView.full()")
        assert abs((b - a) / full - 0.5) < 0.05, (a, b, full)
        assert page.locator("figcaption output").first.inner_text(), "values at the cursor"
        page.keyboard.press("f")
        assert page.evaluate("rovelogView.view()") == [0, full]
        compare(page, rovelog, log, *signal)
        page.keyboard.press("c")
        command = page.locator("#command").inner_text()
        assert command.startswith("rovelog plot ") and signal[1] in command, command
        assert command.endswith(f" --max-unpacked {3 << 30}"), command
        seen.accessible(log.name)
        # The URL contains the state, so another page with the same URL shows the same.
        page.wait_for_timeout(300)
        again = Seen(browser, address)
        again.page.goto(page.url)
        labels = lambda plots: [[s["label"] for s in plot["series"]] for plot in plots]
        assert labels(drawn(again.page, before + 1)) == labels(drawn(page, before + 1))
        page.wait_for_timeout(500)
        again.finish(log.name)
        seen.finish(log.name)


def measure(browser, rovelog, log):
    """Measures a current between two cursors, zooms with the wheel, and plots an expression and a spectrum."""
    with view(rovelog, log) as address:
        seen = Seen(browser, address)
        page = seen.page
        page.goto(f"{address}#log={log.name}&plot=samples:I1&utc=0")
        drawn(page, 1)
        box = page.locator("#plots .u-over").bounding_box()
        at = lambda part: (box["x"] + box["width"] * part, box["y"] + 60)
        page.mouse.move(*at(0.5))
        assert page.locator(".time").inner_text().endswith(" s"), "time at the cursor"
        page.keyboard.press("m")
        page.get_by_role("cell", name="Ah").wait_for()
        page.mouse.click(*at(0.25))
        # The second click must not look like a double-click.
        page.wait_for_timeout(700)
        page.mouse.click(*at(0.75))
        page.get_by_role("columnheader", name="at B").wait_for()
        page.wait_for_function("() => /measure=[^,&]+,/.test(location.hash)")
        cursors = [float(time) for time in page.evaluate("decodeURIComponent(location.hash.match(/measure=([^&]*)/)[1])").split(",")]
        rows = {field: cat(rovelog, log, "samples", field) for field in ("I1L", "I1H")}
        values = [low if low == low else high for (_, low), (_, high) in zip(rows["I1L"], rows["I1H"])]
        start = rows["I1L"][0][0]
        inside = [v for (t, _), v in zip(rows["I1L"], values) if cursors[0] <= (t - start) / 1e9 <= cursors[1]]
        cells = page.locator(".measures tr").nth(1).locator("td")
        shown = dict(zip(page.locator(".measures th[scope=col]").all_inner_texts()[1:], cells.evaluate_all("cells => cells.map(c => +(c.title || c.textContent))")))
        assert shown["samples"] == len(inside), (shown, len(inside))
        assert shown["min"] == min(inside) and shown["max"] == max(inside), shown
        assert abs(shown["mean"] - sum(inside) / len(inside)) < 1e-9 * max(map(abs, inside)), shown
        seen.accessible("measures")
        before = page.evaluate("rovelogView.view()")
        page.mouse.move(*at(0.5))
        page.mouse.wheel(0, -300)
        page.wait_for_function("before => rovelogView.view()[0] > before[0] && rovelogView.view()[1] < before[1]", arg=before)
        page.keyboard.press("Escape")
        page.get_by_role("columnheader", name="at B").wait_for(state="detached")
        page.fill("#search", "nothing at all")
        assert "No topic or signal matches “nothing at all”" in page.locator("#more").inner_text()
        page.fill("#search", "norm(V1, V2)")
        page.keyboard.press("Enter")
        assert drawn(page, 2)[1]["series"][0]["label"] == "norm(V1, V2)"
        page.fill("#search", "psd(V1)")
        page.keyboard.press("Enter")
        # A spectrum needs 64 samples.
        picture = page.locator("#plots img[alt='psd(V1)']")
        (picture if len(values) >= 64 else page.get_by_text("too few samples")).wait_for()
        page.wait_for_timeout(500)
        seen.finish("measure")


def overlay(browser, rovelog, log):
    """Opens a folder, sorts the table of logs, and overlays a log with a shifted copy of itself."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a", "b"):
            Path(folder, name + log.suffix).write_bytes(log.read_bytes())
        Path(folder, "bad.ulg").write_bytes(b"ULog\x01\x12\x35\x01" + bytes(2))
        with view(rovelog, folder) as address:
            seen = Seen(browser, address)
            page = seen.page
            page.goto(address)
            page.get_by_role("link", name="a" + log.suffix).wait_for()
            page.get_by_role("button", name="size").click()
            page.get_by_role("button", name="size").click()
            page.wait_for_function("() => ![...document.querySelectorAll('#rows td')].some(c => c.textContent === '…')")
            names = page.locator("#rows a").all_inner_texts()
            assert names[-1] == "bad.ulg" and len(names) == 3, names
            seen.accessible("table of logs")
            page.get_by_role("link", name="a" + log.suffix).click()
            page.wait_for_function("() => window.rovelogView && rovelogView.drawn().length")
            plots = page.locator("#plots figure").count()
            before = drawn(page, plots)
            page.select_option("#overlay", "b" + log.suffix)
            page.wait_for_function("n => rovelogView.drawn()[0].series.length === n", arg=2 * len(before[0]["series"]))
            page.fill("#shift", "0.005")
            page.keyboard.press("Tab")
            page.wait_for_function("() => { const s = rovelogView.drawn()[0].series; return s.at(-1).t[0] >= s[0].t[0] + 0.004 }")
            lines = page.evaluate("rovelogView.drawn()")[0]["series"]
            first, second = lines[0], lines[len(lines) // 2]
            assert abs(second["t"][0] - first["t"][0] - 0.005) < 1e-6 and first["v"][0] == second["v"][0]
            page.get_by_role("link", name="All logs").click()
            page.get_by_role("link", name="b" + log.suffix).wait_for()
            seen.finish("overlay")


def bag(topics):
    """Returns a ROS bag V2.0 that has two messages with a number on each topic."""
    field = lambda name, value: struct.pack("<I", len(name) + 1 + len(value)) + name + b"=" + value
    record = lambda header, data: struct.pack("<I", len(header)) + header + struct.pack("<I", len(data)) + data
    connections, messages = b"", b""
    for i, topic in enumerate(topics):
        head = field(b"op", b"\x07") + field(b"conn", struct.pack("<I", i)) + field(b"topic", topic.encode())
        data = field(b"topic", topic.encode()) + field(b"type", b"std_msgs/Float64")
        data += field(b"md5sum", b"fdb28210bfa9d7c91146260178d9a584") + field(b"message_definition", b"float64 data\n")
        connections += record(head, data)
        for second in (1, 2):
            head = field(b"op", b"\x02") + field(b"conn", struct.pack("<I", i)) + field(b"time", struct.pack("<II", second, 0))
            messages += record(head, struct.pack("<d", second))
    body = connections + messages
    head = field(b"op", b"\x05") + field(b"compression", b"none") + field(b"size", struct.pack("<I", len(body)))
    start = field(b"op", b"\x03") + field(b"index_pos", bytes(8)) + field(b"conn_count", bytes(4)) + field(b"chunk_count", bytes(4))
    return b"#ROSBAG V2.0\n" + record(start, b" " * (4096 - len(start) - 8)) + record(head, body)


def ulog():
    """Returns a ULog whose messages contain HTML and control characters."""
    message = lambda kind, data: struct.pack("<HB", len(data), ord(kind)) + data
    texts = [BAD, "</script><script>window.hit=1</script>", "\x1b[31mred\x07", "\u202eoverride", "{{7*7}}", "'\"`"]
    out = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 1)
    out += message("F", b"t:uint64_t timestamp;float x;") + message("A", b"\0\0\0t")
    for i in range(200):
        out += message("D", struct.pack("<HQf", 0, 1_000_000 + i * 10_000, i))
        if i < len(texts):
            out += message("L", b"3" + struct.pack("<Q", 1_000_000 + i * 10_000) + texts[i].encode())
    return out


def hostile(browser, rovelog):
    """Opens hostile logs, whose names and texts contain HTML, and a log with ten thousand topics."""
    names = [BAD, "</script><script>window.hit=1</script>", "javascript:window.hit=1", "\x1b[31m\x07", "\u202e", "a&amp;b", "__proto__", "constructor", "a,b:c|d#e%zz", "../../etc/passwd", "' onclick='window.hit=1"]
    names += [f"/robot/{i}/{'x' * (i % 60)}" for i in range(10_000 - len(names))]
    with tempfile.TemporaryDirectory() as folder:
        # A file name cannot contain a slash.
        for name, content in ((BAD + ".bag", bag(names)), (BAD + ".ulg", ulog())):
            Path(folder, name).write_bytes(content)
        with view(rovelog, folder) as address:
            seen = Seen(browser, address)
            page = seen.page
            page.goto(address)
            page.wait_for_function("() => document.querySelectorAll('#rows a').length === 2")
            for kind in (".ulg", ".bag"):
                page.goto(address)
                page.locator("#rows a", has_text=BAD + kind).click()
                page.wait_for_function("() => window.rovelogView && document.querySelectorAll('#tree li').length > 0")
                drawn(page, page.locator("#plots figure").count())
                if kind == ".ulg":
                    page.get_by_role("cell", name=BAD).wait_for()
                    seen.accessible("hostile")
                else:
                    count = page.locator("#plots figure").count()
                    for i, name in enumerate(names[:11]):
                        page.fill("#search", name if name.isprintable() else "data")
                        page.locator("#tree li").first.wait_for()
                        page.evaluate("([t, i]) => rovelogView.add([[t, 'data']])", [name, i])
                    found = drawn(page, count + 11)
                    assert [plot["series"][0]["v"] for plot in found[count:]] == [[1, 2]] * 11, "values of all names"
                    page.wait_for_timeout(400)
                    page.reload()
                    assert len(drawn(page, count + 11)) == count + 11, "names survive in the address"
                    start = time.monotonic()
                    page.fill("#search", "robot 9999")
                    page.wait_for_function("() => document.querySelectorAll('#tree li').length < 4")
                    assert time.monotonic() - start < 2, "search over 10000 topics"
                assert page.evaluate("window.hit === undefined && !document.querySelector('img[src=\"x\"]') && document.scripts.length") == 9
                assert "run" != page.title()
                assert "\u202e" not in page.locator("body").inner_text(), "marks that turn the text around are shown"
            # If a hostile text damages the page, the console shows an error.
            seen.finish("hostile")


def pages(browser, rovelog, log, signal):
    """Opens the pages of a plot and of a report. They must send no request, and axe must find no error."""
    with tempfile.TemporaryDirectory() as folder:
        plot, report = Path(folder, "plot.html"), Path(folder, "report.html")
        name = f"{signal[0].removesuffix('/0')}.{signal[1]}"
        subprocess.run([*rovelog, "plot", "-q", str(log), name, "-o", str(plot)], check=True)
        subprocess.run([*rovelog, "report", "-q", str(log), "-o", str(report)], check=True)
        for file in (plot, report):
            for scheme in ("light", "dark"):
                seen = Seen(browser, color_scheme=scheme)
                seen.page.goto(file.as_uri())
                seen.accessible(f"{file.name} of {log.name}, {scheme}")
                seen.finish(file.name)


def main():
    chromium, rovelog, real = sys.argv[1], sys.argv[2:3], Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for choices in LOGS:
            name, words, signal = choices[0 if real else 1]
            log = (real or ROOT / "corpus") / name
            start = time.monotonic()
            look(browser, rovelog, log, words, signal)
            pages(browser, rovelog, log, signal)
            print(f"  {log.name}: {time.monotonic() - start:.1f} s")
        start = time.monotonic()
        overlay(browser, rovelog, ROOT / "corpus/rld/v4.rld")
        measure(browser, rovelog, real / "rld/test_full.rld" if real else ROOT / "corpus/rld/v4.rld")
        hostile(browser, rovelog)
        print(f"  overlay, measures, hostile: {time.monotonic() - start:.1f} s")
        browser.close()


if __name__ == "__main__":
    main()

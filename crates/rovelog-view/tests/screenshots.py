"""Creates the pictures of docs/guide/see.md.

screenshots.py CHROMIUM ROVELOG REAL OUT shows plots, reports, the page of `rovelog view` for each format, and a plot in the
terminal. It saves them as PNG files with a palette.
"""

import html
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from browser import view

CHROMIUM, ROVELOG, REAL, OUT = sys.argv[1], sys.argv[2:3], Path(sys.argv[3]), Path(sys.argv[4])
ULOG, RLD = REAL / "ulog/sample_log_small.ulg", REAL / "rld/test_full.rld"
BAG, VEL = REAL / "rosbag12/indexed.bag", REAL / "vel/gps_nmea_units.vel"
HDL = REAL / "vel/hdl64_revolution.vel"

#: Name, log, signals and options of each plot.
PLOTS = [
    ("plot-ulog", ULOG, ["vehicle_attitude.q.roll", "battery_status.voltage_v", "vehicle_status.nav_state"], []),
    ("plot-rld", RLD, ["V1*I1", "samples.V1", "samples.DI*"], ["--theme", "dark"]),
    ("plot-bag", BAG, ["/imu/data.linear_acceleration", "/imu/data.angular_velocity"], []),
    ("plot-vel", VEL, ["OBDDataM.speed", "OBDDataM.rpm"], []),
]

#: Name, logs, URL fragment, theme, width, height and scroll position of each page.
VIEWS = [
    ("view-ulog", [ULOG], "", "light", 1200, 900),
    ("view-rld", [RLD], "#log=test_full.rld&plot=samples:I1&plot=samples:V1,samples:V2&plot=samples:DI1,samples:DI2,samples:I1L_valid&range=0.5,3.5", "dark", 1200, 800),
    ("view-bag", [BAG], "", "light", 1200, 1000),
    ("view-vel", [VEL], "", "dark", 1200, 1300),
    ("view-narrow", [ULOG], "#log=sample_log_small.ulg&plot=vehicle_attitude%2F0:q.roll", "light", 420, 900),
    ("view-folder", [REAL / "ulog"], "", "light", 1200, 420),
]


def save(name, png, colors=96):
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(colors, dither=Image.Dither.NONE).save(OUT / f"{name}.png", optimize=True)


def run(*args):
    return subprocess.run([*ROVELOG, *args], check=True, capture_output=True, text=True).stdout


def terminal(page):
    """Saves a picture of a plot in the terminal, with the colors of a terminal."""
    text = run("plot", str(ULOG), "vehicle_attitude.q.roll", "vehicle_attitude.q.pitch", "--color", "always", "--width", "100")
    colors = {"31": "#cd3131", "32": "#0dbc79", "33": "#e5c04a", "34": "#3b8eea", "35": "#d670d6", "36": "#29b8db"}
    out = ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        if part.startswith("\x1b["):
            codes = part[2:-1].split(";")
            colour = next((colors[code] for code in codes if code in colors), None)
            out += f"</span><span style='color:{colour or '#ddd'}'>"
        else:
            # Text fonts have no Braille dots. The dots of another font are put into cells of the same width.
            out += re.sub("[\u2800-\u28ff]", "<i class='cell'>\\g<0></i>", html.escape(part))
    style = "<style>.cell { display: inline-block; width: 1ch; font-style: normal; overflow: visible }</style>"
    page.set_content(f"{style}<body style='margin:0;background:#14181f'><pre style='margin:12px;font:13px/1.15 DejaVu Sans Mono,monospace;color:#ddd;display:inline-block'><span>{out}</span></pre>")
    save("plot-terminal", page.locator("pre").screenshot(), 48)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name, log, signals, options in PLOTS:
            out = Path(folder, name + ".png")
            run("plot", "-q", str(log), *signals, "-o", str(out), "--width", "1000", *options)
            save(name, out.read_bytes())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        terminal(browser.new_page(viewport={"width": 1500, "height": 700}))
        for name, log, scheme in (("report-ulog", ULOG, "light"), ("report-vel", VEL, "dark")):
            report = Path(folder, name + ".html")
            run("report", "-q", str(log), "-o", str(report))
            page = browser.new_page(viewport={"width": 1100, "height": 1000}, color_scheme=scheme)
            page.goto(report.as_uri())
            page.wait_for_timeout(500)
            page.locator("h2", has_text="Plots" if name == "report-ulog" else "Camera").scroll_into_view_if_needed()
            page.evaluate("n => window.scrollTo(0, document.getElementById(n).offsetTop - 10)", "plots" if name == "report-ulog" else "track")
            save(name, page.screenshot())
        for name, logs, state, scheme, width, height in VIEWS:
            with view(ROVELOG, *logs) as address:
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(address + state)
                page.wait_for_timeout(2500)
                box = page.locator("#plots .u-over").first
                if box.count():
                    place = box.bounding_box()
                    page.mouse.move(place["x"] + place["width"] * 0.6, place["y"] + 60)
                    page.wait_for_timeout(600)
                save(name, page.screenshot())
                page.close()
        browser.close()
    total = sum(file.stat().st_size for file in OUT.glob("*.png"))
    print(f"{total / 1e6:.2f} MB in {OUT}")


if __name__ == "__main__":
    main()

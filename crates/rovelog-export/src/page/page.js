"use strict";
// Draws the plots of a page. The Rust code has written a figure with buttons for each panel, and the data
// of all panels as JSON in the element `data`.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = [...document.querySelectorAll("figure[data-panel]")];
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  // True while the page is printed. Paper is white, so the light colors are used.
  let printing = false;
  const colors = () => {
    const theme = root.dataset.theme;
    return !printing && (theme === "dark" || (theme === "auto" && prefersDark.matches)) ? data.dark : data.light;
  };
  // Converts base64 to an array of numbers. All current platforms are little-endian, as is the data.
  const decode = (text, Kind) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Kind(bytes.buffer);
  };
  // The whole time range and the range that is shown, in seconds.
  const full = data.span;
  let view = full.slice();
  const utc = document.getElementById("utc");
  utc.checked = data.unix_ms !== null;
  const charts = rovelogCharts({ colors, utc: () => utc.checked, unixMs: () => data.unix_ms, bands: () => data.bands });

  const plots = figures.map(figure => {
    const panel = data.panels[+figure.dataset.panel];
    panel.series.forEach(s => {
      s.t = decode(s.t, Float64Array);
      s.v = Array.from(decode(s.v, Float64Array), v => isFinite(v) ? v : null);
      charts.spread(s);
    });
    return { figure, panel, chart: figure.querySelector(".chart"), buttons: [...figure.querySelectorAll("button")], u: null };
  });
  // Shows the values of all lines at a time in the legends.
  const show = time => plots.forEach(({ panel, buttons }) => buttons.forEach((button, k) => {
    button.querySelector("output").textContent = charts.text(panel, panel.series[k], time);
  }));

  // Changes the time range of all plots. Setting the range of a plot calls its hook `setScale`, which would
  // call `zoom` again, so `busy` blocks the hook.
  let busy = false;
  const zoom = (a, b) => {
    view = charts.within([a, b], full);
    busy = true;
    plots.forEach(({ u }) => u && u.setScale("x", { min: view[0], max: view[1] }));
    busy = false;
  };
  // Creates the chart of a plot, or creates it again after the colors changed.
  const make = plot => {
    const { panel, chart, buttons } = plot, ink = colors();
    const shown = plot.u ? plot.u.series.slice(1).map(s => s.show) : panel.series.map(() => true);
    if (plot.u) plot.u.destroy();
    plot.u = new uPlot(charts.options(panel, { width: chart.clientWidth || 1000, view, shown, hooks: {
      setCursor: [u => { if (u.cursor.event || u.cursor.left < 0) show(u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x")); }],
      setScale: [(u, key) => { if (key === "x" && !busy && plot.u === u) zoom(u.scales.x.min, u.scales.x.max); }],
      ready: [u => u.over.addEventListener("dblclick", () => zoom(full[0], full[1]))],
    } }), charts.joined(panel), chart);
    busy = true;
    plot.u.setScale("x", { min: view[0], max: view[1] });
    busy = false;
    buttons.forEach((button, k) => {
      const path = button.querySelector("path");
      path.setAttribute("stroke", ink.lines[k % 28][0]);
      path.setAttribute("stroke-dasharray", ink.lines[k % 28][1]);
    });
  };
  const all = () => {
    document.querySelectorAll("[data-fill]").forEach(i => { i.style.background = colors().fills[+i.dataset.fill % colors().fills.length]; });
    plots.forEach(make);
  };
  plots.forEach(plot => {
    plot.buttons.forEach((button, k) => button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", on);
      plot.u.setSeries(k + 1, { show: on });
    }));
    plot.chart.addEventListener("keydown", event => {
      const to = charts.moved(event, view, full);
      if (!to) return;
      event.preventDefault();
      zoom(to[0], to[1]);
    });
  });
  document.getElementById("fit").addEventListener("click", () => zoom(full[0], full[1]));
  utc.addEventListener("change", () => plots.forEach(({ u }) => u.redraw(false, true)));
  // While the window is resized, many events occur. The charts are resized after the last one.
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => plots.forEach(({ u, chart }) => u.setSize({ width: chart.clientWidth, height: u.height })), 100);
  });
  prefersDark.addEventListener("change", all);
  addEventListener("beforeprint", () => { printing = true; all(); });
  addEventListener("afterprint", () => { printing = false; all(); });
  all();
})();

"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = [...document.querySelectorAll("figure[data-panel]")];
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  const colours = () => {
    const theme = root.dataset.theme;
    return !printing && (theme === "dark" || (theme === "auto" && prefersDark.matches)) ? data.dark : data.light;
  };
  const decode = (text, Kind) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Kind(bytes.buffer);
  };
  const full = data.span;
  let view = full.slice();
  const utc = document.getElementById("utc");
  utc.checked = data.unix_ms !== null;
  const charts = rovelogCharts({ colours, utc: () => utc.checked, unixMs: () => data.unix_ms, bands: () => data.bands });

  const plots = figures.map(figure => {
    const panel = data.panels[+figure.dataset.panel];
    panel.series.forEach(s => {
      s.t = decode(s.t, Float64Array);
      s.v = Array.from(decode(s.v, Float32Array), v => isFinite(v) ? v : null);
      charts.spread(s);
    });
    return { figure, panel, chart: figure.querySelector(".chart"), buttons: [...figure.querySelectorAll("button")], u: null };
  });
  const show = time => plots.forEach(({ panel, buttons }) => buttons.forEach((button, k) => {
    button.querySelector("output").textContent = charts.text(panel, panel.series[k], time);
  }));

  let busy = false;
  const zoom = (a, b) => {
    view = charts.within([a, b], full);
    busy = true;
    plots.forEach(({ u }) => u && u.setScale("x", { min: view[0], max: view[1] }));
    busy = false;
  };
  const make = plot => {
    const { panel, chart, buttons } = plot, ink = colours();
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
    document.querySelectorAll("[data-fill]").forEach(i => { i.style.background = colours().fills[+i.dataset.fill % colours().fills.length]; });
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

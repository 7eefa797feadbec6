"use strict";
// Plots with their signals, the loaded data, and the visible time range. `host` provides charts,
// the shown log and the overlaid log (`logs`), whether plots can show a preview of the log
// (`hasPreview`), the full time range (`full`), the rate of a topic (`rate`), the format of times
// (`clock`), a function that draws cursors (`cursors`), and callbacks for changes (`changed`), loaded
// data (`loaded`) and clicks (`clicked`).
const rovelogPlots = (place, host) => {
  const plots = [];
  let view = [0, 1], cursor = null, active = null, busy = false, timer = 0, marks = [];
  const ink = () => host.colors();

  // Names of ROS topics are paths, so `/imu/0` is not instance 0 of `/imu`.
  const short = topic => topic.endsWith("/0") && !topic.startsWith("/") ? topic.slice(0, -2) : topic;
  const title = plot => [...new Set(plot.signals.map(([topic]) => short(topic) || "Calculated"))].join(", ");

  const nameOf = (plot, s) => s.label.startsWith(title(plot) + ".") ? s.label.slice(title(plot).length + 1) : s.label;

  // If all lines have the same unit, they share a unit prefix. If they have different units, each
  // name shows its unit.
  const panelOf = (plot, found) => {
    const series = found.filter(Boolean);
    const lanes = series.length > 0 && series.every(s => s.lane);
    const unit = series.length && series.every(s => s.unit === series[0].unit) ? series[0].unit : null;
    const largest = series.reduce((most, s) => s.factor > most.factor ? s : most, series[0] || { factor: 1 });
    return { series, lanes, factor: unit && !lanes ? largest.factor : 1, unit: unit && !lanes ? largest.prefixed : null, mixed: !unit };
  };
  const words = panel => panel.series.map(s => {
    const values = s.v.filter(v => v !== null);
    if (!values.length || s.lane) return s.label;
    const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    return `${s.label} from ${charts().number(low, 1)} to ${charts().number(high, 1)}${s.unit ? " " + s.unit : ""}`;
  }).join(", ");
  const charts = () => host.charts;

  // A spectrum has an axis of its own, so its plot is a picture.
  const spectrumOf = plot => plot.signals.length === 1 && !plot.signals[0][0] && /^(psd|spectrogram)\(/.test(plot.signals[0][1]) ? plot.signals[0][1] : null;
  const picture = async plot => {
    const { log, shift } = host.logs().find(shown => !shown.over), range = [...view];
    const path = rovelogRequests.spectrum(log, spectrumOf(plot), range.map(time => time - shift), width(), host.dark() ? "dark" : "light");
    plot.loaded = { range, columns: 0 };
    plot.panel = { series: [], lanes: false, factor: 1, unit: null, mixed: false };
    legend(plot);
    if (plot.request) plot.request.abort();
    plot.request = new AbortController();
    // The request checks whether the signal has enough samples. The browser then shows the same picture.
    const text = await rovelogRequests.ask(path, plot.request.signal).then(() => null, error => error.name === "AbortError" ? "" : error.message);
    if (text === "" || !plots.includes(plot)) return;
    const image = element("img", null, { alt: spectrumOf(plot) });
    if (text === null) rovelogSource.show(image, path);
    plot.chart.replaceChildren(text === null ? image : text);
    plot.chart.setAttribute("aria-label", spectrumOf(plot));
    host.loaded();
  };

  const width = () => Math.max(place.clientWidth - 70, 300);
  // Maximum number of columns that a request returns.
  const MAX_COLUMNS = 20000;
  // Loads the visible time range and an equal range on both sides, at three times the screen width.
  // So short moves need no request. Lines also need a sample before and after the visible range, so
  // three periods of slow topics are loaded, by a request of their own. If the log has a preview, it is
  // drawn first.
  const load = async (plot, preview = !plot.panel && host.hasPreview()) => {
    if (spectrumOf(plot)) return picture(plot);
    const [a, b] = view, span = b - a, full = host.full();
    const range = [Math.max(a - span, full[0]), Math.min(b + span, full[1])];
    const perSecond = width() * devicePixelRatio / span;
    const isSlow = ([topic]) => 3 / host.rate(topic) > span;
    const groups = [plot.signals.filter(s => !isSlow(s)), plot.signals.filter(isSlow)].filter(group => group.length);
    const number = ++plot.loading;
    const found = [];
    if (plot.request) plot.request.abort();
    plot.request = new AbortController();
    const { signal } = plot.request, outdated = () => plot.loading !== number || !plots.includes(plot);
    for (const { log, shift, name, over } of host.logs()) {
      let parts;
      try {
        const answers = new Map();
        for (const group of groups) {
          const margin = group.reduce((most, [topic]) => Math.max(most, 3 / host.rate(topic) || 0), span);
          const from = Math.max(a - margin, full[0]), to = Math.min(b + margin, full[1]);
          const columns = Math.min(perSecond * (to - from), MAX_COLUMNS);
          const answer = await rovelogRequests.signals(log, group, [from - shift, to - shift], columns, signal, preview);
          group.forEach((s, k) => answers.set(s, answer[k]));
        }
        parts = plot.signals.map(s => answers.get(s));
      } catch (error) {
        if (outdated()) return;
        throw error;
      }
      if (outdated()) return;
      parts.forEach((s, k) => {
        if (!s || s.error) return;
        if (shift) s.t = s.t.map(time => time + shift);
        charts().spread(s);
        s.signal = plot.signals[k];
        s.over = over;
        s.pen = k + (over ? 7 : 0);
        s.label = over ? `${s.name} (${name})` : s.name;
        found.push(s);
      });
      if (!over) plot.missing = plot.signals.flatMap(([topic, field], k) => parts[k] && !parts[k].error ? [] : [[topic ? `${short(topic)}.${field}` : field, parts[k]?.error || "not in this log"]]);
    }
    // A plot that is shown first leaves out lines that are constant, unless all lines are.
    const varying = new Set(plot.first && !preview ? found.filter(s => new Set(s.v.filter(v => v !== null)).size > 1).map(s => s.signal) : []);
    if (!preview) plot.first = false;
    if (varying.size) {
      plot.signals = plot.signals.filter(signal => varying.has(signal));
      for (let k = found.length; k--;) if (!varying.has(found[k].signal)) found.splice(k, 1);
      found.forEach(s => { s.pen = plot.signals.indexOf(s.signal) + (s.over ? 7 : 0); });
    }
    plot.loaded = preview ? null : { range, columns: perSecond };
    const before = plot.panel, wasPreview = plot.preview;
    plot.preview = preview;
    plot.panel = panelOf(plot, found);
    const alike = before && plot.u && before.series.length === plot.panel.series.length && before.lanes === plot.panel.lanes
      && before.series.every((s, k) => s.label === plot.panel.series[k].label);
    if (alike) {
      Object.assign(before, plot.panel);
      plot.panel = before;
      if (wasPreview) legend(plot);
      plot.u.setData(charts().joined(before), false);
      within(() => plot.u.setScale("x", { min: view[0], max: view[1] }));
    } else draw(plot);
    describe(plot);
    if (preview) return load(plot, false);
    host.loaded();
  };
  const reload = (now = false) => {
    clearTimeout(timer);
    const stale = plot => {
      if (!plot.loaded) return true;
      if (spectrumOf(plot)) return plot.loaded.range.some((time, k) => time !== view[k]);
      const { range, columns } = plot.loaded, full = host.full(), wanted = width() * devicePixelRatio / (view[1] - view[0]);
      const inside = (range[0] <= view[0] || range[0] <= full[0]) && (range[1] >= view[1] || range[1] >= full[1]);
      return !inside || columns < wanted * 0.7 || columns > wanted * 6;
    };
    timer = setTimeout(() => plots.filter(stale).forEach(plot => load(plot).catch(host.failed)), now ? 0 : 80);
  };

  const within = work => { busy = true; work(); busy = false; };
  const zoom = (a, b) => {
    view = charts().within([a, b], host.full());
    within(() => plots.forEach(({ u }) => u && u.setScale("x", { min: view[0], max: view[1] })));
    reload();
    host.changed();
  };
  // Shows the values at a time in the legends, and the time in the chart that has the pointer.
  const show = (time, u) => {
    cursor = time;
    for (const other of place.querySelectorAll(".time")) other.hidden = true;
    const label = u && u.over.querySelector(".time");
    if (label && time !== null) {
      label.hidden = false;
      label.textContent = host.clock(time);
      label.style.left = `${Math.min(Math.max(u.valToPos(time, "x") - label.offsetWidth / 2, 0), u.over.clientWidth - label.offsetWidth)}px`;
    }
    for (const { panel, outputs } of plots) if (panel) outputs.forEach((output, k) => { output.textContent = charts().text(panel, panel.series[k], time); });
    host.pointed(time);
  };

  // Draws warnings and errors as vertical lines across all plots.
  const drawMarks = u => {
    const { ctx } = u, { left, top, width, height } = u.bbox, scale = devicePixelRatio || 1;
    const style = getComputedStyle(document.documentElement);
    ctx.save();
    let drawn = 0;
    for (const [time, level] of marks) {
      if (time < view[0] || time > view[1] || level > 4) continue;
      if (++drawn > 400) break;
      const x = Math.round(u.valToPos(time, "x", true));
      ctx.fillStyle = style.getPropertyValue(level < 4 ? "--bad" : "--warn");
      ctx.globalAlpha = 0.45; ctx.fillRect(x, top, scale, height);
      ctx.globalAlpha = 1;
      ctx.beginPath(); ctx.moveTo(x - 4 * scale, top); ctx.lineTo(x + 5 * scale, top); ctx.lineTo(x + scale / 2, top + 6 * scale); ctx.fill();
    }
    ctx.restore();
  };
  // Handles the mouse: a click places a cursor, a double-click shows the whole log, and the wheel zooms.
  // So that the page can be scrolled, the wheel zooms only with Ctrl or in the plot that has the focus.
  const listen = (u, chart) => {
    const { over } = u;
    let down = 0;
    over.append(element("span", null, { class: "time", hidden: "" }));
    over.addEventListener("dblclick", () => zoom(...host.full()));
    over.addEventListener("mousedown", event => { down = event.clientX; });
    over.addEventListener("click", event => {
      const time = u.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
      if (Math.abs(event.clientX - down) < 4) host.clicked(time, event);
    });
    over.addEventListener("wheel", event => {
      if (!event.ctrlKey && document.activeElement !== chart) return;
      const [a, b] = host.full();
      if (event.deltaY > 0 && view[0] <= a && view[1] >= b) return;
      const by = 1.002 ** Math.max(-500, Math.min(event.deltaY * (event.deltaMode ? 20 : 1), 500));
      const time = u.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
      event.preventDefault();
      zoom(time - (time - view[0]) * by, time + (view[1] - time) * by);
    }, { passive: false });
  };
  const draw = plot => {
    if (spectrumOf(plot)) return picture(plot).catch(host.failed);
    const { panel, chart } = plot;
    const shown = panel.series.map(s => !plot.off.has(s.label));
    if (plot.u) plot.u.destroy();
    plot.u = null;
    legend(plot);
    if (!panel.series.length) { chart.textContent = "No values."; return; }
    chart.textContent = "";
    plot.u = new uPlot(charts().options(panel, { width: chart.clientWidth || 800, view, shown, hooks: {
      draw: [drawMarks, host.cursors],
      setCursor: [u => { if (u.cursor.event || u.cursor.left < 0) show(u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x"), u); }],
      setScale: [(u, key) => { if (key === "x" && !busy && plot.u === u) zoom(u.scales.x.min, u.scales.x.max); }],
      ready: [u => listen(u, chart)],
    } }), charts().joined(panel), chart);
    within(() => plot.u.setScale("x", { min: view[0], max: view[1] }));
  };
  const describe = plot => plot.chart.setAttribute("aria-label", `${title(plot)}: ${words(plot.panel) || "no values"}`);
  const legend = plot => {
    const { panel, caption } = plot;
    const head = element("b", title(plot));
    if (panel.unit) head.append(" ", element("small", `[${panel.unit}]`));
    if (plot.preview) head.append(" ", element("small", "preview", { title: "Only a few samples are drawn until all are read." }));
    const items = panel.series.map((s, k) => {
      const [color, dash] = ink().lines[s.pen % 28];
      const button = element("button", null, { "aria-pressed": !plot.off.has(s.label) });
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS(svg.namespaceURI, "path");
      svg.setAttribute("width", 22); svg.setAttribute("height", 8); svg.setAttribute("aria-hidden", "true");
      path.setAttribute("d", "M0 4H22"); path.setAttribute("stroke", color); path.setAttribute("stroke-dasharray", dash);
      svg.append(path);
      button.append(svg, nameOf(plot, s) + (panel.mixed && s.unit ? ` [${s.unit}]` : "") + " ", element("output"));
      button.addEventListener("click", () => {
        const on = plot.off.delete(s.label);
        if (!on) plot.off.add(s.label);
        button.setAttribute("aria-pressed", on);
        plot.u.setSeries(k + 1, { show: on });
      });
      const off = element("button", "×", { class: "off", "aria-label": `Remove ${s.label}`, title: "Remove this signal" });
      off.addEventListener("click", () => removeSignal(plot, s.signal));
      if (s.over || plot.signals.length < 2) return button;
      const both = element("span", null, { class: "line" });
      both.append(button, off);
      return both;
    });
    const close = element("button", "Remove plot", { class: "close", "aria-label": `Remove plot ${title(plot)}` });
    close.addEventListener("click", () => remove(plot));
    const missing = (plot.missing || []).map(([name, why]) => element("span", `${name}: ${why}`, { class: "note" }));
    caption.replaceChildren(head, ...items, ...missing, close);
    plot.outputs = [...caption.querySelectorAll("output")];
  };

  const remove = plot => {
    plots.splice(plots.indexOf(plot), 1);
    if (plot.u) plot.u.destroy();
    plot.figure.remove();
    if (active === plot) active = null;
    host.changed();
    host.say(`Removed plot ${title(plot)}`);
  };
  const removeSignal = (plot, signal) => {
    plot.signals = plot.signals.filter(other => other !== signal);
    if (!plot.signals.length) return remove(plot);
    load(plot).catch(host.failed);
    host.changed();
  };
  const add = (signals, into = null, first = false) => {
    // A spectrum cannot share a plot with other signals.
    if (into && !spectrumOf(into) && !spectrumOf({ signals })) {
      const fresh = signals.filter(([topic, field]) => !into.signals.some(other => other[0] === topic && other[1] === field));
      into.signals = [...into.signals, ...fresh];
      load(into).then(() => host.say(into.chart.getAttribute("aria-label"))).catch(host.failed);
      host.changed();
      return into;
    }
    const figure = element("figure"), caption = element("figcaption"), chart = element("div", "Reading…", { class: "chart", tabindex: 0, role: "img" });
    const measures = element("div", null, { class: "wide", role: "group", "aria-label": "Measures" });
    const plot = { signals, first, figure, caption, chart, measures, u: null, panel: null, outputs: [], off: new Set(), loading: 0, loaded: null };
    chart.setAttribute("aria-label", title(plot));
    figure.append(caption, chart, measures);
    place.append(figure);
    plots.push(plot);
    active = plot;
    figure.addEventListener("focusin", () => { active = plot; });
    figure.addEventListener("pointerdown", () => { active = plot; });
    droppable(figure, () => plot);
    chart.addEventListener("keydown", event => {
      if (event.shiftKey && event.key.startsWith("Arrow")) {
        event.preventDefault();
        const step = (view[1] - view[0]) / 200 * (event.key === "ArrowLeft" ? -1 : 1);
        const time = Math.min(Math.max((cursor === null ? (view[0] + view[1]) / 2 : cursor) + step, view[0]), view[1]);
        if (plot.u) plot.u.setCursor({ left: plot.u.valToPos(time, "x"), top: 10 });
        show(time, plot.u);
        return host.say(plot.outputs.map(output => output.textContent).join(", "));
      }
      const to = charts().moved(event, view, host.full());
      if (!to) return;
      event.preventDefault();
      zoom(to[0], to[1]);
    });
    load(plot).then(() => host.say(`Added ${chart.getAttribute("aria-label")}`)).catch(error => { chart.textContent = error.message; host.failed(error); });
    host.changed();
    return plot;
  };
  const droppable = (target, into) => {
    target.addEventListener("dragover", event => { event.preventDefault(); target.classList.add("over"); });
    target.addEventListener("dragleave", () => target.classList.remove("over"));
    target.addEventListener("drop", event => {
      event.preventDefault(); event.stopPropagation();
      target.classList.remove("over");
      let signal;
      try { signal = JSON.parse(event.dataTransfer.getData("text/plain")); } catch { return; }
      if (Array.isArray(signal) && signal.length === 2 && signal.every(part => typeof part === "string")) add([signal], into());
    });
  };
  const redraw = () => plots.forEach(plot => plot.panel && draw(plot));
  return {
    add, zoom, droppable, redraw,
    list: () => plots.map(plot => plot.signals),
    all: () => plots, nameOf,
    cursor: () => cursor ?? (view[0] + view[1]) / 2,
    active: () => active,
    view: () => view,
    set: range => { view = range; },
    clear: () => { while (plots.length) { const plot = plots.pop(); if (plot.request) plot.request.abort(); if (plot.u) plot.u.destroy(); plot.figure.remove(); } active = null; cursor = null; marks = []; },
    reload: () => { plots.forEach(plot => { plot.loaded = null; }); reload(true); },
    axes: () => plots.forEach(({ u }) => u && u.redraw(false, true)),
    mark: found => { marks = found; plots.forEach(({ u }) => u && u.redraw(false, false)); },
    resize: () => { plots.forEach(({ u, chart }) => u && u.setSize({ width: chart.clientWidth, height: u.height })); reload(); },
    // Exposes the drawn data to the tests.
    drawn: () => plots.map(({ panel }) => panel && { unit: panel.unit, lanes: panel.lanes, series: panel.series.map(({ label, t, v, count }) => ({ label, t: [...t], v, count })) }),
  };
};

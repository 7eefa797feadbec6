"use strict";
// Cursors A and B, and the table of measures below each plot. The measures are computed from
// all samples between the cursors, or in the visible range if a cursor is missing. `bar` is the
// element that shows the times of the cursors.
//
// `host` provides the plots (`plots`), the visible time range (`view`), the logs (`logs`), the name
// of a line (`nameOf`), the text of a time (`clock`), announcements to screen readers (`say`), and
// callbacks for changes (`changed`) and errors (`failed`).
const rovelogMeasure = (button, bar, host) => {
  const QUANTITIES = [["start", "at A"], ["end", "at B"], ["mean", "mean"], ["min", "min"], ["max", "max"], ["integral", "integral"]];
  let on = false, cursors = [], before = [], timer = 0, request = null, loaded = "";
  const range = () => cursors.length === 2 ? cursors : host.view();

  const table = (plot, found) => {
    const rows = plot.panel.lanes ? [] : plot.panel.series.map(s => [s, found.get(s.over)?.get(s.signal)]).filter(([, of]) => of && of.count !== undefined);
    const used = QUANTITIES.filter(([key]) => (cursors.length === 2 || !["start", "end"].includes(key)) && (key !== "integral" || rows.some(([, of]) => of.integral)));
    const made = element("table", null, { class: "measures" }), head = element("tr");
    head.append(...["signal", ...used.map(([, name]) => name), "samples"].map((name, k) => element("th", name, { scope: "col", ...(k ? { class: "n" } : {}) })));
    made.append(head, ...rows.map(([s, of]) => {
      const row = element("tr");
      row.append(element("th", host.nameOf(plot, s), { scope: "row" }), ...used.map(([key]) => {
        const [value, text] = of[key] || [null, "–"];
        return element("td", text, { class: "n", ...(value === null ? {} : { title: String(value) }) });
      }), element("td", of.count, { class: "n" }));
      return row;
    }));
    plot.measures.replaceChildren(...(rows.length ? [made] : []));
    // On a narrow screen, the table scrolls. To scroll it by keyboard, it must be focusable.
    if (rows.length) plot.measures.tabIndex = 0; else plot.measures.removeAttribute("tabindex");
  };
  const load = async () => {
    const plots = host.plots().filter(plot => plot.panel), found = new Map();
    const signals = plots.flatMap(plot => plot.signals), [from, to] = range();
    const key = JSON.stringify([range(), signals, host.logs()]);
    if (key === loaded) return;
    if (request) request.abort();
    request = new AbortController();
    bar.setAttribute("aria-busy", true);
    const { signal } = request;
    for (const { log, shift, over } of signals.length ? host.logs() : []) {
      const measures = await rovelogRequests.measures(log, signals, [from - shift, to - shift], signal);
      found.set(over, new Map(measures.map((of, k) => [signals[k], of])));
    }
    plots.forEach(plot => table(plot, found));
    loaded = key;
    bar.setAttribute("aria-busy", false);
  };
  // Updates the bar, and requests the measures after a delay. It is called when the range, the
  // cursors or the plots have changed. The delay avoids a request for each step of a zoom.
  const refresh = () => {
    clearTimeout(timer);
    button.setAttribute("aria-pressed", on);
    bar.hidden = !on;
    if (!on) {
      if (request) request.abort();
      loaded = "";
      return host.plots().forEach(({ measures }) => { measures.replaceChildren(); measures.removeAttribute("tabindex"); });
    }
    const [from, to] = range(), span = to - from;
    const names = cursors.map((time, k) => `${"AB"[k]} ${host.clock(time)}`);
    const length = `${cursors.length === 2 ? "B − A" : "Shown"}: ${+span.toPrecision(7)} s${span ? ` (${+(1 / span).toPrecision(5)} Hz)` : ""}`;
    const next = ["place cursor A: click, or key a", "place cursor B: click, or key b", "remove the cursors: Esc"][cursors.length];
    bar.textContent = [...names, length, next].join(" · ");
    timer = setTimeout(() => load().catch(error => {
      if (error.name === "AbortError") return;
      bar.setAttribute("aria-busy", false);
      host.failed(error);
    }), 200);
  };
  const set = (state, times) => {
    on = state;
    cursors = times;
    host.plots().forEach(({ u }) => u && u.redraw(false, false));
    host.changed();
  };
  // Places cursor A or B (`which` is 0 or 1). Without `which`, places a missing cursor, or moves
  // the nearer one.
  const place = (time, which) => {
    const k = which ?? (cursors.length < 2 ? cursors.length : Math.abs(time - cursors[0]) <= Math.abs(time - cursors[1]) ? 0 : 1);
    const times = cursors.slice();
    times[Math.min(k, times.length)] = time;
    set(true, times.sort((a, b) => a - b));
    host.say(bar.textContent);
  };
  const toggle = () => set(!on, on ? [] : cursors);
  button.addEventListener("click", toggle);
  return {
    refresh, toggle, place,
    clear: () => set(on, []),
    // Sets the state from the page address. `times` is undefined if measuring is off.
    restore: times => { on = times !== undefined; cursors = times || []; refresh(); },
    state: () => [on, cursors],
    click: (time, event) => {
      if (!on) return;
      if (event.detail === 1) before = cursors;
      if (event.detail === 2) return set(on, before);
      place(time);
    },
    // Draws the cursors in a chart.
    draw: u => {
      const { ctx } = u, { left, top, width, height } = u.bbox, scale = devicePixelRatio || 1;
      const style = getComputedStyle(document.documentElement), at = cursors.map(time => u.valToPos(time, "x", true));
      ctx.save();
      ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
      ctx.fillStyle = style.getPropertyValue("--accent");
      if (at.length === 2) { ctx.globalAlpha = 0.1; ctx.fillRect(at[0], top, at[1] - at[0], height); ctx.globalAlpha = 1; }
      ctx.font = `bold ${11 * scale}px system-ui, sans-serif`; ctx.textBaseline = "top"; ctx.textAlign = "center";
      at.forEach((x, k) => {
        ctx.fillStyle = style.getPropertyValue("--accent");
        ctx.fillRect(Math.round(x), top, scale, height);
        ctx.fillRect(Math.round(x) - 7 * scale, top, 15 * scale, 14 * scale);
        ctx.fillStyle = style.getPropertyValue("--paper");
        ctx.fillText("AB"[k], x + scale / 2, top + 2 * scale);
      });
      ctx.restore();
    },
  };
};

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
  const full = data.span, length = full[1] - full[0];
  let view = full.slice();
  const utc = document.getElementById("utc");
  utc.checked = data.unix_ms !== null;

  // Round steps of time, in seconds.
  const steps = [];
  for (let power = -6; power < 0; power++) for (const f of [1, 2, 5]) steps.push(f * 10 ** power);
  steps.push(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200);
  for (let days = 1; days < 1e6; days *= 10) for (const f of [1, 2, 5]) steps.push(f * days * 86400);
  const shift = () => utc.checked ? (data.unix_ms / 1000) % 86400 : 0;
  const splits = (u, axis, min, max, step) => {
    const found = [], by = shift();
    for (let i = Math.ceil((min + by) / step - 1e-9); i * step - by <= max && found.length < 200; i++) found.push(i * step - by);
    return found;
  };
  const digits = step => Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  // Date and time with microseconds; doubles hold them exactly.
  const iso = seconds => {
    const micros = Math.round(data.unix_ms * 1000 + seconds * 1e6), millis = Math.floor(micros / 1000);
    try {
      return new Date(millis).toISOString().slice(0, 23) + String(micros - millis * 1000).padStart(3, "0");
    } catch {
      return "";
    }
  };
  const labels = (u, times, axis, space, step) => {
    let day = "";
    return times.map(time => {
      if (!utc.checked) return String(+time.toFixed(digits(step)));
      const text = iso(time), date = text.slice(0, 10), new_day = date !== day;
      day = date;
      const clock = step >= 60 ? text.slice(11, 16) : text.slice(11, digits(step) ? 20 + digits(step) : 19);
      return clock + (new_day ? "\n" + date : "");
    });
  };

  const number = (value, factor) => +(value / factor).toPrecision(6);
  const plots = figures.map(figure => {
    const panel = data.panels[+figure.dataset.panel];
    panel.series.forEach(s => {
      s.t = decode(s.t, Float64Array);
      s.v = Array.from(decode(s.v, Float32Array), v => isFinite(v) ? v : null);
      // The values at one time are drawn one after the other.
      for (let i = 1; i < s.t.length; i++) if (s.t[i] <= s.t[i - 1]) s.t[i] = s.t[i - 1] + 1e-7;
    });
    return { figure, panel, chart: figure.querySelector(".chart"), buttons: [...figure.querySelectorAll("button")], u: null };
  });

  // The last value at or before a time.
  const at = (s, time) => {
    let low = 0, high = s.t.length;
    while (low < high) { const mid = (low + high) >> 1; if (s.t[mid] <= time) low = mid + 1; else high = mid; }
    return low ? s.v[low - 1] : null;
  };
  const show = time => plots.forEach(({ panel, buttons }) => buttons.forEach((button, k) => {
    const s = panel.series[k], value = time === null ? null : at(s, time);
    const named = value !== null && s.names && s.names[value];
    const onOff = panel.lanes && !s.names;
    button.querySelector("output").textContent = value === null ? "" : named || (onOff ? (value ? "on" : "off") : String(number(value, panel.factor)));
  }));

  const bands = u => {
    const { ctx } = u, { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    ctx.globalAlpha = 0.35;
    for (const [from, to, k] of data.bands) {
      const x = u.valToPos(from, "x", true), end = u.valToPos(to, "x", true);
      ctx.fillStyle = colours().fills[k % colours().fills.length];
      ctx.fillRect(x, top, end - x, height);
    }
    ctx.restore();
  };
  const lanes = panel => u => {
    const { ctx } = u, { left, top, width, height } = u.bbox, each = height / panel.series.length, scale = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    ctx.textBaseline = "middle"; ctx.textAlign = "left";
    panel.series.forEach((s, k) => {
      const seen = [];
      const y = top + k * each, box = [y + each * 0.45, each * 0.45];
      if (u.series[k + 1].show) for (let i = 0; i < s.t.length;) {
        let j = i + 1;
        while (j < s.t.length && s.v[j] === s.v[i]) j++;
        const from = u.valToPos(s.t[i], "x", true), to = u.valToPos(s.t[Math.min(j, s.t.length - 1)], "x", true), value = s.v[i];
        const wide = Math.max(to - from, scale);
        i = j;
        if (value !== null && !seen.includes(value)) seen.push(value);
        if (value === null || from + wide < left || from > left + width) continue;
        if (!s.names) {
          ctx.fillStyle = colours().lines[k % 28][0];
          if (value) ctx.fillRect(from, box[0], wide, box[1]); else ctx.fillRect(from, box[0] + box[1] - scale, wide, scale);
          continue;
        }
        ctx.fillStyle = colours().fills[seen.indexOf(value) % colours().fills.length];
        ctx.fillRect(from, box[0], wide, box[1]);
        const text = s.names[value] || String(value), start = Math.max(from, left) + 4 * scale;
        ctx.fillStyle = colours().text;
        if (ctx.measureText(text).width < from + wide - start - 2 * scale) ctx.fillText(text, start, box[0] + box[1] / 2);
      }
      ctx.fillStyle = colours().text;
      ctx.fillText(s.name, left + 6 * scale, y + each * 0.24);
      if (k) { ctx.fillStyle = colours().grid; ctx.fillRect(left, y, width, scale); }
    });
    ctx.restore();
  };

  let busy = false;
  const zoom = (a, b) => {
    const shortest = Math.max(length / 1e6, 1e-6);
    a = Math.max(full[0], a); b = Math.min(full[1], b);
    if (b - a < shortest) b = a + shortest;
    view = [a, b];
    busy = true;
    plots.forEach(({ u }) => u && u.setScale("x", { min: a, max: b }));
    busy = false;
  };
  const make = plot => {
    const { panel, chart, buttons } = plot, ink = colours();
    const shown = plot.u ? plot.u.series.slice(1).map(s => s.show) : panel.series.map(() => true);
    if (plot.u) plot.u.destroy();
    const tables = panel.series.map(s => [s.t, s.v]);
    const same = tables.every(t => t[0].length === tables[0][0].length && t[0].every((time, i) => time === tables[0][0][i]));
    const joined = same ? [tables[0][0], ...tables.map(t => t[1])] : uPlot.join(tables);
    const axis = { stroke: ink.faint, grid: { stroke: ink.grid, width: 1 }, ticks: { stroke: ink.grid, width: 1 }, font: "11px system-ui, sans-serif" };
    const height = panel.lanes ? panel.series.length * 34 + 46 : 220;
    plot.u = new uPlot({
      width: chart.clientWidth || 1000, height, legend: { show: false }, pxAlign: 0,
      cursor: { sync: { key: "log" }, drag: { x: true, y: false, dist: 4 }, points: { show: !panel.lanes } },
      scales: { x: { time: false, range: (u, min, max) => [min, max], min: view[0], max: view[1] },
        y: panel.lanes ? { range: [0, 1] } : { range: (u, min, max) => {
          if (min === null) return [0, 1];
          const air = max > min ? (max - min) * 0.06 : Math.abs(min) * 0.1 || 1;
          return [min - air, max + air];
        } } },
      axes: [{ ...axis, incrs: steps, splits, values: labels, space: 90, size: 42 },
        { ...axis, size: 64, show: true, splits: panel.lanes ? () => [] : undefined,
          values: (u, values) => values.map(v => v === null ? "" : number(v, panel.factor)) }],
      series: [{}, ...panel.series.map((s, k) => ({
        label: s.name, show: shown[k], stroke: ink.lines[k % 28][0], width: 1.4, points: { show: joined[0].length < 80 && !panel.lanes, fill: ink.paper },
        dash: ink.lines[k % 28][1] ? ink.lines[k % 28][1].split(" ").map(Number) : undefined,
        paths: panel.lanes ? () => null : s.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
      hooks: {
        drawClear: [bands], draw: panel.lanes ? [lanes(panel)] : [],
        setCursor: [u => { if (u.cursor.event || u.cursor.left < 0) show(u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x")); }],
        setScale: [(u, key) => { if (key === "x" && !busy && plot.u === u) zoom(u.scales.x.min, u.scales.x.max); }],
        ready: [u => u.over.addEventListener("dblclick", () => zoom(full[0], full[1]))],
      },
    }, joined, chart);
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
      const span = view[1] - view[0], middle = (view[0] + view[1]) / 2;
      const to = { "+": [middle - span / 4, middle + span / 4], "-": [middle - span, middle + span], f: full,
        ArrowLeft: [view[0] - span / 8, view[1] - span / 8], ArrowRight: [view[0] + span / 8, view[1] + span / 8] }[event.key];
      if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      // At the ends the view stops, it does not shrink.
      if (event.key.startsWith("Arrow") && (to[0] < full[0] || to[1] > full[1])) return zoom(...(to[0] < full[0] ? [full[0], full[0] + span] : [full[1] - span, full[1]]));
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

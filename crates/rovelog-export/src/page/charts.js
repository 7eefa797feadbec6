"use strict";
// Charts shared by report pages and the viewer: time axes, state lanes, flight mode bands, and
// values at the cursor. `setup` provides these functions:
// - colors() returns the colors of lines and text.
// - utc() returns true if the time axis shows UTC.
// - unixMs() returns the Unix time of second 0 in milliseconds.
// - bands() returns the flight modes as [start, end, color index].
const rovelogCharts = setup => {
  // Possible distances in seconds between ticks of the time axis.
  const steps = [];
  for (let power = -6; power < 0; power++) for (const f of [1, 2, 5]) steps.push(f * 10 ** power);
  steps.push(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200);
  for (let days = 1; days < 1e6; days *= 10) for (const f of [1, 2, 5]) steps.push(f * days * 86400);
  // Ticks are at multiples of the step since midnight. This is the time of day of second 0 in seconds.
  const shift = () => setup.utc() ? (setup.unixMs() / 1000) % 86400 : 0;
  const splits = (u, axis, min, max, step) => {
    const found = [], by = shift();
    for (let i = Math.ceil((min + by) / step - 1e-9); i * step - by <= max && found.length < 200; i++) found.push(i * step - by);
    return found;
  };
  // Number of decimals that multiples of the step need.
  const digits = step => Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  // Formats the date and time with microseconds. Numbers in JavaScript represent Unix times in
  // microseconds exactly, but not in nanoseconds.
  const iso = seconds => {
    const micros = Math.round(setup.unixMs() * 1000 + seconds * 1e6), millis = Math.floor(micros / 1000);
    try {
      return new Date(millis).toISOString().slice(0, 23) + String(micros - millis * 1000).padStart(3, "0");
    } catch {
      return "";
    }
  };
  // Returns the labels of ticks. The date follows below the first tick of each day.
  const labels = (u, times, axis, space, step) => {
    let day = "";
    return times.map(time => {
      if (!setup.utc()) return String(+time.toFixed(digits(step)));
      const text = iso(time), date = text.slice(0, 10), new_day = date !== day;
      day = date;
      const clock = step >= 60 ? text.slice(11, 16) : text.slice(11, digits(step) ? 20 + digits(step) : 19);
      return clock + (new_day ? "\n" + date : "");
    });
  };

  let widest = 64;
  // Rounds a value for the legend. The fields of most logs are 32-bit floats with 7 digits.
  const number = (value, factor) => {
    const shown = value / factor;
    return Number.isInteger(shown) ? shown : +shown.toPrecision(Math.fround(value) === value ? 7 : 9);
  };
  // Returns the labels of ticks with as many digits as the distance `step` between two ticks needs.
  const ticks = (values, step) => values.map(value => {
    if (Math.abs(value) >= 1e6) {
      const decimals = Math.max(0, Math.ceil(Math.log10(Math.abs(value) / step)) + 1);
      return value.toExponential(Math.min(decimals, 15)).replace(/\.?0*e\+/, "e");
    }
    return String(+value.toFixed(Math.min(Math.max(0, Math.ceil(-Math.log10(step)) + 1), 100)));
  });
  // Makes the times strictly increasing, because uPlot requires it. Of several values at the same time,
  // each is moved by 0.1 µs after the one before, so that all of them are drawn.
  const spread = s => { for (let i = 1; i < s.t.length; i++) if (s.t[i] <= s.t[i - 1]) s.t[i] = s.t[i - 1] + 1e-7; };
  // Returns the last value at or before a time, found by binary search.
  const at = (s, time) => {
    let low = 0, high = s.t.length;
    while (low < high) { const mid = (low + high) >> 1; if (s.t[mid] <= time) low = mid + 1; else high = mid; }
    return low ? s.v[low - 1] : null;
  };
  // Formats the value of a line at a time for the legend.
  const text = (panel, s, time) => {
    const value = time === null ? null : at(s, time);
    const named = value !== null && s.names && s.names[value];
    const onOff = panel.lanes && !s.names;
    const factor = s.right ? panel.right_factor : panel.factor;
    return value === null ? "" : named || (onOff ? (value ? "on" : "off") : String(number(value, factor)));
  };

  // Draws the flight modes in the background of a chart.
  const bands = u => {
    const { ctx } = u, { left, top, width, height } = u.bbox, fills = setup.colors().fills;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    ctx.globalAlpha = 0.35;
    for (const [from, to, k] of setup.bands()) {
      const x = u.valToPos(from, "x", true), end = u.valToPos(to, "x", true);
      ctx.fillStyle = fills[k % fills.length];
      ctx.fillRect(x, top, end - x, height);
    }
    ctx.restore();
  };
  // Returns a function that draws the states of a panel as lanes below each other. uPlot has no such
  // chart type, so its own lines are disabled for these panels.
  const lanes = panel => u => {
    const { ctx } = u, { left, top, width, height } = u.bbox, each = height / panel.series.length, scale = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    ctx.textBaseline = "middle"; ctx.textAlign = "left";
    panel.series.forEach((s, k) => {
      // States in the order of their first appearance, which determines their colors.
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
          ctx.fillStyle = setup.colors().lines[k % 28][0];
          if (value) ctx.fillRect(from, box[0], wide, box[1]); else ctx.fillRect(from, box[0] + box[1] - scale, wide, scale);
          continue;
        }
        ctx.fillStyle = setup.colors().fills[seen.indexOf(value) % setup.colors().fills.length];
        ctx.fillRect(from, box[0], wide, box[1]);
        const text = s.names[value] || String(value), start = Math.max(from, left) + 4 * scale;
        ctx.fillStyle = setup.colors().text;
        if (ctx.measureText(text).width < from + wide - start - 2 * scale) ctx.fillText(text, start, box[0] + box[1] / 2);
      }
      ctx.fillStyle = setup.colors().text;
      ctx.fillText(s.label || s.name, left + 6 * scale, y + each * 0.24);
      if (k) { ctx.fillStyle = setup.colors().grid; ctx.fillRect(left, y, width, scale); }
    });
    ctx.restore();
  };

  // Returns the lines of a panel on a common time axis, which uPlot requires. Most lines of a panel have
  // the same times, so that they do not have to be merged.
  const joined = panel => {
    const tables = panel.series.map(s => [s.t, s.v]);
    const same = tables.every(t => t[0].length === tables[0][0].length && t[0].every((time, i) => time === tables[0][0][i]));
    return same ? [tables[0][0], ...tables.map(t => t[1])] : uPlot.join(tables);
  };
  // Returns the uPlot options for a panel. `own` contains the width of the chart, the shown time range
  // `view`, the array `shown` with true for each visible line, and uPlot `hooks`.
  const options = (panel, own) => {
    const ink = setup.colors();
    const axis = { stroke: ink.faint, grid: { stroke: ink.grid, width: 1 }, ticks: { stroke: ink.grid, width: 1 }, font: "11px system-ui, sans-serif" };
    const pen = (s, k) => ink.lines[(s.pen ?? k) % 28];
    const fitted = (u, min, max) => {
      if (min === null) return [0, 1];
      const air = max > min ? (max - min) * 0.06 : Math.abs(min) * 0.1 || 1;
      return [min - air, max + air];
    };
    const labeled = factor => (u, values, at, space, step) => ticks(values.map(value => value / factor), step / factor);
    // Returns the width of an axis, so that no label is cut off. All plots get the same width, so that
    // their times are below each other.
    const room = (u, labels) => (widest = Math.max(widest, 18 + 6.2 * Math.max(0, ...(labels || []).map(label => label.length))));
    const points = panel.series.reduce((most, s) => Math.max(most, s.t.length), 0);
    return {
      width: own.width, height: panel.lanes ? panel.series.length * 34 + 46 : 220, legend: { show: false }, pxAlign: 0,
      cursor: { sync: { key: "log" }, drag: { x: true, y: false, dist: 4 }, points: { show: !panel.lanes } },
      scales: { x: { time: false, range: (u, min, max) => [min, max], min: own.view[0], max: own.view[1] },
        y: { range: panel.lanes ? [0, 1] : fitted }, ...(panel.right_factor ? { right: { range: fitted } } : {}) },
      axes: [{ ...axis, incrs: steps, splits, values: labels, space: 90, size: 42 },
        { ...axis, size: room, show: true, splits: panel.lanes ? () => [] : undefined, values: labeled(panel.factor) },
        ...(panel.right_factor ? [{ ...axis, scale: "right", side: 1, size: room, grid: { show: false }, values: labeled(panel.right_factor) }] : [])],
      series: [{}, ...panel.series.map((s, k) => ({
        label: s.name, show: own.shown[k], scale: s.right ? "right" : "y", stroke: pen(s, k)[0], width: 1.4, points: { show: points < 80 && !panel.lanes, fill: ink.paper },
        dash: pen(s, k)[1] ? pen(s, k)[1].split(" ").map(Number) : undefined,
        paths: panel.lanes ? () => null : s.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
      hooks: { ...own.hooks, drawClear: [bands], draw: [...(panel.lanes ? [lanes(panel)] : []), ...(own.hooks.draw || [])] },
    };
  };
  // Returns the time range after a key press, or null for other keys. At the ends of the log, the range
  // stops moving and keeps its length.
  const moved = (event, view, full) => {
    const span = view[1] - view[0], middle = (view[0] + view[1]) / 2;
    const to = { "+": [middle - span / 4, middle + span / 4], "-": [middle - span, middle + span], f: full,
      ArrowLeft: [view[0] - span / 8, view[1] - span / 8], ArrowRight: [view[0] + span / 8, view[1] + span / 8] }[event.key];
    if (!to || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey && event.key !== "+") return null;
    if (event.key.startsWith("Arrow") && to[0] < full[0]) return [full[0], full[0] + span];
    if (event.key.startsWith("Arrow") && to[1] > full[1]) return [full[1] - span, full[1]];
    return to;
  };
  // Limits a range to the range `full`, and to a minimum length.
  const within = ([a, b], full) => {
    const shortest = Math.max((full[1] - full[0]) / 1e6, 1e-6);
    a = Math.max(full[0], a); b = Math.min(full[1], b);
    return [a, b - a < shortest ? a + shortest : b];
  };
  return { text, number, spread, joined, options, moved, within, iso };
};

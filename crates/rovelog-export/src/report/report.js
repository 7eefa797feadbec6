"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5a5a5a"];
  const decode = (text, Kind) => {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Kind(bytes.buffer);
  };
  const full = data.span;
  let view = full.slice();
  const views = [];
  const ticks = (low, high, wanted) => {
    const rough = (high - low) / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough) || 10 * power;
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9 && found.length < 100; i++) found.push(i * step);
    return [found, Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))];
  };
  const label = (value, digits) => {
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-4)) return value.toExponential(2);
    return value.toFixed(size === 0 && digits > 4 ? 0 : digits);
  };
  const clock = data.unix_ms === null ? null
    : seconds => new Date(data.unix_ms + seconds * 1000).toISOString().slice(11, 23);
  // The first point at or behind a time.
  const from = (times, time) => {
    let low = 0, high = times.length;
    while (low < high) { const mid = (low + high) >> 1; if (times[mid] < time) low = mid + 1; else high = mid; }
    return low;
  };

  for (const figure of document.querySelectorAll("figure[data-panel]")) {
    const panel = data.panels[+figure.dataset.panel];
    const series = panel.series.map(s => ({ name: s.name, t: decode(s.t, Float64Array), v: decode(s.v, Float32Array) }));
    const canvas = figure.querySelector("canvas"), pen = canvas.getContext("2d");
    const values = [...figure.querySelectorAll("figcaption span")];
    const left = 64, right = 8, top = 6, bottom = 20;
    let cursor = null, drag = null;
    const draw = () => {
      const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
      canvas.width = width * scale; canvas.height = height * scale;
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = "11px system-ui, sans-serif";
      let low = Infinity, high = -Infinity;
      const ranges = series.map(s => [Math.max(0, from(s.t, view[0]) - 1), Math.min(s.t.length, from(s.t, view[1]) + 1)]);
      series.forEach((s, k) => {
        for (let i = ranges[k][0]; i < ranges[k][1]; i++)
          if (isFinite(s.v[i])) { low = Math.min(low, s.v[i]); high = Math.max(high, s.v[i]); }
      });
      if (!isFinite(low)) { low = 0; high = 1; }
      const air = high > low ? (high - low) * 0.05 : Math.abs(low) * 0.1 || 1;
      low -= air; high += air;
      const x = t => left + (t - view[0]) / (view[1] - view[0]) * (width - left - right);
      const y = v => height - bottom - (v - low) / (high - low) * (height - top - bottom);
      pen.strokeStyle = "#e3e3e3"; pen.fillStyle = "#444"; pen.lineWidth = 1;
      const [levels, digits] = ticks(low, high, (height - top - bottom) / 36);
      pen.textAlign = "right"; pen.textBaseline = "middle";
      for (const level of levels) {
        pen.beginPath(); pen.moveTo(left, y(level)); pen.lineTo(width - right, y(level)); pen.stroke();
        pen.fillText(label(level, digits), left - 5, y(level));
      }
      const [times, behind] = ticks(view[0], view[1], (width - left - right) / 90);
      pen.textAlign = "center"; pen.textBaseline = "top";
      for (const time of times) {
        pen.beginPath(); pen.moveTo(x(time), top); pen.lineTo(x(time), height - bottom); pen.stroke();
        pen.fillText(utc.checked && clock ? clock(time) : label(time, behind), x(time), height - bottom + 5);
      }
      pen.save();
      pen.beginPath(); pen.rect(left, top, width - left - right, height - top - bottom); pen.clip();
      series.forEach((s, k) => {
        // Wide enough that lines on each other show the last one, not a mixture.
        pen.strokeStyle = colours[k % colours.length]; pen.lineWidth = 1.5; pen.beginPath();
        let down = false;
        for (let i = ranges[k][0]; i < ranges[k][1]; i++) {
          if (!isFinite(s.v[i])) { down = false; continue; }
          if (down) pen.lineTo(x(s.t[i]), y(s.v[i])); else pen.moveTo(x(s.t[i]), y(s.v[i]));
          down = true;
        }
        pen.stroke();
      });
      if (cursor !== null) {
        pen.strokeStyle = "#888"; pen.lineWidth = 1; pen.beginPath(); pen.moveTo(x(cursor), top); pen.lineTo(x(cursor), height); pen.stroke();
      }
      if (drag) {
        pen.fillStyle = "rgba(0,114,178,.15)";
        pen.fillRect(x(Math.min(drag[0], drag[1])), top, Math.abs(x(drag[1]) - x(drag[0])), height);
      }
      pen.restore();
      pen.strokeStyle = "#888"; pen.strokeRect(left, top, width - left - right, height - top - bottom);
    };
    const time = event => {
      const box = canvas.getBoundingClientRect();
      const part = (event.clientX - box.left - left) / (box.width - left - right);
      return view[0] + Math.min(1, Math.max(0, part)) * (view[1] - view[0]);
    };
    const show = at => {
      cursor = at;
      series.forEach((s, k) => {
        const i = at === null ? -1 : Math.min(s.t.length - 1, from(s.t, at));
        values[k].lastChild.textContent = i < 0 ? "" : " " + (isFinite(s.v[i]) ? +s.v[i].toPrecision(6) : "-");
      });
      draw();
    };
    canvas.addEventListener("pointerdown", e => { canvas.setPointerCapture(e.pointerId); drag = [time(e), time(e)]; });
    canvas.addEventListener("pointermove", e => { const at = time(e); if (drag) drag[1] = at; views.forEach(v => v.show(at)); });
    canvas.addEventListener("pointerup", () => {
      const [a, b] = drag || [0, 0];
      drag = null;
      if (Math.abs(b - a) > (view[1] - view[0]) / 200) zoom(Math.min(a, b), Math.max(a, b)); else draw();
    });
    canvas.addEventListener("pointerleave", () => views.forEach(v => v.show(null)));
    canvas.addEventListener("dblclick", () => zoom(full[0], full[1]));
    canvas.addEventListener("wheel", e => {
      if (!e.ctrlKey && !e.shiftKey) return;
      e.preventDefault();
      const at = time(e), by = e.deltaY > 0 ? 1.25 : 0.8;
      zoom(at - (at - view[0]) * by, at + (view[1] - at) * by);
    }, { passive: false });
    canvas.addEventListener("keydown", e => {
      const span = view[1] - view[0], middle = (view[0] + view[1]) / 2;
      const to = { "+": [middle - span / 4, middle + span / 4], "-": [middle - span, middle + span], f: full,
        ArrowLeft: [view[0] - span / 8, view[1] - span / 8], ArrowRight: [view[0] + span / 8, view[1] + span / 8] }[e.key];
      if (to) { e.preventDefault(); zoom(to[0], to[1]); }
    });
    views.push({ draw, show });
  }
  const utc = document.getElementById("utc");
  if (!utc) return;
  const zoom = (a, b) => {
    const least = (full[1] - full[0]) / 1e5;
    view = [Math.max(full[0], a), Math.min(full[1], b)];
    if (view[1] - view[0] < least) view = [Math.min(view[0], full[1] - least), Math.min(view[0], full[1] - least) + least];
    views.forEach(v => v.draw());
  };
  utc.disabled = !clock;
  utc.addEventListener("change", () => views.forEach(v => v.draw()));
  window.addEventListener("resize", () => views.forEach(v => v.draw()));
  views.forEach(v => v.draw());
})();

"use strict";
// Shows the track, images and points at the time of the cursor.
const rovelogScene = (place, host) => {
  let parts = [], generation = 0;
  const nearest = (times, time) => {
    let low = 0, high = times.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (times[mid] < time) low = mid + 1; else high = mid; }
    return low > 0 && Math.abs(times[low - 1] - time) <= Math.abs(times[low] - time) ? low - 1 : low;
  };
  const section = heading => {
    const made = element("section");
    made.append(element("h2", heading));
    place.append(made);
    return made;
  };
  const canvasOf = (made, label) => {
    const canvas = element("canvas", null, { role: "img", "aria-label": label, tabindex: 0 });
    made.append(canvas);
    return canvas;
  };
  const fitted = canvas => {
    const scale = devicePixelRatio || 1, width = Math.max(canvas.clientWidth * scale, 10), height = Math.max(canvas.clientHeight * scale, 10);
    if (canvas.width !== Math.round(width) || canvas.height !== Math.round(height)) { canvas.width = width; canvas.height = height; }
    return { ctx: canvas.getContext("2d"), width: canvas.width, height: canvas.height, scale };
  };

  // Draws the track in meters east and north of its center.
  const track = async log => {
    const { header, take } = await rovelogRequests.packed(`logs/${log}/track`);
    if (header.points < 2) return null;
    const t = take(header.points), lat = take(header.points), lon = take(header.points);
    return () => {
      const range = list => list.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
      const middle = range(lat).reduce((a, b) => a + b) / 2, shrink = Math.cos(middle * Math.PI / 180), degree = 111195;
      // The track may cross the meridian of 180°.
      const eastOfStart = v => v - lon[0] - 360 * Math.round((v - lon[0]) / 360);
      const x = lon.map(v => eastOfStart(v) * shrink * degree), y = lat.map(v => (v - lat[0]) * degree);
      const [west, east] = range(x), [south, north] = range(y);
      const made = section("Track");
      const across = Math.max(east - west, north - south, 1);
      const canvas = canvasOf(made, `Track of ${header.points} positions, ${Math.round(east - west)} m by ${Math.round(north - south)} m`);
      const note = element("p", null, { class: "note" });
      made.append(note);
      const draw = time => {
        const { ctx, width, height, scale } = fitted(canvas), ink = host.colors(), margin = 24 * scale;
        const per = Math.min((width - 2 * margin) / Math.max(east - west, across / 20), (height - 2 * margin) / Math.max(north - south, across / 20));
        const px = v => width / 2 + (v - (west + east) / 2) * per, py = v => height / 2 - (v - (south + north) / 2) * per;
        ctx.fillStyle = ink.paper; ctx.fillRect(0, 0, width, height);
        const power = 10 ** Math.floor(Math.log10(across / 4)), bar = [5, 2, 1].map(f => f * power).find(v => v <= across / 4) || power;
        ctx.strokeStyle = ink.grid; ctx.lineWidth = scale; ctx.beginPath();
        for (let v = Math.ceil((west + east) / 2 / bar - width / per / bar) * bar; px(v) < width; v += bar) if (px(v) > 0) { ctx.moveTo(px(v), 0); ctx.lineTo(px(v), height); }
        for (let v = Math.ceil((south + north) / 2 / bar - height / per / bar) * bar; py(v) > 0; v += bar) if (py(v) < height) { ctx.moveTo(0, py(v)); ctx.lineTo(width, py(v)); }
        ctx.stroke();
        const view = host.view(), ends = new Set(header.ends);
        for (const inside of [false, true]) {
          ctx.strokeStyle = inside ? ink.lines[0][0] : ink.frame; ctx.lineWidth = (inside ? 2 : 1) * scale; ctx.beginPath();
          let pen = false;
          for (let i = 0; i < t.length; i++) {
            if (ends.has(i)) pen = false;
            if (inside && (t[i] < view[0] || t[i] > view[1])) { pen = false; continue; }
            if (pen) ctx.lineTo(px(x[i]), py(y[i])); else ctx.moveTo(px(x[i]), py(y[i]));
            pen = true;
          }
          ctx.stroke();
        }
        const dot = (i, color, size) => { ctx.fillStyle = color; ctx.beginPath(); ctx.arc(px(x[i]), py(y[i]), size * scale, 0, 7); ctx.fill(); };
        dot(0, ink.lines[2][0], 4); dot(t.length - 1, ink.lines[1][0], 4);
        if (time !== null) dot(nearest(t, time), ink.text, 6);
        ctx.fillStyle = ink.text; ctx.font = `${12 * scale}px system-ui, sans-serif`; ctx.textBaseline = "alphabetic";
        ctx.fillRect(margin, height - 10 * scale, bar * per, 2 * scale);
        ctx.fillText(`${bar} m, north is up`, margin, height - 14 * scale);
        const i = time === null ? null : nearest(t, time);
        note.textContent = i === null ? `${header.source}: the shown part is colored.` : `${lat[i].toFixed(7)}°, ${lon[i].toFixed(7)}°`;
      };
      return { draw };
    };
  };

  // Shows the image at the time of the cursor, and a strip of images in the visible time range.
  const images = (log, topic, times, total) => () => {
    const made = section(`Camera ${topic}`);
    const large = element("img", null, { alt: "" }), note = element("p", null, { class: "note" }), strip = element("div", null, { class: "strip" });
    made.append(large, note, strip);
    let shown = -1, shownStrip = "", waiting = 0;
    // Pictures that are no longer shown need not be read.
    let largeRequest = new AbortController(), stripRequest = new AbortController();
    const address = i => rovelogRequests.at(log, "image", topic, times[i]);
    const show = i => {
      if (i === shown) return;
      shown = i;
      clearTimeout(waiting);
      // Loading is delayed, because the pointer passes many images while it moves.
      waiting = setTimeout(() => { largeRequest.abort(); largeRequest = new AbortController(); rovelogSource.show(large, address(i), largeRequest.signal); large.alt = `${topic} at ${times[i].toFixed(3)} s`; note.textContent = `${times[i].toFixed(3)} s, ${i + 1} of ${times.length}${times.length < total ? ` (thinned from ${total})` : ""}`; }, 40);
    };
    // Small images, such as icons, are enlarged.
    large.addEventListener("load", () => large.classList.toggle("small", large.naturalWidth < 320));
    large.addEventListener("error", () => { note.textContent = "This image cannot be shown: rovelog extract"; });
    const draw = time => {
      const view = host.view(), from = nearest(times, view[0]), to = nearest(times, view[1]);
      const count = Math.min(8, to - from + 1);
      const chosen = Array.from({ length: count }, (_, k) => from + Math.floor(k * (to - from) / Math.max(count - 1, 1)));
      if (shownStrip !== chosen.join()) {
        shownStrip = chosen.join();
        stripRequest.abort();
        stripRequest = new AbortController();
        strip.replaceChildren(...chosen.map(i => {
          const button = element("button", null, { "aria-label": `Image at ${times[i].toFixed(2)} s`, title: `${times[i].toFixed(2)} s` });
          const image = element("img", null, { alt: "", loading: "lazy" });
          rovelogSource.show(image, address(i), stripRequest.signal);
          button.append(image);
          button.addEventListener("click", () => host.point(times[i]));
          return button;
        }));
      }
      show(nearest(times, time === null ? view[0] : time));
    };
    return { draw };
  };

  // Shows points, which can be rotated by dragging or with the arrow keys. Their colors show
  // heights.
  const cloud = (log, topic, times) => () => {
    const made = section(`Points ${topic}`);
    const canvas = canvasOf(made, `Points of ${topic}; arrows turn, plus and minus zoom`);
    const note = element("p", null, { class: "note" });
    made.append(note);
    let turn = -0.6, tilt = 0.9, near = 1, points = null, shown = -1, waiting = 0;
    const paint = () => {
      if (!points) return;
      const { ctx, width, height, scale } = fitted(canvas);
      const image = ctx.createImageData(width, height), data = image.data, depth = new Float32Array(width * height).fill(-Infinity);
      for (let i = 0; i < data.length; i += 4) { data[i] = 16; data[i + 1] = 20; data[i + 2] = 28; data[i + 3] = 255; }
      const [c, s, ct, st] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
      const per = Math.min(width, height) / 2 / points.reach * near, { x, y, z, low, high } = points;
      const size = Math.max(1, Math.round((x.length > 20000 ? 1 : 2) * scale));
      for (let i = 0; i < x.length; i++) {
        // First, the points are projected from above, with the forward direction pointing up. Then,
        // the view is tilted.
        const right = -y[i] * c + x[i] * s, up = x[i] * c + y[i] * s;
        const px = Math.round(width / 2 + right * per), py = Math.round(height / 2 - (up * st + z[i] * ct) * per), d = z[i] * st - up * ct;
        const h = Math.min(Math.max((z[i] - low) / (high - low || 1), 0), 1);
        for (let dx = 0; dx < size; dx++) for (let dy = 0; dy < size; dy++) {
          const qx = px + dx, qy = py + dy;
          if (qx < 0 || qy < 0 || qx >= width || qy >= height || depth[qy * width + qx] > d) continue;
          const at = qy * width + qx;
          depth[at] = d;
          data[4 * at] = 40 + 215 * h; data[4 * at + 1] = 110 + 130 * h; data[4 * at + 2] = 190 - 60 * h;
        }
      }
      ctx.putImageData(image, 0, 0);
    };
    const load = async i => {
      const { header, take } = await rovelogRequests.packed(rovelogRequests.at(log, "cloud", topic, times[i]));
      if (shown !== i) return;
      if (header.error) { note.textContent = header.error; return; }
      const [x, y, z] = [0, 1, 2].map(() => take(header.points));
      const sorted = list => Float64Array.from(list).sort(), part = (list, p) => list.length ? list[Math.min(Math.floor(list.length * p), list.length - 1)] : 0;
      // The points rotate about the sensor if it is among its points. In a map, or ahead of a
      // camera, it is not, and the points rotate about their own center.
      const middle = list => {
        const all = sorted(list), low = part(all, 0.03), high = part(all, 0.97);
        return low <= 0 && high >= 0 ? 0 : (low + high) / 2;
      };
      const centre = [x, y, z].map(middle);
      [x, y, z].forEach((list, axis) => list.forEach((v, k) => { list[k] = v - centre[axis]; }));
      const far = sorted(x.map((v, k) => Math.hypot(v, y[k]))), heights = sorted(z);
      points = { x, y, z, reach: (part(far, 0.97) || 1) * 1.1, low: part(heights, 0.02), high: part(heights, 0.98) };
      const around = centre.some(v => v) ? `, around (${centre.map(v => v.toFixed(1)).join(", ")})` : "";
      const across = 2 * points.reach;
      note.textContent = `${header.points} points${header.every > 1 ? ` (every ${header.every}th)` : ""} at ${times[i].toFixed(3)} s, ${across.toFixed(across < 10 ? 1 : 0)} m across${around}. Drag to turn.`;
      paint();
    };
    canvas.addEventListener("pointerdown", event => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", event => {
      if (!event.buttons) return;
      turn += event.movementX / 150; tilt = Math.min(Math.max(tilt + event.movementY / 150, 0), Math.PI / 2);
      paint();
    });
    const step = { ArrowLeft: () => { turn -= 0.1; }, ArrowRight: () => { turn += 0.1; }, ArrowUp: () => { tilt = Math.max(tilt - 0.1, 0); },
      ArrowDown: () => { tilt = Math.min(tilt + 0.1, Math.PI / 2); }, "+": () => { near *= 1.25; }, "-": () => { near /= 1.25; } };
    canvas.addEventListener("keydown", event => {
      if (!step[event.key]) return;
      event.preventDefault();
      step[event.key]();
      paint();
    });
    canvas.addEventListener("wheel", event => { event.preventDefault(); near *= event.deltaY < 0 ? 1.15 : 1 / 1.15; paint(); }, { passive: false });
    const draw = time => {
      const i = nearest(times, time === null ? host.view()[0] : time);
      if (i === shown) return paint();
      shown = i;
      clearTimeout(waiting);
      waiting = setTimeout(() => load(i).catch(error => { note.textContent = error.message; }), 60);
    };
    return { draw };
  };

  const load = async log => {
    const number = ++generation;
    place.replaceChildren();
    parts = [];
    const found = [await track(log)];
    const { header, take } = await rovelogRequests.packed(`logs/${log}/sources`);
    const sources = header.sources.map(source => ({ ...source, times: take(source.points) })).filter(source => source.points);
    for (const kind of ["image", "cloud"]) for (const { topic, times, total } of sources.filter(source => source.kind === kind).slice(0, 6)) {
      found.push(kind === "image" ? images(log, topic, times, total) : cloud(log, topic, times));
    }
    if (generation !== number) return;
    parts = found.filter(Boolean).map(make => make());
    draw(null);
  };
  let pending = 0;
  const draw = time => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => parts.forEach(part => part.draw(time)));
  };
  return { load, draw, clear: () => { generation++; parts = []; place.replaceChildren(); } };
};

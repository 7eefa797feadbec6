"use strict";
(() => {
  const by = id => document.getElementById(id);
  const root = document.documentElement, prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const say = text => { by("said").textContent = visible(text); };
  const failed = error => {
    if (error && error.name === "AbortError") return;
    by("problem").hidden = !error;
    by("problem").textContent = error ? visible(error.message || error) : "";
  };
  let start = null, log = null, over = null, lines = [], linesLeftOut = 0, applied = null;
  // Number of the latest request. Responses to earlier requests are discarded.
  let asked = 0;
  const colors = () => prefersDark.matches ? start.dark : start.light;
  const utc = by("utc");
  const size = bytes => {
    let i = 0;
    // A number that would be rounded up to 1000 is shown in the next larger unit.
    while (bytes >= (i ? 999.5 : 1000) && i < 4) { bytes /= 1000; i++; }
    return `${i ? bytes.toPrecision(3) : bytes} ${["B", "kB", "MB", "GB", "TB"][i]}`;
  };
  const length = seconds => seconds === null || seconds === undefined ? "" : seconds < 120 ? `${+seconds.toPrecision(4)} s`
    : `${Math.floor(seconds / 3600)}:${String(Math.floor(seconds / 60) % 60).padStart(2, "0")}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

  // The URL fragment stores the state of the page: log, plots, time range and overlaid log.
  const part = ([topic, field]) => `${encodeURIComponent(topic)}:${encodeURIComponent(field)}`;
  const address = () => {
    if (!log) return "";
    const found = [`log=${encodeURIComponent(log.name)}`, ...plots.list().map(signals => `plot=${signals.map(part).join(",")}`)];
    const [a, b] = plots.view();
    if (a > 0 || b < log.seconds) found.push(`range=${a},${b}`);
    const [measured, cursors] = measure.state();
    if (measured) found.push(`measure=${cursors.join(",")}`);
    if (over) found.push(`over=${encodeURIComponent(over.name)}`, `shift=${over.shift}`);
    if (utc.checked !== (log.unix_ms !== null)) found.push(`utc=${utc.checked ? 1 : 0}`);
    return "#" + found.join("&");
  };
  const parse = text => {
    const found = { plots: [] };
    for (const pair of text.replace(/^#/, "").split("&")) {
      const [key, value = ""] = pair.split(/=(.*)/s);
      try {
        if (key === "plot") found.plots.push(value.split(",").map(one => one.split(":").map(decodeURIComponent)).filter(one => one.length === 2));
        else if (key === "range") found.range = value.split(",").map(Number);
        else if (key === "measure") found.measure = value.split(",").filter(Boolean).map(Number).filter(isFinite).slice(0, 2).sort((a, b) => a - b);
        else if (key) found[key] = decodeURIComponent(value);
      } catch { /* A part that cannot be decoded is left out. */ }
    }
    found.plots = found.plots.filter(signals => signals.length);
    if (found.range && !(found.range.length === 2 && found.range.every(isFinite) && found.range[0] < found.range[1])) delete found.range;
    return found;
  };
  let saving = 0;
  const changed = () => {
    measure.refresh();
    clearTimeout(saving);
    saving = setTimeout(() => {
      applied = address();
      if (log && location.hash !== applied) history.replaceState(null, "", applied);
      command();
      listMessages();
      scene.draw(null);
    }, 120);
  };

  // Builds the command line that produces the same result as the page.
  const quote = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  const ENDINGS = { ulog: "ulg", rld: "rld", rosbag: "bag", vel: "vel" };
  const KINDS = ["plot", "cat", "export", "slice", "report"];
  const command = () => {
    if (!log) return "";
    const [a, b] = plots.view(), all = plots.list().flat(), kind = by("kind").value, signals = all.filter(([topic]) => topic);
    const window = a > 0 || b < log.seconds ? ` -S +${+a.toFixed(6)}s -E +${+b.toFixed(6)}s` : "";
    const topics = [...new Set(signals.map(([topic]) => topic))], stem = log.name.replace(/^.*[/\\]/, "").replace(/\.[^.]*$/, "");
    const each = (option, list) => list.map(text => ` ${option} ${quote(text)}`).join("");
    const fields = [...new Set(signals.map(([, field]) => field.replace(/^\w+\((.*)\)$/, "$1").replace(/\[\d+\]/g, "")))];
    const end = {
      plot: `${all.map(([topic, field]) => " " + quote(topic ? `${topic}.${field}` : field.startsWith("-") ? `(${field})` : field)).join("") || " --all"}${window} -o ${quote(stem + ".html")}`,
      cat: `${each("--topics", topics)}${topics.length === 1 ? each("--fields", fields) : ""}${window} -f csv`,
      export: ` --to parquet${each("--topics", topics)}${window} -o ${quote(stem)}`,
      slice: `${window} -o ${quote(stem.replace(/\.(ulg|rld|bag|vel)$/i, "") + ".part." + ENDINGS[log.id])}`,
      report: ` -o ${quote(stem + ".html")}`,
    }[kind];
    const options = start.arguments.map(word => " " + quote(word)).join("");
    const text = `rovelog ${kind} ${quote(log.path)}${end}${options}`;
    by("command").textContent = text;
    return text;
  };
  const copy = async () => {
    by("command").hidden = false;
    try { await navigator.clipboard.writeText(command()); say("Copied the command"); } catch { say("Select the command to copy it"); }
  };

  const host = {
    get charts() { return charts; }, colors, dark: () => prefersDark.matches, say, failed, changed,
    full: () => log ? [0, log.seconds] : [0, 1],
    rate: topic => log?.topics.find(([name]) => name === topic)?.[3],
    logs: () => !log ? [] : [{ log: log.number, shift: 0, name: log.name }, ...(over ? [{ log: over.number, shift: over.shift, name: over.name, over: true }] : [])],
    view: () => plots.view(),
    hasPreview: () => log !== null && log.partly && log.preview,
    pointed: time => { now(time); scene.draw(time); },
    loaded: () => { measure.refresh(); complete().catch(failed); },
    clicked: (time, event) => measure.click(time, event),
    cursors: u => measure.draw(u),
    plots: () => plots.all(), nameOf: (plot, line) => plots.nameOf(plot, line),
    clock: time => utc.checked && log.unix_ms !== null ? charts.iso(time).slice(11, 23) : `${time.toFixed(3)} s`,
    point: time => { const middle = plots.view(), half = (middle[1] - middle[0]) / 2; if (time < middle[0] || time > middle[1]) plots.zoom(time - half, time + half); host.pointed(time); },
  };
  const charts = rovelogCharts({ colors, utc: () => utc.checked, unixMs: () => log ? log.unix_ms : null, bands: () => log ? log.bands : [] });
  const plots = rovelogPlots(by("plots"), host);
  const measure = rovelogMeasure(by("measure"), by("measured"), host);
  const scene = rovelogScene(by("scene"), host);
  // Adds a signal to a plot. Throws an error if the signal is an invalid expression.
  const addSignal = async (signal, into) => {
    if (!signal[0] && /^(psd|spectrogram)\(/.test(signal[1])) {
      await rovelogRequests.ask(rovelogRequests.spectrum(log.number, signal[1], [0, log.seconds], 300, "light"));
      return plots.add([signal]);
    }
    const [found] = signal[0] ? [null] : await rovelogRequests.signals(log.number, [signal], [0, log.seconds], 1);
    if (found && found.error) throw new Error(found.error);
    plots.add([signal], into ? plots.active() : null);
  };
  const tree = rovelogTree(by("tree"), by("search"), by("more"), addSignal);
  plots.droppable(by("drop"), () => null);

  // Shows the time at the cursor, the flight mode at this time, and the last message before this
  // time.
  const now = time => {
    by("now-time").textContent = time === null ? "" : `${host.clock(time)}${utc.checked ? ` = ${time.toFixed(3)} s` : ""} `;
    let found = "";
    if (time !== null) {
      const mode = log.bands.find(([from, to]) => from <= time && time < to);
      const line = lines.filter(line => line[0] <= time).pop();
      found = [mode && mode[3], line && `${host.clock(line[0])} ${line[3]}`].filter(Boolean).join(" · ");
    }
    by("now-text").textContent = found;
  };
  const LEVELS = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];
  const listMessages = () => {
    if (!log) return;
    const [a, b] = plots.view(), words = by("message-search").value.toLowerCase();
    by("clock").textContent = utc.checked ? "UTC" : "s";
    // Messages may be before the first sample or after the last one.
    const from = a <= 0 ? -Infinity : a, to = b >= log.seconds ? Infinity : b;
    const found = lines.filter(([time, , kind, text]) => time >= from && time <= to && (!words || `${kind} ${text}`.toLowerCase().includes(words)));
    by("lines").replaceChildren(...found.slice(0, 500).map(([time, level, kind, text]) => {
      const row = element("tr", null, level < 4 ? { class: "bad" } : level === 4 ? { class: "warn" } : {});
      const cell = element("td", null, { class: "n" }), button = element("button", host.clock(time).replace(" s", ""), { "aria-label": `Show ${host.clock(time)}` });
      button.addEventListener("click", () => { const span = Math.min(plots.view()[1] - plots.view()[0], Math.max(log.seconds / 20, 1)); plots.zoom(time - span / 2, time + span / 2); host.pointed(time); });
      cell.append(button);
      row.append(cell, element("td", LEVELS[level] || ""), element("td", kind), element("td", text));
      return row;
    }));
    const more = found.length > 500 ? `${found.length - 500} more: zoom in or search.` : found.length ? "" : words ? `No message in the shown range matches “${words}”.` : "There are no messages in the shown range.";
    by("lines-more").textContent = more + (linesLeftOut ? ` ${linesLeftOut} lines are left out.` : "");
  };

  const bandNames = () => {
    const seen = new Map(log.bands.map(([, , k, name]) => [k, name]));
    by("modes").hidden = !seen.size;
    by("modes").replaceChildren("Flight modes: ", ...[...seen].map(([k, name]) => {
      const made = element("span"), box = element("i");
      box.style.background = colors().fills[k % colors().fills.length];
      made.append(box, name);
      return made;
    }));
  };
  let overlaid = 0;
  const numberOf = name => start.logs.findIndex(([known]) => known === name);
  const overlay = async (name, shift) => {
    over = null;
    const request = ++overlaid, under = log;
    if (name) {
      const number = numberOf(name), other = await rovelogRequests.json(`logs/${number}`);
      if (request !== overlaid || log !== under) return;
      over = { number, name, shift: shift || 0, unix_ms: other.unix_ms };
    }
    by("overlay").value = name || "";
    by("shift").value = over ? over.shift : 0;
    by("shift-label").hidden = !over;
    by("align").hidden = !over || over.unix_ms === null || log.unix_ms === null;
    plots.reload();
    changed();
  };

  const open = async state => {
    const number = numberOf(state.log);
    if (number < 0) throw new Error(`there is no log ${state.log} here`);
    by("table").hidden = true;
    by("log").hidden = false;
    by("title").textContent = visible(state.log);
    by("facts").textContent = "Reading…";
    document.title = `${state.log} - Rovelog`;
    rovelogRequests.abort();
    plots.clear(); scene.clear(); tree.fill([]); lines = []; linesLeftOut = 0; log = null; over = null; ++overlaid;
    for (const id of ["found", "lines"]) by(id).replaceChildren();
    for (const id of ["found-more", "lines-more"]) by(id).textContent = "";
    for (const id of ["messages", "modes", "overlay-label", "shift-label", "align"]) by(id).hidden = true;
    const request = asked, found = await rovelogRequests.json(`logs/${number}`);
    if (request !== asked) return;
    log = { ...found, number };
    plots.set(state.range || [0, log.seconds]);
    measure.restore(state.measure);
    utc.disabled = log.unix_ms === null;
    utc.checked = state.utc === undefined ? log.unix_ms !== null : state.utc === "1" && log.unix_ms !== null;
    facts();
    tree.fill(log.topics);
    bandNames();
    // Only logs of the same format have the same signals. The format of a log is known after it was
    // opened for the table of logs. Until then, the end of its name decides.
    const ending = name => name.toLowerCase().replace(/\.(gz|bz2|xz|zst|lz4)$/, "").replace(/^.*\./, "");
    const others = rows.filter(row => row.format ? row.format === log.format : ending(row.name) === ending(log.name))
      .map(({ name }) => name).filter(name => name !== log.name);
    by("overlay").replaceChildren(element("option", "none", { value: "" }), ...others.map(name => element("option", name, { value: name })));
    by("overlay-label").hidden = !others.length;
    if (state.over && numberOf(state.over) >= 0) await overlay(state.over, Number(state.shift) || 0);
    if (request !== asked) return;
    const isFirst = !state.plots.length;
    (isFirst ? log.start : state.plots).forEach(signals => plots.add(signals, null, isFirst));
    rovelogRequests.json(`logs/${number}/events`).then(({ lines: sent, left_out }) => {
      if (request !== asked) return;
      lines = sent;
      linesLeftOut = left_out || 0;
      by("messages").hidden = !lines.length;
      plots.mark(lines);
      listMessages();
    }).catch(failed);
    scene.load(number).catch(failed);
    listFindings();
  };

  // Shows the findings of the log and the problems of the file. They are computed when the user opens
  // the section, because the whole log must be read for them.
  const MAX_PROBLEMS = 500;
  const listFindings = async () => {
    if (!by("findings").open || !log || by("found").childElementCount) return;
    const request = asked, path = `logs/${log.number}`;
    by("found-more").textContent = "Reading…";
    let findings = [], problems = [], failure = "";
    try {
      problems = await rovelogRequests.json(`${path}/problems`);
      findings = await rovelogRequests.json(`${path}/findings`);
    } catch (error) { failure = error.message; }
    if (request !== asked) return;
    const more = Math.max(log.problems, problems.length) - MAX_PROBLEMS;
    by("found-more").textContent = failure || (more > 0 ? `${more} more problems: rovelog check` : "") || (findings.length || problems.length ? "" : "Nothing was found.");
    const row = (place, severity, kind, text, bad) => {
      const made = element("tr", null, bad ? { class: "bad" } : {}), cell = element("td", null, { class: "n" });
      cell.append(place);
      made.append(cell, element("td", severity), element("td", kind), element("td", text));
      return made;
    };
    by("found").replaceChildren(...findings.map(([from, to, severity, kind, text]) => {
      const button = element("button", host.clock(from), { "aria-label": `Show ${host.clock(from)}` });
      button.addEventListener("click", () => { const margin = Math.max((to - from) / 2, log.seconds / 50, 0.5); plots.zoom(from - margin, to + margin); host.pointed(from); });
      return row(button, severity, kind, text, severity === "high");
    }), ...problems.slice(0, MAX_PROBLEMS).map(({ code, severity, start, end, message }) => row(`bytes ${start} to ${end}`, severity.replace("_", " "), code, message, severity === "data_lost")));
  };
  const facts = () => {
    by("facts").textContent = [`${log.format} ${log.version}`, size(log.size), length(log.seconds), `${log.records} records`, log.lost || log.state.replace("_", " ")].join(" · ");
  };
  // More facts are known when the whole log was read.
  const complete = async () => {
    if (!log || !log.partly) return;
    const request = asked, { state, lost, records, partly } = await rovelogRequests.json(`logs/${log.number}`);
    if (request !== asked) return;
    Object.assign(log, { state, lost, records, partly });
    facts();
  };
  // A bag is opened by its index. So damage may be found later, when records are read.
  rovelogRequests.onLoss((number, lost) => { if (log && log.number === number && log.lost !== lost) { log.lost = lost; facts(); } });

  // Shows the table of logs, which is filled row by row.
  const COLUMNS = [["name", "name"], ["format", "format"], ["bytes", "size"], ["time", "changed"], ["seconds", "length"], ["records", "records"], ["utc", "start"], ["state", "state"]];
  let rows = [], sorted = ["name", 1], filled = null;
  const table = () => {
    const words = by("find").value.toLowerCase(), [key, sign] = sorted;
    const value = row => row[key] ?? "";
    const shown = rows.filter(row => !words || `${row.name} ${row.format || ""} ${row.state || ""}`.toLowerCase().includes(words))
      .sort((a, b) => sign * (typeof value(a) === "number" && typeof value(b) === "number" ? value(a) - value(b) : String(value(a)).localeCompare(String(value(b)), "en", { numeric: true })));
    by("rows-more").textContent = !shown.length ? `No log matches “${words}”.` : shown.length > 2000 ? `${shown.length - 2000} more: search for a part of the name.` : "";
    by("rows").replaceChildren(...shown.slice(0, 2000).map(row => {
      const made = element("tr", null, row.error ? { class: "bad" } : {}), name = element("td");
      name.append(element("a", row.name, { href: `#log=${encodeURIComponent(row.name)}` }));
      const cell = (text, n) => element("td", text, n ? { class: "n" } : {});
      made.append(name, cell(row.format || ""), cell(size(row.bytes), true), cell(new Date(row.time).toISOString().slice(0, 16).replace("T", " ")),
        cell(length(row.seconds), true), cell(row.records === undefined ? "" : String(row.records), true), cell((row.utc || "").slice(0, 19).replace("T", " ")), cell(row.error || (row.lost ? `${row.state}, ${size(row.lost)} lost` : (row.state || "…").replace("_", " "))));
      return made;
    }));
  };
  const heads = () => by("heads").replaceChildren(...COLUMNS.map(([key, text]) => {
    const head = element("th", null, { scope: "col", ...(sorted[0] === key ? { "aria-sort": sorted[1] > 0 ? "ascending" : "descending" } : {}) });
    const button = element("button", text);
    button.addEventListener("click", () => { sorted = [key, sorted[0] === key ? -sorted[1] : 1]; heads(); table(); [...by("heads").querySelectorAll("button")].find(other => other.textContent === text).focus(); });
    head.append(button);
    return head;
  }));
  const folder = async () => {
    rovelogRequests.abort();
    plots.clear(); scene.clear(); log = null;
    by("log").hidden = true;
    by("table").hidden = false;
    by("title").textContent = `${start.logs.length} logs`;
    by("facts").textContent = "";
    document.title = "Rovelog";
    heads(); table();
    if (filled === rows) return;
    const filling = filled = rows;
    let next = 0, pending = 0;
    const worker = async () => {
      while (next < filling.length && filled === filling) {
        const i = next++;
        if (filling[i].state) continue;
        // Rows are requested without the signal of a log, so that opening a log does not abort them.
        try { Object.assign(filling[i], await rovelogRequests.json(`logs/${i}/row`, null)); } catch (error) { filling[i].error = error.message; }
        if (!pending) pending = setTimeout(() => { pending = 0; if (!log) table(); }, 200);
      }
    };
    await Promise.all([worker(), worker()]);
  };
  const route = async () => {
    if (applied !== null && location.hash === applied) return;
    applied = location.hash;
    const request = ++asked;
    failed(null);
    const state = parse(location.hash);
    if (!state.log && start.logs.length === 1) state.log = start.logs[0][0];
    by("all-logs").hidden = start.logs.length === 1 || !state.log;
    try { await (state.log ? open(state) : folder()); } catch (error) { if (request === asked) { by("facts").textContent = ""; failed(error); } }
  };

  by("kind").replaceChildren(...KINDS.map(kind => element("option", kind, { value: kind })));
  by("kind").addEventListener("change", () => { by("command").hidden = false; command(); });
  by("copy").addEventListener("click", copy);
  by("fit").addEventListener("click", () => plots.zoom(...host.full()));
  utc.addEventListener("change", () => { plots.axes(); changed(); });
  by("overlay").addEventListener("change", () => overlay(by("overlay").value, 0).catch(failed));
  by("shift").addEventListener("change", () => { if (!over) return; over.shift = Number(by("shift").value) || 0; plots.reload(); changed(); });
  by("align").addEventListener("click", () => { if (!over) return; over.shift = (over.unix_ms - log.unix_ms) / 1000; by("shift").value = over.shift; plots.reload(); changed(); });
  by("message-search").addEventListener("input", listMessages);
  by("findings").addEventListener("toggle", listFindings);
  by("find").addEventListener("input", table);
  addEventListener("keydown", event => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey || !log) return;
    const act = { "/": () => by("search").focus(), f: () => plots.zoom(...host.full()), c: copy, m: measure.toggle, Escape: measure.clear,
      a: () => measure.place(plots.cursor(), 0), b: () => measure.place(plots.cursor(), 1) }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { plots.resize(); scene.draw(null); }, 100); });
  prefersDark.addEventListener("change", () => { plots.redraw(); if (log) bandNames(); scene.draw(null); });
  addEventListener("hashchange", route);
  const load = () => {
    const address = location.hash, request = asked, known = new Map(rows.map(row => [row.name, row]));
    return rovelogRequests.json("logs", null).then(found => {
      start = found;
      rows = start.logs.map(([name, bytes, time]) => ({ ...known.get(name), name, bytes, time }));
      // In the meantime, the page may have changed the address to that of the log that it still shows.
      clearTimeout(saving);
      if (request === asked && location.hash !== address) history.replaceState(null, "", address || "#");
      applied = null;
      return route();
    }).catch(failed);
  };
  // Exposes the page to the source of requests, and the drawn data to the tests.
  window.rovelogView = {
    load, log: () => log, topics: () => [...new Set(plots.list().flat().map(([topic]) => topic).filter(Boolean))],
    drawn: plots.drawn, view: plots.view, full: () => host.full()[1], add: signals => { plots.add(signals); },
  };
  load();
})();

"use strict";
// Answers the requests of the page from files that the user drops on it. The files are read in a
// worker, and nothing leaves the machine.
const rovelogSource = (() => {
  const by = id => document.getElementById(id);
  const LOG = /\.(ulg|ulog|rld|bag|vel)(\.active)?(\.(gz|bz2|xz|zst|lz4))?$|\.(zip|tgz|tbz2|txz|tar(\.(gz|bz2|xz|zst|lz4))?)$/i, HIDDEN = /(^|\/)\./;
  // The logs: the name of each, and its files.
  let logs = [];
  let chosen = () => {};
  const first = new Promise(resolve => { chosen = resolve; });

  // The worker answers one request at a time. The others wait, and can be aborted.
  const waiting = [];
  let running = null;
  const worker = (async () => {
    const packed = Uint8Array.from(atob(by("module").textContent), letter => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const code = await new Response(stream).arrayBuffer();
    const script = new Blob([by("worker").textContent], { type: "text/javascript" });
    const made = new Worker(URL.createObjectURL(script));
    made.postMessage({ code }, [code]);
    made.onmessage = ({ data }) => {
      const { resolve, reject } = running;
      running = null;
      if (data.error) reject(new Error(data.error)); else resolve(data);
      next(made);
    };
    made.onerror = event => { if (running) running.reject(new Error(event.message)); running = null; next(made); };
    return made;
  })();
  const next = made => {
    while (!running && waiting.length) {
      const request = waiting.shift();
      if (request.signal && request.signal.aborted) continue;
      running = request;
      made.postMessage(request.message);
    }
  };
  const send = async (message, signal) => {
    const made = await worker;
    return new Promise((resolve, reject) => {
      if (signal && signal.aborted) return reject(new DOMException("aborted", "AbortError"));
      if (signal) signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
      waiting.push({ message, signal, resolve, reject });
      next(made);
    });
  };
  const text = bytes => JSON.parse(new TextDecoder().decode(bytes));

  // A path of the page is `logs`, `logs/NUMBER` or `logs/NUMBER/REQUEST`.
  const ask = async (path, signal) => {
    const [, number, request] = path.match(/^logs(?:\/(\d+)(?:\/(.*))?)?$/s);
    if (number !== undefined) return send({ number: Number(number), files: logs[number].files, request: request || "" }, signal);
    await first;
    const start = text((await send({ number: null, request: "start" })).bytes);
    start.logs = logs.map(({ name, files }) => [name, files.reduce((sum, file) => sum + file.size, 0), files[0].lastModified]);
    return { bytes: new TextEncoder().encode(JSON.stringify(start)).buffer, lost: null };
  };
  const blob = async (path, signal) => {
    const { type, bytes, lost } = await ask(path, signal);
    return { blob: new Blob([bytes], { type }), lost };
  };
  const show = async (image, path, signal) => {
    try {
      const address = URL.createObjectURL((await blob(path, signal)).blob);
      image.addEventListener("load", () => URL.revokeObjectURL(address), { once: true });
      image.src = address;
    } catch (error) {
      if (error.name === "AbortError") return;
      image.dispatchEvent(new Event("error"));
      image.title = error.message;
    }
  };

  // Lists the files of dropped items. Folders are searched for logs.
  const entries = async (entry, folder) => {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      return [{ name: folder + file.name, file }];
    }
    const reader = entry.createReader(), found = [];
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return found;
      for (const inside of some) found.push(...await entries(inside, `${folder}${entry.name}/`));
    }
  };
  // Shows files. If there are several, those that cannot be logs by their name are left out.
  const take = async found => {
    found.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    const names = new URLSearchParams(found.map(({ name }) => ["name", name]));
    const groups = text((await send({ number: null, request: `groups?${names}` })).bytes);
    const made = groups.map(group => ({ name: found[group[0]].name, files: group.map(i => found[i].file) }));
    const kept = made.filter(({ name }) => made.length === 1 || (LOG.test(name) && !HIDDEN.test(name)));
    const leftOut = made.length - kept.length;
    by("left-out").textContent = leftOut ? `${leftOut} ${leftOut === 1 ? "file is" : "files are"} left out, because the name is not that of a log.` : "";
    by("problem").hidden = kept.length > 0;
    by("problem").textContent = kept.length ? "" : "There is no log among these files: .ulg, .rld, .bag or .vel";
    if (!kept.length) return;
    // Two files may have the same name, but the address names a log by its name.
    const taken = new Set(logs.map(({ name }) => name));
    for (const log of kept) {
      let name = log.name;
      for (let i = 2; taken.has(name); i++) name = `${log.name} (${i})`;
      taken.add(name);
      logs.push({ name, files: log.files });
    }
    by("welcome").hidden = true;
    const shown = new URLSearchParams(location.hash.slice(1)).get("log");
    const isFirst = logs.length === kept.length;
    if (kept.length === 1 && !(isFirst && taken.has(shown))) history.replaceState(null, "", `#log=${encodeURIComponent(logs[logs.length - 1].name)}`);
    else if (!taken.has(shown) || !isFirst) history.replaceState(null, "", "#");
    chosen();
    if (!isFirst) window.rovelogView.load();
  };
  const failed = error => { by("problem").hidden = false; by("problem").textContent = error.message; };
  const isFiles = event => [...event.dataTransfer.types].includes("Files");
  addEventListener("dragover", event => { if (isFiles(event)) { event.preventDefault(); document.body.classList.add("dropping"); } });
  addEventListener("dragleave", event => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", event => {
    if (!isFiles(event)) return;
    event.preventDefault();
    document.body.classList.remove("dropping");
    const items = [...event.dataTransfer.items].map(item => item.webkitGetAsEntry && item.webkitGetAsEntry());
    const all = items.every(Boolean) ? Promise.all(items.map(entry => entries(entry, ""))).then(lists => lists.flat())
      : Promise.resolve([...event.dataTransfer.files].map(file => ({ name: file.name, file })));
    all.then(take).catch(failed);
  });
  for (const id of ["files", "more-files"]) {
    by(id).addEventListener("change", event => {
      take([...event.target.files].map(file => ({ name: file.webkitRelativePath || file.name, file }))).catch(failed);
      event.target.value = "";
    });
  }

  // Saves a copy of the log in another form.
  by("save").addEventListener("change", async event => {
    const [kind, topic] = JSON.parse(event.target.value || "[]"), log = window.rovelogView.log();
    event.target.value = "";
    if (!kind || !log) return;
    const stem = log.name.replace(/^.*\//, "").replace(/\.(gz|bz2|xz|zst|lz4)$/i, "").replace(/\.([^.]*)$/, "");
    const end = kind === "recover" ? { ulog: "ulg", rld: "rld", rosbag: "bag", vel: "vel" }[log.id] : kind;
    const name = [stem, topic && topic.replace(/[^\w.-]+/g, "_"), kind === "recover" && "recovered", end].filter(Boolean).join(".");
    by("saved").textContent = `Writing ${name}…`;
    try {
      const { blob: made, lost } = await blob(`logs/${log.number}/${kind}${topic ? `?${new URLSearchParams({ topic })}` : ""}`);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(made);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      by("saved").textContent = lost ? `${name}: ${lost}` : `Saved ${name}`;
    } catch (error) { by("saved").textContent = error.message; }
  });
  by("save").addEventListener("pointerdown", () => choices());
  by("save").addEventListener("focus", () => choices());
  const choices = () => {
    const option = (label, value) => Object.assign(document.createElement("option"), { textContent: label, value });
    const topics = window.rovelogView.topics();
    by("save").replaceChildren(option("Save as…", ""), option("Recovered log", '["recover"]'), option("MCAP", '["mcap"]'),
      ...topics.map(topic => option(`CSV of ${topic}`, JSON.stringify(["csv", topic]))));
  };
  return { ask, show };
})();

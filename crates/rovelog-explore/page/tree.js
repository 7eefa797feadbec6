"use strict";
// Shows the tree of topics and signals, with a search field and keyboard control. `add(signal,
// into)` is called for a chosen signal.
const rovelogTree = (list, search, more, add) => {
  const MOST = 400;
  let topics = [], expanded = new Set(), rows = [];
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = text => words.every(word => text.includes(word));
    rows = [];
    let left = 0;
    for (const topic of topics) {
      const whole = has(topic.lower);
      const open = expanded.has(topic.name);
      const matching = words.length && !whole ? topic.signals.filter(signal => has(signal.lower)) : open ? topic.signals : [];
      if (words.length && !whole && !matching.length) continue;
      const unfolded = open || matching.length > 0;
      if (rows.length < MOST) rows.push({ topic, level: 1, unfolded }); else left++;
      for (const signal of matching) if (rows.length < MOST) rows.push({ topic, signal, level: 2 }); else left++;
    }
    const text = search.value.trim(), notes = [];
    if (!rows.length && text) notes.push(`No topic or signal matches “${text}”.`);
    // An expression matches no name. The first row offers to plot it.
    if (!rows.length && /[-+*/^%()<>=]/.test(text)) rows.push({ topic: { name: "" }, signal: { field: text }, level: 1 });
    const made = rows.map((row, i) => {
      const { topic, signal } = row;
      const item = element("li", null, { role: "treeitem", "aria-level": row.level, tabindex: i ? -1 : 0 });
      item.append(element("span", signal ? (topic.name ? signal.field : `Plot ${signal.field}`) : topic.name));
      if (signal) {
        item.draggable = true;
        item.classList.toggle("derived", signal.derived);
      } else {
        item.setAttribute("aria-expanded", row.unfolded);
        const rate = topic.rate ? `${topic.rate < 10 ? topic.rate.toFixed(1) : Math.round(topic.rate)} Hz` : `${topic.count}`;
        item.append(element("span", rate, { class: "about" }));
        item.title = `${topic.type}, ${topic.count} records`;
      }
      row.item = item;
      return item;
    });
    list.replaceChildren(...made);
    const unlisted = topics.reduce((sum, topic) => sum + topic.unlisted, 0);
    if (left) notes.push(`${left} more: search to find them.`);
    if (unlisted) notes.push(`${unlisted} elements of large arrays are not listed.`);
    more.textContent = notes.join(" ");
  };
  const choose = (row, event) => {
    if (row.signal) return add([row.topic.name, row.signal.field], event.shiftKey).catch(error => { more.textContent = error.message; });
    if (expanded.has(row.topic.name)) expanded.delete(row.topic.name); else expanded.add(row.topic.name);
    show();
    focus(rows.findIndex(other => other.topic === row.topic && !other.signal));
  };
  const focus = i => {
    const row = rows[Math.max(0, Math.min(i, rows.length - 1))];
    if (!row) return;
    rows.forEach(other => { other.item.tabIndex = other === row ? 0 : -1; });
    row.item.focus();
  };
  const of = event => rows.findIndex(row => row.item === event.target.closest("li"));
  list.addEventListener("click", event => { const i = of(event); if (i >= 0) choose(rows[i], event); });
  list.addEventListener("dragstart", event => {
    const row = rows[of(event)];
    if (row && row.signal) event.dataTransfer.setData("text/plain", JSON.stringify([row.topic.name, row.signal.field]));
  });
  list.addEventListener("keydown", event => {
    const i = of(event), row = rows[i];
    if (!row || event.ctrlKey || event.altKey || event.metaKey) return;
    const open = !row.signal && row.item.getAttribute("aria-expanded") === "true";
    const act = {
      ArrowDown: () => focus(i + 1), ArrowUp: () => focus(i - 1), Home: () => focus(0), End: () => focus(rows.length - 1),
      Enter: () => choose(row, event), " ": () => choose(row, event),
      ArrowRight: () => row.signal ? null : open ? focus(i + 1) : choose(row, event),
      ArrowLeft: () => row.signal ? focus(rows.findIndex(other => other.topic === row.topic)) : open && choose(row, event),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  search.addEventListener("input", show);
  search.addEventListener("keydown", event => {
    if (event.key === "ArrowDown") { event.preventDefault(); focus(0); }
    if (event.key === "Enter") { const row = rows.find(row => row.signal) || rows[0]; if (row) choose(row, event); }
  });
  return {
    fill: described => {
      topics = described.map(([name, type, count, rate, fields, derived, unlisted]) => {
        const signal = (field, isDerived) => ({ field, derived: isDerived, lower: `${name}.${field}`.toLowerCase() });
        return { name, type, count, rate, unlisted, lower: `${name} ${type}`.toLowerCase(),
          signals: [...derived.map(field => signal(field, true)), ...fields.map(field => signal(field, false))] };
      });
      topics.sort((a, b) => a.lower.localeCompare(b.lower, "en", { numeric: true }));
      expanded = new Set();
      search.value = "";
      show();
    },
  };
};

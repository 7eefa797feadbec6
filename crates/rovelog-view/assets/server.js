"use strict";
// Questions to the server. All paths are below the page's own address, which has the token.
const rovelogServer = (() => {
  const ask = async path => {
    const answer = await fetch(path);
    if (answer.ok) return answer;
    const found = await answer.json().catch(() => ({}));
    throw new Error(found.error || `${answer.status} ${answer.statusText}`);
  };
  const json = async path => (await ask(path)).json();
  // A header, and a function that returns the next numbers.
  const packed = async path => {
    const bytes = await (await ask(path)).arrayBuffer();
    const length = new DataView(bytes).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    let at = 4 + length;
    const take = count => { const found = new Float64Array(bytes, at, count); at += 8 * count; return found; };
    return { header, take };
  };
  // Signals of a log between two seconds, with seconds `t` and values `v` (null where the line is broken).
  const signals = async (log, wanted, [from, to], width) => {
    const query = new URLSearchParams();
    for (const [topic, field] of wanted) { query.append("topic", topic); query.append("field", field); }
    query.append("from", from); query.append("to", to); query.append("width", Math.round(width));
    const { header, take } = await packed(`logs/${log}/signals?${query}`);
    return header.series.map(found => {
      if (!found) return null;
      const t = take(found.points), v = Array.from(take(found.points), value => isFinite(value) ? value : null);
      return { ...found, t, v };
    });
  };
  const at = (log, what, topic, seconds) => `logs/${log}/${what}?${new URLSearchParams({ topic, at: seconds })}`;
  return { json, packed, signals, at };
})();
// An element with a text; texts of logs are never markup.
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

"use strict";
// Requests to the server. All paths are relative to the page's URL, which contains the token.
const rovelogServer = (() => {
  // Called with the number of a log and a text if reading has found a loss.
  let lossFound = () => {};
  const onLoss = callback => { lossFound = callback; };
  // `signal` aborts the request, so that the server does not work for an answer that nobody waits for.
  const ask = async (path, signal) => {
    const answer = await fetch(path, { signal }), lost = answer.headers.get("rovelog-lost");
    if (lost) lossFound(parseInt(path.slice("logs/".length), 10), lost);
    if (answer.ok) return answer;
    const found = await answer.json().catch(() => ({}));
    throw new Error(found.error || `${answer.status} ${answer.statusText}`);
  };
  const json = async path => (await ask(path)).json();
  // Fetches a binary response. Returns its header, and a function that returns the next array.
  const packed = async (path, signal) => {
    const bytes = await (await ask(path, signal)).arrayBuffer();
    const length = new DataView(bytes).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    let at = 4 + length;
    const take = count => { const found = new Float64Array(bytes, at, count); at += 8 * count; return found; };
    return { header, take };
  };
  // Fetches signals between two times as seconds `t` and values `v`. A null interrupts the line.
  const signals = async (log, wanted, [from, to], width, signal) => {
    const query = new URLSearchParams();
    for (const [topic, field] of wanted) { query.append("topic", topic); query.append("field", field); }
    query.append("from", from); query.append("to", to); query.append("width", Math.round(width));
    const { header, take } = await packed(`logs/${log}/signals?${query}`, signal);
    return header.series.map(found => {
      if (!found) return null;
      const t = take(found.points), v = Array.from(take(found.points), value => isFinite(value) ? value : null);
      return { ...found, t, v };
    });
  };
  const at = (log, what, topic, seconds) => `logs/${log}/${what}?${new URLSearchParams({ topic, at: seconds })}`;
  return { json, packed, signals, at, onLoss };
})();
// Creates an element with a text. Texts from logs are never parsed as markup.
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

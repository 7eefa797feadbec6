"use strict";
// Requests of the page for logs. `rovelogSource` passes them to a server or to code in the browser:
// - `ask(path, signal)` returns a promise of `bytes` and of `lost`, which describes the data of the
//   log that cannot be read. It fails with the reason if the request cannot be answered. `signal`
//   aborts a request whose answer is no longer needed.
// - `show(image, path, signal)` shows the picture that answers a request in an element.
const rovelogRequests = (() => {
  // Called with the number of a log and a description if data of the log is found to be lost.
  let lossFound = () => {};
  const onLoss = callback => { lossFound = callback; };
  // Aborts all requests without a signal of their own, because the page shows another log.
  let shown = new AbortController();
  const abort = () => { shown.abort(); shown = new AbortController(); };
  const ask = async (path, signal = shown.signal) => {
    const { bytes, lost } = await rovelogSource.ask(path, signal);
    if (lost) lossFound(parseInt(path.slice("logs/".length), 10), lost);
    return bytes;
  };
  const json = async (path, signal) => JSON.parse(new TextDecoder().decode(await ask(path, signal)));
  // Requests a binary answer. Returns its header, and a function that returns the next array of
  // the answer.
  const packed = async (path, signal) => {
    const bytes = await ask(path, signal);
    const length = new DataView(bytes).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    let at = 4 + length;
    const take = count => { const found = new Float64Array(bytes, at, count); at += 8 * count; return found; };
    return { header, take };
  };
  // A signal is an array of a topic and a field. If the topic is empty, the field is an expression.
  const query = (wanted, [from, to]) => {
    const made = new URLSearchParams();
    for (const [topic, field] of wanted) { made.append("topic", topic); made.append("field", field); }
    made.append("from", from); made.append("to", to);
    return made;
  };
  // Returns the values of signals in a time range. Each signal has times in seconds (`t`) and
  // values (`v`). A value of null interrupts the line. The entry of an invalid expression only has
  // the property `error`. If `preview` is true, only a few samples of each signal are read.
  const signals = async (log, wanted, range, width, signal, preview) => {
    const { header, take } = await packed(`logs/${log}/signals?${query(wanted, range)}&width=${Math.round(width)}${preview ? "&preview=1" : ""}`, signal);
    return header.series.map(found => {
      if (!found || found.error) return found;
      const t = take(found.points), v = Array.from(take(found.points), value => isFinite(value) ? value : null);
      return { ...found, t, v };
    });
  };
  // Returns the measures of signals in a time range, such as the mean.
  const measures = async (log, wanted, range, signal) => (await json(`logs/${log}/measures?${query(wanted, range)}`, signal)).series;
  // Returns the path of a picture with a spectrum, such as `psd(x)`, in a time range.
  const spectrum = (log, text, range, width, theme) => `logs/${log}/spectrum?${query([["", text]], range)}&width=${Math.round(width)}&theme=${theme}`;
  const at = (log, what, topic, seconds) => `logs/${log}/${what}?${new URLSearchParams({ topic, at: seconds })}`;
  return { ask, json, packed, signals, measures, spectrum, at, onLoss, abort };
})();
// Makes characters visible that change the writing direction, because they can make a name look
// like another name.
const visible = text => String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, mark => `\\u{${mark.charCodeAt(0).toString(16)}}`);
// Creates an element that contains a text. Texts from logs are never parsed as HTML.
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = visible(text);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

// Reads logs in a Web Worker, so that the page stays responsive. The page sends one request at a
// time.

// Maximum size in bytes of all open logs. The log that was used last is open in any case.
const MAX_OPEN = 1 << 30;

let module = null;
// Open logs by their number, the most recently used last.
const open = new Map();

// A file of the page. Parts of it are read on request.
const hostFile = file => ({
  name: file.name,
  size: file.size,
  read: (at, bytes) => bytes.set(new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.slice(at, at + bytes.length)))),
});

const opened = (number, files) => {
  const known = open.get(number);
  open.delete(number);
  // A log that has failed is opened again.
  const log = known && !known.failure ? known : new Instance(module, files.map(hostFile)).open();
  open.set(number, log);
  const bytes = () => [...open.values()].reduce((sum, { files }) => sum + files.reduce((sum, { size }) => sum + size, 0), 0);
  while (open.size > 1 && bytes() > MAX_OPEN) open.delete(open.keys().next().value);
  return log;
};

const answer = ({ number, files, request }) => {
  if (number === null) return new Instance(module).answer(request);
  // A row of the table needs only the summary, so the log is not kept open for it.
  if (request === "row" && !open.has(number)) return new Instance(module, files.map(hostFile)).open(false).answer(request);
  return opened(number, files).answer(request);
};

onmessage = ({ data }) => {
  if (data.code) {
    module = new WebAssembly.Module(data.code);
    return;
  }
  try {
    const { type, bytes, note } = answer(data);
    postMessage({ type, bytes: bytes.buffer, lost: note }, [bytes.buffer]);
  } catch (error) {
    postMessage({ error: error.message });
  }
};

// Reads logs in a Web Worker, so that the page stays responsive. The page sends one request at a
// time.

// Maximum number of logs that are open at the same time.
const MAX_OPEN = 4;

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
  // A log whose file has changed or that has failed is opened again.
  const log = known && !known.failure ? known : new Instance(module, files.map(hostFile)).open();
  open.set(number, log);
  if (open.size > MAX_OPEN) open.delete(open.keys().next().value);
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

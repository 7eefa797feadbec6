// Reads logs in a Web Worker, so that the page stays responsive. The page sends one request at a
// time.

// Maximum size in bytes of all open logs. The last two logs are open in any case, because the page
// may draw one over the other.
const MAX_OPEN_BYTES = 1 << 30;

// Minimum size in bytes of a log that is not read as a whole when it is opened.
const MIN_PARTLY_READ = 64 << 20;

let module = null, broken = "the page is not loaded";
// Open logs by their number, the most recently used last.
const open = new Map();

// A file of the page. Parts of it are read on request.
const hostFile = file => ({
  name: file.name,
  size: file.size,
  read: (at, bytes) => bytes.set(new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.slice(at, at + bytes.length)))),
});

const size = files => files.reduce((sum, { size }) => sum + size, 0);
const opened = (number, files) => {
  const known = open.get(number);
  open.delete(number);
  // Logs are closed before another one is opened.
  const bytes = () => size(files) + [...open.values()].reduce((sum, log) => sum + size(log.files), 0);
  while (open.size > 1 && bytes() > MAX_OPEN_BYTES) open.delete(open.keys().next().value);
  // A log that has failed is opened again.
  const log = known && !known.failure ? known : new Instance(module).open(files.map(hostFile), size(files) < MIN_PARTLY_READ);
  open.set(number, log);
  return log;
};

const answer = ({ number, files, request }) => {
  if (!module) throw new Error(broken);
  if (number === null) return new Instance(module).answer(request);
  // A row of the table needs only the summary, so the log is not kept open for it.
  if (request === "row" && !open.has(number)) return new Instance(module).open(files.map(hostFile), false).answer(request);
  return opened(number, files).answer(request);
};

onmessage = ({ data }) => {
  if (data.code) {
    try { module = new WebAssembly.Module(data.code); } catch (error) { broken = `this browser cannot run the page: ${error.message}`; }
    return;
  }
  try {
    const { type, bytes, note } = answer(data);
    postMessage({ type, bytes: bytes.buffer, lost: note }, [bytes.buffer]);
  } catch (error) {
    postMessage({ error: error.message });
  }
};

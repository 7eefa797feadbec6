import { Instance } from "./instance.js";

let compiled = null;
// Compiles the module once. In Node.js it is read from the package, in browsers it is fetched.
const module = () => {
  compiled ??= (async () => {
    const address = new URL("./rovelog.wasm", import.meta.url);
    if (address.protocol !== "file:") return WebAssembly.compileStreaming(fetch(address));
    const { readFile } = await import(/* webpackIgnore: true */ "node:fs/promises");
    return WebAssembly.compile(await readFile(address));
  })().catch(error => { compiled = null; throw error; });
  return compiled;
};

// An instance whose log was closed, for the next log. Making one takes longer than reading a small
// log.
let spare = null;
// Maximum size in bytes of the memory of such an instance.
const MAX_SPARE_BYTES = 64 << 20;

const memoryFile = (name, bytes) => ({ name, size: bytes.length, read: (at, into) => into.set(bytes.subarray(at, at + into.length)) });

// Describes a file for an instance.
const describe = async source => {
  if (typeof source === "string" || source instanceof URL) {
    const fs = await import(/* webpackIgnore: true */ "node:fs"), { basename } = await import(/* webpackIgnore: true */ "node:path"), { fileURLToPath } = await import(/* webpackIgnore: true */ "node:url");
    const path = source instanceof URL ? fileURLToPath(source) : source, file = fs.openSync(path);
    const read = (at, into) => { if (fs.readSync(file, into, 0, into.length, at) !== into.length) throw new Error("the file has become shorter"); };
    return { name: basename(path), size: fs.fstatSync(file).size, read, close: () => fs.closeSync(file) };
  }
  if (typeof Blob !== "undefined" && source instanceof Blob) {
    const name = source.name ?? "log";
    // Only workers can read a part of a file without waiting.
    if (typeof FileReaderSync === "undefined") return memoryFile(name, new Uint8Array(await source.arrayBuffer()));
    return { name, size: source.size, read: (at, into) => into.set(new Uint8Array(new FileReaderSync().readAsArrayBuffer(source.slice(at, at + into.length)))) };
  }
  if (ArrayBuffer.isView(source)) return memoryFile("log", new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  return memoryFile("log", new Uint8Array(source));
};

export const open = async (source, { companions = [] } = {}) => {
  const files = [];
  try {
    for (const one of [source, ...companions]) files.push(await describe(one));
    const compiled = await module(), instance = spare ?? new Instance(compiled);
    spare = null;
    return new Log(instance.open(files));
  } finally {
    for (const file of files) file.close?.();
  }
};

const ARRAYS = {
  i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array,
  u64: BigUint64Array, f32: Float32Array, f64: Float64Array, bool: Uint8Array,
};
const query = pairs => new URLSearchParams(pairs).toString();

export class Log {
  #instance;
  #lost;

  constructor(instance) {
    this.#instance = instance;
    const { start, lost, ...facts } = instance.json("facts");
    Object.assign(this, facts, { startTime: start === null ? null : new Date(start) });
    this.#lost = lost;
  }

  get lost() {
    return this.#lost;
  }

  get topics() {
    return this.#instance.json("topics");
  }

  get problems() {
    return this.#instance.json("problems");
  }

  // Answers a request for data. Damage may be found only while the log is read.
  #read(request) {
    const { bytes, note } = this.#instance.answer(request);
    this.#lost = this.#instance.json("facts").lost;
    return { bytes, missing: note };
  }

  columns(topic, fields = []) {
    const tables = this.#tables(`columns?${query([["topic", topic], ...fields.map(field => ["field", field])])}`);
    return tables.values().next().value;
  }

  tables(topics) {
    if (topics && !topics.length) return new Map();
    return this.#tables(`tables?${query((topics || []).map(topic => ["topic", topic]))}`);
  }

  #tables(request) {
    const { bytes, missing } = this.#read(request);
    const length = new DataView(bytes.buffer).getUint32(0, true), base = 4 + length;
    const values = ({ type, at }, rows) => {
      if (type !== "text") return new ARRAYS[type](bytes.buffer, base + at, rows);
      const ends = new Uint32Array(bytes.buffer, base + at, rows + 1), start = base + at + 4 * (rows + 1), decoder = new TextDecoder();
      return Array.from({ length: rows }, (_, i) => decoder.decode(bytes.subarray(start + ends[i], start + ends[i + 1])));
    };
    const column = (found, rows) => [found.name, {
      type: found.type, values: values(found, rows), valid: found.valid === null ? null : new Uint8Array(bytes.buffer, base + found.valid, rows),
    }];
    const tables = JSON.parse(new TextDecoder().decode(bytes.subarray(4, base)));
    return new Map(tables.map(({ topic, rows, columns, omitted }) => [topic, { rows, omitted, missing, columns: Object.fromEntries(columns.map(found => column(found, rows))) }]));
  }

  records(topic) {
    const { bytes, missing } = this.#read(`records?${query({ topic })}`), decoder = new TextDecoder();
    return {
      missing,
      *[Symbol.iterator]() {
        for (let start = 0, end; start < bytes.length; start = end + 1) {
          end = bytes.indexOf(10, start);
          yield JSON.parse(decoder.decode(bytes.subarray(start, end)));
        }
      },
    };
  }

  toCsv(topic) {
    return this.#read(`csv?${query({ topic })}`);
  }

  toMcap() {
    return this.#read("mcap");
  }

  recover() {
    return this.#read("recover");
  }

  close() {
    const instance = this.#instance;
    this.#instance = null;
    if (!instance || instance.failure || instance.exports.memory.buffer.byteLength > MAX_SPARE_BYTES) return;
    instance.close();
    spare = instance;
  }
}

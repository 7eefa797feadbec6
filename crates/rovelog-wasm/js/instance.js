// An instance of the WebAssembly module. It has at most one open log and a memory of its own, which
// never becomes smaller.

const text = bytes => new TextDecoder().decode(bytes);

export class Instance {
  // `module` is a WebAssembly.Module.
  constructor(module) {
    this.files = [];
    this.failure = null;
    // Why a file could not be read.
    this.cause = null;
    const at = (start, length) => new Uint8Array(this.exports.memory.buffer, start >>> 0, length >>> 0);
    this.at = at;
    const host = {
      read: (file, start, into, length) => {
        try {
          this.files[file].read(start, at(into, length));
          return length;
        } catch (error) {
          this.cause = error.message;
          return -1;
        }
      },
      panicked: (start, length) => { this.failure = text(at(start, length).slice()); },
    };
    this.exports = new WebAssembly.Instance(module, { host }).exports;
  }

  // Opens a log and closes the one that was open. `files` are the files of the log, first the log
  // itself, then its companion files. Each has `name`, `size`, and `read(at, bytes)`, which fills
  // `bytes` with the bytes from `at` on. If `whole` is false, only the parts that the requests need are
  // read.
  open(files, whole = true) {
    this.files = files;
    this.call("rovelog_open", JSON.stringify(files.map(({ name, size }) => [name, size])), whole ? 1 : 0);
    return this;
  }

  // Closes the log, so that another one can be opened.
  close() {
    this.files = [];
    this.exports.rovelog_close();
  }

  // Answers a request. Returns its media type, its bytes, and a note about missing data or null.
  answer(request) {
    return this.call("rovelog_answer", request);
  }

  json(request) {
    return JSON.parse(text(this.answer(request).bytes));
  }

  call(name, request, ...more) {
    if (this.failure) throw new Error(this.failure);
    const bytes = new TextEncoder().encode(request);
    let reply;
    try {
      this.at(this.exports.rovelog_request(bytes.length), bytes.length).set(bytes);
      reply = this.exports[name](...more) >>> 0;
    } catch (error) {
      // The module has panicked, or it was stopped, probably because its memory is not sufficient. It
      // cannot be used any more.
      this.failure = `the log cannot be read: ${this.failure || `its reader was stopped, perhaps for lack of memory (${error.message})`}`;
      throw new Error(this.failure);
    }
    const [failed, type, typeLength, body, bodyLength, note, noteLength] = new Uint32Array(this.exports.memory.buffer, reply, 7);
    // The bytes are copied, because the next call overwrites them.
    const copy = this.at(body, bodyLength).slice();
    if (failed) {
      const message = text(copy) + (this.cause ? ` (${this.cause})` : "");
      // A log whose file could not be read may be incomplete.
      if (this.cause) this.failure = message;
      throw new Error(message);
    }
    return { type: text(this.at(type, typeLength)), bytes: copy, note: noteLength ? text(this.at(note, noteLength)) : null };
  }
}

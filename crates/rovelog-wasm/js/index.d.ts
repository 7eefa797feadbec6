/** Sources of a log: its bytes, a file of a browser, or in Node.js the path or URL of a file. */
export type Source = Uint8Array | ArrayBuffer | Blob | string | URL;

/**
 * Opens a log. Its format is detected. A log that is compressed as a whole is decompressed.
 *
 * @param options.companions the other files of the log, such as the other parts of an RLD recording,
 *   in any order. Their names must be those of the recording, so they cannot be bytes.
 * @throws Error if the source cannot be read, or if it is no log of a known format
 */
export function open(source: Source, options?: { companions?: Source[] }): Promise<Log>;

export interface Topic {
  name: string;
  type: string;
  /** Number of records. */
  count: number;
  /** Records per second, or null if it is unknown. */
  rate_hz: number | null;
}

/** A problem of the file that was found when the log was opened. */
export interface Problem {
  /** Code that the documentation of the format explains, such as `E-ULOG-002`. */
  code: string;
  name: string;
  severity: string;
  /** Byte range in the file. */
  start: number;
  end: number;
  message: string;
}

export type Values =
  | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array
  | Float32Array | Float64Array | string[];

export interface Column {
  /** `i8` to `i64`, `u8` to `u64`, `f32`, `f64`, `bool` (bytes 0 and 1) or `text`. */
  type: string;
  /** A value for each row. */
  values: Values;
  /** A byte for each row, 1 if the row has a value. Null if all rows have values. */
  valid: Uint8Array | null;
}

export interface Columns {
  /** Number of rows. */
  rows: number;
  /** The columns by name. `t_ns` is the time in nanoseconds on the clock of the log. */
  columns: Record<string, Column>;
  /** What cannot be read of the log, or null. */
  missing: string | null;
  /** Fields that have no column: raw bytes and lists of variable length. `records` has them. */
  omitted: string[];
}

/** A file made from a log. */
export interface Saved {
  bytes: Uint8Array;
  /** What the file does not contain, such as records that cannot be read, or null. */
  missing: string | null;
}

export interface Records extends Iterable<Record<string, unknown>> {
  /** What cannot be read of the log, and records of the topic that cannot be decoded, or null. */
  missing: string | null;
}

export class Log {
  /** `ulog`, `rld`, `rosbag` or `vel`. */
  readonly format: string;
  readonly formatName: string;
  readonly version: string;
  /** Size of the file in bytes. */
  readonly size: number;
  /** State of the file, such as `complete` or `damaged`. */
  readonly state: string;
  /** Number of records of all topics. */
  readonly recordCount: number;
  /** What could not be read so far, or null. Damage may be found only while data is read. */
  readonly lost: string | null;
  /** Start of the log in UTC, or null if it is unknown. */
  readonly startTime: Date | null;
  readonly topics: Topic[];
  readonly problems: Problem[];
  /** Reads fields of a topic as typed arrays. Without `fields`, all fields are read. */
  columns(topic: string, fields?: string[]): Columns;
  /** Reads several topics at once; without `topics`, all. Topics without columns are left out. */
  tables(topics?: string[]): Map<string, Columns>;
  /** The records of a topic in time order. Integers above 2^53 are rounded; `columns` is exact. */
  records(topic: string): Records;
  /** The rows of a topic as CSV. */
  toCsv(topic: string): Saved;
  /** The log as MCAP, with lz4. */
  toMcap(): Saved;
  /** A copy of the log without its damaged parts. */
  recover(): Saved;
  /** Releases the memory of the log. It cannot be used afterwards. */
  close(): void;
}

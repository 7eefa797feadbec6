// Compares the npm package with @foxglove/ulog and @foxglove/rosbag.
//
// npm.mjs OUT FOLDER... reads all logs of the folders. OUT contains the package and node_modules.
// Each value that the other package reads must be the same in ours. The times of both are compared
// when each has read all logs once, so that both are compiled.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [out, ...folders] = process.argv.slice(2).map(path => resolve(path));
const require = createRequire(join(out, "npm/package.json"));
const { open } = await import(pathToFileURL(join(out, "npm/index.js")));
const { ULog, MessageType } = require("@foxglove/ulog"), ulogNode = require("@foxglove/ulog/node");
const { Bag } = require("@foxglove/rosbag"), bagNode = require("@foxglove/rosbag/node");
const lz4 = require("lz4js");

const walk = folder => readdirSync(folder).flatMap(name => {
  const path = join(folder, name);
  return statSync(path).isDirectory() ? walk(path) : [path];
});

// Calls `visit` with the path and value of each number and text in a value of the other package. A
// time is a single number in our columns.
const each = (value, path, visit) => {
  if (["number", "bigint", "boolean", "string"].includes(typeof value)) visit(path, value);
  else if (Array.isArray(value) || ArrayBuffer.isView(value)) value.forEach((part, i) => each(part, `${path}[${i}]`, visit));
  else if (value && typeof value === "object") {
    if ("sec" in value && "nsec" in value) visit(path, BigInt(value.sec) * 1000000000n + BigInt(value.nsec));
    else for (const [key, part] of Object.entries(value)) each(part, path ? `${path}.${key}` : key, visit);
  }
};
// A text in a ULog ends at its first NUL, and the other package returns the whole array.
const same = (a, b) => typeof b === "string" ? a === b.split("\0")[0] : typeof a === typeof b ? Object.is(a, b) || a === b : Number(a) === Number(b);

// Compares the messages of a topic with our columns. Returns the number of compared values.
const compare = (columns, messages, what) => {
  let compared = 0;
  messages.forEach((message, row) => each(message, "", (path, value) => {
    const column = columns.columns[path];
    // Raw bytes and lists of variable length have no columns.
    if (!column && columns.omitted.some(omitted => path === omitted || path.startsWith(`${omitted}[`) || path.startsWith(`${omitted}.`))) return;
    assert(column, `${what}: no column ${path}`);
    assert(same(column.values[row], value), `${what}, ${path}, row ${row}: ${column.values[row]} instead of ${value}`);
    compared++;
  }));
  return compared;
};

const ulog = async path => {
  const other = new ULog(new ulogNode.FileReader(path));
  await other.open();
  const topics = new Map();
  for await (const message of other.readMessages()) {
    if (message.type !== MessageType.Data) continue;
    const { name, multiId } = other.subscriptions.get(message.msgId), topic = `${name}/${multiId}`;
    if (!topics.has(topic)) topics.set(topic, []);
    topics.get(topic).push(message.value);
  }
  return topics;
};
const rosbag = async path => {
  const other = new Bag(new bagNode.FileReader(path), { decompress: { lz4: bytes => lz4.decompress(bytes) } });
  await other.open();
  const topics = new Map();
  for await (const { topic, message } of other.messageIterator()) {
    if (!topics.has(topic)) topics.set(topic, []);
    topics.get(topic).push(message);
  }
  return topics;
};

// Undamaged logs of which the other package reads other messages, and why.
const EXCEPTIONS = {
  "22_msgid_reuse.ulg": "it counts the messages of a subscription that was replaced",
  "chunk_info_missing_one.bag": "it finds chunks only by their chunk information records",
  "equal_stamps.bag": "it sorts messages with equal times in an order of its own",
  "index_times_wrong.bag": "it takes times from the index instead of the messages",
  "out_of_order_overlapping.bag": "its messages are in time order, and our rows are in file order",
  "real_empty_definition_2020.bag": "a topic with an empty definition has no columns",
  "real_remapped_topic_2016.bag": "its messages are in time order, and our rows are in file order",
  "real_unsorted_chunks.bag": "it skips chunks that are not sorted by time",
  "two_types_one_topic.bag": "it decodes the messages of both types of a topic",
};
// Checks that damage that is found only when a chunk is read is told.
const reportsLoss = async path => {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] ^= 0xff;
  const log = await open(bytes);
  assert.equal(log.lost, null);
  const [{ name }] = log.topics, { rows, missing } = log.columns(name);
  assert(rows > 0 && rows < log.topics[0].count && missing === log.lost && missing, missing);
  const records = log.records(name);
  assert.equal([...records].length, rows);
  assert(records.missing.includes(log.lost) && log.toCsv(name).missing.includes(log.lost));
};

const totals = {}, different = [], compared = [];
for (const path of folders.flatMap(walk).filter(path => path.endsWith("real_imu_navsat_bz2_2015.bag"))) await reportsLoss(path);
for (const path of folders.flatMap(walk).filter(path => /\.(ulg|bag)$/.test(path))) {
  const kind = path.endsWith(".bag") ? "rosbag" : "ulog", read = kind === "rosbag" ? rosbag : ulog;
  const total = totals[kind] ??= { logs: 0, refused: 0, topics: 0, values: 0, ours: 0, other: 0 };
  let theirs;
  try { theirs = await read(path); } catch { total.refused++; continue; }
  const log = await open(path), tables = log.tables();
  // The other packages neither find damage nor say where they stop.
  if (log.state !== "complete" || log.problems.some(({ severity }) => severity !== "note" && severity !== "info")) { total.refused++; continue; }
  const name = basename(path), isException = name in EXCEPTIONS;
  let topics = 0, values = 0, difference = null;
  try {
    for (const [topic, messages] of theirs) {
      const found = tables.get(topic);
      assert(found, `topic ${topic} is missing`);
      assert.equal(found.rows, messages.length, `rows of ${topic}: ${found.rows} instead of ${messages.length}`);
      topics++;
      values += compare(found, messages, topic);
    }
  } catch (error) { difference = error.message; }
  log.close();
  if (isException !== (difference !== null)) different.push(`${name}: ${difference || "no exception any more"}`);
  if (isException) continue;
  total.logs++;
  total.topics += topics;
  total.values += values;
  compared.push([path, read, total]);
}
// The speed is that of code that the engine has optimized, as in a program that reads many logs.
const ROUNDS = 5;
const fastest = new Map(compared.map(([path]) => [path, [Infinity, Infinity]]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [path, read] of compared) {
    const started = performance.now();
    await read(path);
    const middle = performance.now();
    const log = await open(path);
    log.tables();
    log.close();
    const times = [middle - started, performance.now() - middle];
    fastest.set(path, fastest.get(path).map((time, k) => Math.min(time, times[k])));
  }
}
for (const [path, , total] of compared) {
  const [other, ours] = fastest.get(path);
  total.other += other;
  total.ours += ours;
}
for (const [kind, total] of Object.entries(totals)) {
  const { logs, refused, topics, values, ours, other } = total;
  console.log(`${kind}: ${logs} logs, ${topics} topics, ${values} values equal; ${refused} logs damaged or refused by the other package; ${(other / ours).toFixed(1)} times its speed`);
  assert(values > 0);
}
assert.deepEqual(different, []);

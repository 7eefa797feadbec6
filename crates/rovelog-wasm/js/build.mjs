// Makes the page and the npm package from the WebAssembly module.
//
// build.mjs MODULE VERSION OUT writes OUT/page/index.html and OUT/npm/.

import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const [module, version, out] = process.argv.slice(2);
const own = name => readFileSync(join(here, name), "utf8");
const page = name => readFileSync(join(here, "../../rovelog-explore/page", name), "utf8");
const exported = name => readFileSync(join(here, "../../rovelog-export", name), "utf8");

const code = readFileSync(module), packed = gzipSync(code, { level: 9 });

// The files that view.html names, and those that only this page has.
const SCRIPTS = {
  "uplot.js": exported("assets/uPlot-1.6.32.min.js"), "charts.js": exported("src/page/charts.js"), "source.js": own("source.js"),
  ...Object.fromEntries(["requests.js", "tree.js", "plots.js", "measure.js", "scene.js", "view.js"].map(name => [name, page(name)])),
};
const STYLES = {
  "uplot.css": exported("assets/uPlot-1.6.32.min.css"), "page.css": exported("src/page/page.css"), "view.css": page("view.css") + own("local.css"),
};

let html = page("view.html");
const replace = (what, by) => {
  if (!html.includes(what)) throw new Error(`view.html does not contain ${what}`);
  html = html.replace(what, () => by);
};
const hash = content => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
const hashes = { script: [], style: [] };
const inline = (kind, content) => {
  if (new RegExp(`</${kind}`, "i").test(content)) throw new Error(`a ${kind} contains its end`);
  hashes[kind].push(hash(content));
  return `<${kind}>${content}</${kind}>`;
};

let scripts = "";
for (const [name, content] of Object.entries(SCRIPTS)) {
  replace(`<script src="${name}" defer></script>\n`, "");
  scripts += inline("script", content) + "\n";
}
for (const [name, content] of Object.entries(STYLES)) replace(`<link rel="stylesheet" href="${name}">`, inline("style", content));
replace('href="icon.svg"', `href="data:image/svg+xml;base64,${Buffer.from(page("icon.svg")).toString("base64")}"`);
replace('<main id="table"', `${own("welcome.html")}<main id="table"`);
replace("All logs</a>", 'All logs</a>\n<label class="button">Open more <input type="file" id="more-files" multiple></label>\n<p class="note" id="left-out"></p>');
replace('<p id="measured"', '<label>Save <select id="save"><option value="">Save as…</option></select></label>\n<p id="saved" class="note" role="status"></p>\n<p id="measured"');
// Scripts run when the page has been parsed, as those with `defer` do in the page of the server.
const worker = own("instance.js").replaceAll("export ", "") + own("worker.js");
replace("</body>", `<script type="text/plain" id="worker">${worker}</script>
<script type="application/octet-stream" id="module">${packed.toString("base64")}</script>
${scripts}</body>`);
const policy = [
  "default-src 'none'", `script-src ${hashes.script.join(" ")} 'wasm-unsafe-eval'`, `style-src ${hashes.style.join(" ")}`,
  "img-src blob: data:", "worker-src blob:", "base-uri 'none'", "form-action 'none'",
].join("; ");
replace('<meta charset="utf-8">', `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`);
mkdirSync(join(out, "page"), { recursive: true });
writeFileSync(join(out, "page/index.html"), html);

const npm = join(out, "npm");
mkdirSync(npm, { recursive: true });
for (const name of ["instance.js", "index.js", "index.d.ts"]) cpSync(join(here, name), join(npm, name));
cpSync(join(here, "npm.md"), join(npm, "README.md"));
for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) cpSync(join(here, "..", name), join(npm, name));
writeFileSync(join(npm, "rovelog.wasm"), code);
writeFileSync(join(npm, "package.json"), JSON.stringify({ ...JSON.parse(own("package.json")), version }, null, 2) + "\n");
console.log(`module: ${code.length} bytes, ${packed.length} compressed; page: ${html.length} bytes`);

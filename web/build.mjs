// Bundles the pages into dist/, which the server embeds; the dashboard is in dist/admin. No output of it asks another host for anything.
import { build } from 'esbuild';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

const root = new URL('.', import.meta.url).pathname;
const dist = `${root}dist`;
const icons = JSON.parse(readFileSync(`${root}src/icons.json`, 'utf8'));

/** What dist/ shall hold, by name. */
const files = new Map(filesIn(`${root}static`).map((name) => [name, readFileSync(join(root, 'static', name))]));
for (const name of filesIn(`${root}static`)) files.set(`admin/${name}`, readFileSync(join(root, 'static', name)));
for (const name of filesIn(`${root}pages`)) {
  files.set(name, Buffer.from(page(readFileSync(`${root}pages/${name}`, 'utf8'), name)));
}

/** The names of all files in a folder, and in those in it. */
function filesIn(folder) {
  return readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());
}

/**
 * Puts the parts into a page that it names: `<!-- part NAME key="value" -->` stands for `parts/NAME.html`, with the value
 * for each `{key}` in it. A part with slots ends with `<!-- end NAME -->`; between these the page says after `<!-- slot NAME -->`
 * what stands at that line of the part. `<icon name="NAME">` stands for a drawing of `src/icons.json`.
 */
function page(text, name) {
  const whole = text.replace(/^<!-- part (\w+) -->\n(.*?)^<!-- end \1 -->\n/gms, (_, part, between) => {
    const [, ...filled] = between.split(/^<!-- slot ([\w ]+) -->\n/m);
    const slots = new Map();
    while (filled.length > 0) slots.set(filled.shift(), filled.shift());
    const lines = readFileSync(`${root}parts/${part}.html`, 'utf8').replace(/^<!-- slot ([\w ]+) -->\n/gm, (_, slot) => {
      const value = slots.get(slot) ?? '';
      slots.delete(slot);
      return value;
    });
    for (const slot of slots.keys()) throw new Error(`parts/${part}.html has no slot ${slot} for ${name}`);
    return lines;
  });
  const filled = whole.replace(/^( *)<!-- part (\w+)(.*) -->\n/gm, (_, indent, part, rest) => {
    const values = Object.fromEntries([...rest.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
    const lines = readFileSync(`${root}parts/${part}.html`, 'utf8').replace(/\{(\w+)\}/g, (_, key) => {
      if (!(key in values)) throw new Error(`${name} says nothing of {${key}} of parts/${part}.html`);
      return values[key];
    });
    // The link to the page itself.
    const here = `href="${name === 'index.html' ? './' : basename(name)}"`;
    return lines.replace(here, `${here} aria-current="page"`).replace(/^(?=.)/gm, indent);
  });
  return filled.replace(/<icon name="([\w-]+)"( class="[\w-]+")?>/g, (_, icon, more = '') => {
    if (!(icon in icons)) throw new Error(`There is no icon ${icon} for ${name}`);
    return `<svg class="icon${more.slice(8, -1) && ` ${more.slice(8, -1)}`}" viewBox="0 0 24 24" aria-hidden="true"><path d="${icons[icon]}"/></svg>`;
  });
}

/** Bundles sources that share code into a folder of dist/. */
async function bundle(entryPoints, outdir) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints,
    outdir: join(dist, outdir),
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['es2022', 'safari16'],
    minify: true,
    sourcemap: false,
    legalComments: 'eof',
    logLevel: 'warning',
  });
  for (const { path, contents } of outputFiles) files.set(relative(dist, path), Buffer.from(contents));
}
await bundle(['src/index.ts', 'src/echotest.ts', 'src/videocall.ts', 'src/streaming.ts', 'src/videoroom.ts', 'src/audioroom.ts', 'src/textroom.ts', 'src/voicemail.ts', 'src/recordplay.ts', 'src/sip.ts', 'src/nosip.ts', 'src/check.ts', 'src/style.css'], '.');
// The dashboard is served on another port, and shares no file with the other pages.
await bundle(['src/admin/index.ts', 'src/admin/connection.ts', 'src/admin/events.ts', 'src/admin/style.css'], 'admin');

// What is as it was stays untouched: the server, which embeds it, need not be built again.
mkdirSync(dist, { recursive: true });
const kept = new Set();
for (const name of filesIn(dist)) {
  if (files.get(name)?.equals(readFileSync(join(dist, name)))) kept.add(name);
  else rmSync(join(dist, name));
}
for (const [name, contents] of files) {
  if (kept.has(name)) continue;
  mkdirSync(dirname(join(dist, name)), { recursive: true });
  writeFileSync(join(dist, name), contents);
}

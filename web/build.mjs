// Bundles the pages into dist/, which the server embeds. No output of it asks another host for anything.
import { build } from 'esbuild';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const root = new URL('.', import.meta.url).pathname;
const dist = `${root}dist`;

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
cpSync(`${root}static`, dist, { recursive: true });
for (const name of readdirSync(`${root}pages`)) {
  writeFileSync(`${dist}/${name}`, page(readFileSync(`${root}pages/${name}`, 'utf8'), name));
}

/**
 * Puts the parts into a page that it names: `<!-- part NAME key="value" -->` stands for `parts/NAME.html`, with the value
 * for each `{key}` in it.
 */
function page(text, name) {
  return text.replace(/^( *)<!-- part (\w+)(.*) -->\n/gm, (_, indent, part, rest) => {
    const values = Object.fromEntries([...rest.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
    const lines = readFileSync(`${root}parts/${part}.html`, 'utf8').replace(/\{(\w+)\}/g, (_, key) => {
      if (!(key in values)) throw new Error(`${name} says nothing of {${key}} of parts/${part}.html`);
      return values[key];
    });
    // The link to the page itself.
    const here = `href="${name === 'index.html' ? '/' : name}"`;
    return lines.replace(here, `${here} aria-current="page"`).replace(/^(?=.)/gm, indent);
  });
}

await build({
  absWorkingDir: root,
  entryPoints: ['src/index.ts', 'src/echotest.ts', 'src/videocall.ts', 'src/streaming.ts', 'src/videoroom.ts', 'src/style.css'],
  outdir: dist,
  bundle: true,
  splitting: true,
  format: 'esm',
  target: ['es2022', 'safari16'],
  minify: true,
  sourcemap: false,
  legalComments: 'eof',
  logLevel: 'warning',
});

// Bundles the pages into dist/, which the server embeds. No output of it asks another host for anything.
import { build } from 'esbuild';
import { cpSync, mkdirSync, rmSync } from 'node:fs';

const root = new URL('.', import.meta.url).pathname;
const dist = `${root}dist`;

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
cpSync(`${root}static`, dist, { recursive: true });

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

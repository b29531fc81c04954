// Checks the targets in the documentation: links to files and headings, paths of the repository in `code`, and that each page that
// sources name exists. Prints each missing target. The exit status says whether there is any.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** A path that begins with a folder of the repository, as in `crates/rtp/src/header`. */
const PATH = /^(?:crates|plugins|examples|web|tests|fuzz|packaging|scripts|docs)\/[\w./*-]+$/;

/** What may name a page in a comment or a message, and how. */
const SOURCE = /\.(?:rs|toml|ts|mjs|html|py)$/;
const PAGE = /(?<![\w./])docs\/[\w./-]+\.md/g;

const tracked = execFileSync('git', ['ls-files'], { encoding: 'utf8' }).split('\n').filter(existsSync);
const folders = new Set(tracked.flatMap((file) => file.split('/').map((_, index, parts) => parts.slice(0, index).join('/'))));
const known = new Set([...tracked, ...folders]);
let wrong = 0;

for (const file of tracked.filter((name) => name.endsWith('.md'))) {
  const prose = withoutBlocks(readFileSync(file, 'utf8'));
  for (const [, link] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(link)) continue;
    const [path, heading] = link.split('#');
    const target = path ? normalize(join(dirname(file), path)) : file;
    if (!existsSync(target)) report(file, link, 'there is no such file');
    else if (heading && target.endsWith('.md') && !headings(target).has(heading)) report(file, link, 'there is no such heading');
  }
  for (const [, code] of prose.matchAll(/`([^`\n]+)`/g)) {
    const path = code.replace(/\/$/, '');
    if (PATH.test(code) && !isThere(path) && !isMade(path)) report(file, code, 'there is no such path');
  }
}
for (const file of tracked.filter((name) => SOURCE.test(name))) {
  for (const [page] of readFileSync(file, 'utf8').matchAll(PAGE)) {
    if (!existsSync(page)) report(file, page, 'there is no such page');
  }
}
process.exit(wrong > 0 ? 1 : 0);

function isThere(path) {
  if (!path.includes('*')) return known.has(path) || existsSync(path);
  const pattern = new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\*/g, '[^/]+')}$`);
  return [...known].some((name) => pattern.test(name));
}

/** Whether it is there once something was built. */
function isMade(path) {
  return spawnSync('git', ['check-ignore', '-q', path]).status === 0;
}

/** The anchors of a file's headings, as forges make them. */
function headings(file) {
  const found = withoutBlocks(readFileSync(file, 'utf8')).matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...found].map(([, text]) =>
      text.trim().toLowerCase().replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[^\p{L}\p{N}_\- ]/gu, '').replace(/ /g, '-'),
    ),
  );
}

function withoutBlocks(text) {
  return text.replace(/^ *```[^]*?^ *```/gm, '');
}

function report(file, what, why) {
  wrong += 1;
  console.error(`${file}: ${what}: ${why}`);
}

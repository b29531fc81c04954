// Sends the same sessions to a real livekit-server and to Portunus, and lists what differs.
//
//   LIVEKIT_REFERENCE_URL=http://127.0.0.1:7880 LIVEKIT_URL=http://127.0.0.1:17880 node tests/livekit/differ.mjs [SESSION…]
//
// Without LIVEKIT_REFERENCE_URL the answers are compared with those that livekit-server gave when they were recorded
// (tests/livekit/recorded, by `--record`). With `--print` it prints what one server answers, and compares nothing.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { KNOWN } from './differences.mjs';
import { normalize } from './normalize.mjs';
import { Run } from './run.mjs';
import { sessions } from './sessions/index.mjs';

/** Runs a session, and returns its normalized transcript. */
export async function transcript(url, name) {
  const run = new Run(url);
  try {
    await sessions[name](run);
  } catch (error) {
    run.note('failure', String(error));
  } finally {
    run.end();
  }
  return normalize(run.steps);
}

/** @typedef {{ session: string, step: string, path: string, reference: unknown, subject: unknown }} Difference */

/** Lists the differences of two transcripts. */
export function compare(session, reference, subject) {
  /** @type {Difference[]} */
  const found = [];
  const add = (step, path, a, b) => found.push({ session, step, path, reference: a, subject: b });
  const walk = (step, path, a, b) => {
    if (Object.is(a, b)) return;
    const both = a !== null && b !== null && typeof a === 'object' && typeof b === 'object' && Array.isArray(a) === Array.isArray(b);
    if (!both) return add(step, path, a, b);
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      walk(step, path === '' ? name : `${path}.${name}`, a[name], b[name]);
    }
  };
  for (let at = 0; at < Math.max(reference.length, subject.length); at += 1) {
    const [a, b] = [reference[at], subject[at]];
    if (a?.step !== b?.step) {
      add(a?.step ?? b?.step, 'step', a?.answer ?? a?.step, b?.answer ?? b?.step);
      break;
    }
    // With another status all else differs as well.
    if (a.answer?.status !== b.answer?.status) add(a.step, 'status', a.answer, b.answer);
    else walk(a.step, '', a.answer, b.answer);
  }
  return found;
}

/** Returns why a difference is known, or `undefined`. */
export function reasonOf(difference) {
  const fits = (pattern, text) => pattern === undefined || new RegExp(`^(?:${pattern})$`).test(text);
  return KNOWN.find((row) => fits(row.session, difference.session) && fits(row.step, difference.step) && fits(row.path, difference.path))?.reason;
}

const recording = (name) => new URL(`recorded/${name}.json`, import.meta.url);

/** Reads what the reference answered when it was recorded. */
export const recorded = (name) => JSON.parse(readFileSync(recording(name), 'utf8'));

/** Records what the reference answers. */
export async function record(url, names = Object.keys(sessions)) {
  mkdirSync(new URL('recorded', import.meta.url), { recursive: true });
  for (const name of names) {
    const steps = (await transcript(url, name)).map((step) => `  ${JSON.stringify(step)}`);
    writeFileSync(recording(name), `[\n${steps.join(',\n')}\n]\n`);
  }
}

/**
 * Runs all sessions, or those that are named, against both servers.
 * @param {string | undefined} referenceUrl `undefined` means what was recorded
 * @param {string} subjectUrl
 */
export async function differences(referenceUrl, subjectUrl, names = Object.keys(sessions)) {
  const found = [];
  for (const name of names) {
    const reference = referenceUrl ? await transcript(referenceUrl, name) : recorded(name);
    // As JSON has it: members that are undefined are not there.
    const subject = JSON.parse(JSON.stringify(await transcript(subjectUrl, name)));
    found.push(...compare(name, reference, subject));
  }
  return found;
}

const short = (value) => {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 160 ? `${text.slice(0, 157)}…` : text;
};

async function main() {
  const names = process.argv.slice(2).filter((it) => !it.startsWith('--'));
  const [reference, subject] = [process.env.LIVEKIT_REFERENCE_URL, process.env.LIVEKIT_URL];
  if (process.argv.includes('--print')) {
    for (const name of names.length > 0 ? names : Object.keys(sessions)) {
      console.log(`# ${name}`);
      for (const { step, answer } of await transcript(subject ?? reference, name)) console.log(`${step}: ${JSON.stringify(answer)}`);
    }
    return 0;
  }
  if (process.argv.includes('--record')) {
    if (!reference) throw new Error('LIVEKIT_REFERENCE_URL names the server');
    await record(reference, names.length > 0 ? names : undefined);
    return 0;
  }
  if (!subject) throw new Error('LIVEKIT_URL names the server');
  const found = await differences(reference, subject, names.length > 0 ? names : undefined);
  const fresh = found.filter((it) => reasonOf(it) === undefined);
  for (const it of fresh) {
    console.log(`${it.session} · ${it.step} · ${it.path}\n  reference: ${short(it.reference)}\n  portunus:  ${short(it.subject)}`);
  }
  console.log(`${fresh.length} differences, ${found.length - fresh.length} known`);
  return fresh.length === 0 ? 0 : 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exit(await main());

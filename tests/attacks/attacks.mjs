// Attacks a server while people watch and talk, one kind of attack after the other, and says of each whether media went on, memory was
// bounded, and all was as before when it was over. `scripts/attacks` builds what it needs and starts it.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { freeTcpPort } from '../server/ports.mjs';
import { startPortunus } from '../server/portunus.mjs';
import { Watch } from '../soak/watch.mjs';
import { Audience } from './audience.mjs';
import { KINDS } from './kinds.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    viewers: { type: 'string', default: '300' },
    talkers: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '10' },
    gap: { type: 'string', default: '100' },
    rate: { type: 'string', default: '50000' },
    sessions: { type: 'string', default: '50000' },
    connections: { type: 'string', default: '2000' },
    cores: { type: 'string', default: cpus().length > 1 ? '0,1' : 'any' },
  },
});
const [viewers, talkers, seconds, allowed] = ['viewers', 'talkers', 'seconds', 'gap'].map((name) => Number(values[name]));
const unknown = positionals.filter((kind) => !KINDS.some(({ name }) => name === kind));
const [serverCore, loadCore] = values.cores === 'any' ? [] : values.cores.split(',');
if (unknown.length > 0 || !(viewers >= 1) || !(talkers >= 2) || !(seconds > 0) || !(allowed > 0) || (serverCore && !loadCore)) {
  console.error(`attacks: kinds are ${KINDS.map(({ name }) => name).join(', ')}; --cores SERVER,LOAD or any; see --help`);
  process.exit(2);
}
/** The kinds that are named, in that order and as often; all kinds if none is named. */
const kinds = positionals.length > 0 ? positionals.map((kind) => KINDS.find(({ name }) => name === kind)) : KINDS;

/** MiB that clients may hold together: enough for 50,000 sessions of 8 KiB. */
const CLIENT_MEMORY = 512;
/** Resident memory for each byte that clients may hold: allocators round up, and pages are huge: a message that begins takes one. */
const OVERHEAD = 2;
/** Seconds without a request after which the sessions of attackers end. Those of the audience do not. */
const SESSION_TIMEOUT = 3;
/** How long the server may take to be as before, in ms, once the sessions of attackers have expired. */
const BACK_MS = 5_000;
/** Somewhat more than a second, in ms. */
const SECOND_MS = 1_100;
const MIB = 1024 * 1024;
/** Resident memory that may stay: tables and pools are as large as they had to be. */
const STAYS = 64 * MIB;
const SECRET = 'attacked';
const mib = (bytes) => `${Math.round(bytes / MIB)} MiB`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const results = new URL('../results', import.meta.url).pathname;
mkdirSync(results, { recursive: true });
const [sip, turn, metrics] = [await freeTcpPort(), await freeTcpPort(), await freeTcpPort()];
let log = '';
const server = await startPortunus({
  workers: 1,
  // Attackers have addresses of their own; those of the audience are one that many share.
  config: `
[server]
trust_loopback = false
shared_addresses = ["127.0.0.1"]
client_memory_mb = ${CLIENT_MEMORY}
[admin]
secret = "${SECRET}"
[sip]
listen = ["udp:${sip}", "tcp:${sip}"]
local_ip = "127.0.0.1"
[turn]
enabled = true
host = "127.0.0.1"
bind = ["127.0.0.1"]
port = ${turn}
`,
  // With a port of their own the metrics are there when clients hold all memory that they may.
  http: `metrics_bind = "127.0.0.1:${metrics}"`,
  onOutput: (text) => (log += text),
});
if (serverCore) execFileSync('taskset', ['-a', '-c', '-p', serverCore, String(server.pid)], { stdio: 'ignore' });
/** The command that puts another one on the core of the load. */
const onCore = loadCore ? ['taskset', '-c', loadCore] : [];
const watch = new Watch({ ...server, base: `http://127.0.0.1:${metrics}` }, join(results, 'attacks.csv'));

const attacker = process.env.ATTACKER_BIN ?? join(process.env.PORTUNUS_BIN, '../examples/attacker');
const address = (url) => new URL(url).host;
const targets = [
  ['--http', address(server.http)], ['--websocket', address(server.ws)], ['--media', `127.0.0.1:${server.media}`],
  ['--sip', `127.0.0.1:${sip}`], ['--turn', `127.0.0.1:${turn}`],
  ...['seconds', 'rate', 'sessions', 'connections'].map((name) => [`--${name}`, values[name]]),
].flat();

async function admin(request, path = '') {
  const body = JSON.stringify({ transaction: 'a', admin_secret: SECRET, ...request });
  const reply = await (await fetch(`${server.admin}${path}`, { method: 'POST', body })).json();
  if (reply.janus === 'error') throw new Error(`${request.janus}: ${reply.error.reason}`);
  return reply;
}

/** Sessions of attackers end soon, those that are there do not. */
async function spareSessions() {
  const { sessions } = await admin({ janus: 'list_sessions' });
  for (const session of sessions) await admin({ janus: 'set_session_timeout', timeout: 0 }, `/${session}`);
  await admin({ janus: 'set_session_timeout', timeout: SESSION_TIMEOUT });
}

/** Takes samples until `until` is over; returns the most resident memory and the slowest answer of the API, in bytes and ms. */
async function observe(until) {
  const most = { rss: 0, answer: 0 };
  let isOver = false;
  const over = until.finally(() => (isOver = true));
  while (!isOver) {
    const began = Date.now();
    const { rss } = await watch.take();
    most.answer = Math.max(most.answer, Date.now() - began);
    most.rss = Math.max(most.rss, rss);
    await Promise.race([over.catch(() => {}), pause(200)]);
  }
  return { ...most, told: await over };
}

/** The levels that have to be as before, as [name, bound, value]. */
const levels = (base, now) => [
  ['descriptors', base.descriptors + 8, now.descriptors],
  ['sessions', base.metrics.portunus_sessions, now.metrics.portunus_sessions],
  ['peers', base.metrics.portunus_media_peers, now.metrics.portunus_media_peers],
  ['memory of clients', base.metrics.portunus_client_memory_bytes + MIB, now.metrics.portunus_client_memory_bytes],
];
const above = (base, now) => levels(base, now).filter(([, bound, value]) => value > bound);

/** Waits until all is as before; returns the time in ms, and the last sample. */
async function back(base) {
  const began = Date.now();
  const deadline = began + SESSION_TIMEOUT * 1_000 + BACK_MS;
  for (;;) {
    const now = await watch.take();
    if (above(base, now).length === 0 || Date.now() > deadline) return { now, took: Date.now() - began };
    await pause(200);
  }
}

const audiences = [
  new Audience('viewers', `streaming --viewers ${viewers} --check-share 1 --bitrate 300k --duration 36000 --janus ${server.ws}`.split(' '), viewers, onCore),
  new Audience('talkers', `bridge --participants ${talkers} --talkers ${talkers} --duration 36000 --janus ${server.ws}`.split(' '), talkers, onCore),
];
const gaps = (from, to) => audiences.map((audience) => Math.round(audience.gap(from, to)));

/** Attacks once; returns figures and faults. */
async function attack(kind, calm) {
  const base = await watch.take();
  const from = Date.now();
  const [program, ...words] = [...onCore, attacker, kind.name, ...targets];
  const run = promisify(execFile)(program, words, { timeout: (seconds + 60) * 1_000 });
  const { rss, answer, told } = await observe(run);
  const did = JSON.parse(told.stdout);
  const { now, took } = await back(base);
  // The gaps of the last second are said at its end.
  await pause(Math.max(0, SECOND_MS - took));
  const seen = gaps(from, Date.now());
  const grown = kind.counters.map((name) => [name, (now.metrics[name] ?? 0) - (base.metrics[name] ?? 0)]);
  const memory = base.rss + CLIENT_MEMORY * MIB * OVERHEAD;
  const faults = [
    ...audiences.flatMap(({ name }, at) => (seen[at] - calm[at] > allowed ? [`${name}: a gap of ${seen[at]} ms, ${calm[at]} ms without an attack`] : [])),
    ...above(base, now).map(([name, bound, value]) => `${name} ${value}, before ${bound}`),
    ...(rss > memory ? [`${mib(rss)} of memory, more than ${mib(memory)}`] : []),
    ...(kind.counters.length > 0 && !grown.some(([, by]) => by > 0) ? [`no counter names it: ${kind.counters.join(', ')}`] : []),
    ...(kind.isUnverified && did.received_bytes > did.sent_bytes ? [`${did.received_bytes} bytes for ${did.sent_bytes}`] : []),
    ...(kind.isCall && (did.held === 0 || did.refused > 0) ? [`${did.refused} calls failed, ${did.held} did not`] : []),
    ...(did.sent === 0 ? ['nothing was sent'] : []),
  ];
  const figures = [
    `gaps ${seen.join(' and ')} ms`,
    `${mib(base.rss)}, at most ${mib(rss)}, then ${mib(now.rss)}`,
    `API ${answer} ms`,
    `back after ${(took / 1_000).toFixed(1)} s`,
    `${did.sent} sent, ${did.held} held, ${did.refused} refused`,
    ...(kind.isUnverified ? [`${did.sent_bytes} bytes, ${did.received_bytes} back`] : []),
    ...grown.filter(([, by]) => by > 0).map(([name, by]) => `${name.replace(/^portunus_/, '')} +${by}`),
  ];
  return { name: kind.name, faults, figures: figures.join('; ') };
}

const judged = [];
/** Notes a result and prints it. */
function judge(result) {
  judged.push(result);
  console.log(line(result));
}

let calm = [];
let first;
try {
  await Promise.all(audiences.map((audience) => audience.join()));
  await spareSessions();
  watch.start();
  first = await watch.take();
  const from = Date.now();
  await pause(Math.max(2_000, seconds * 1_000));
  calm = gaps(from, Date.now());
  console.log(`attacks: ${viewers} viewers and ${talkers} talkers, ${seconds} s each; without an attack gaps are ${calm.join(' and ')} ms`);
  for (const kind of kinds) {
    judge(await attack(kind, calm));
  }
  const { rss } = await settled(first);
  judge({ name: 'memory is back', faults: rss > first.rss + STAYS ? ['it is not'] : [], figures: `${mib(first.rss)} before, ${mib(rss)} after` });
} catch (error) {
  judge({ name: 'the server answers until the end', faults: [String(error)], figures: '' });
}
await Promise.all(audiences.map((audience) => audience.end()));
const status = await server.stop();
const trouble = log.split('\n').filter((text) => /^\S+ +ERROR /.test(text) || /panicked/.test(text));
judge({ name: 'no error in the log', faults: trouble.slice(0, 10), figures: '' });
judge({ name: 'the server ends without an error', faults: status === 0 ? [] : [`status ${status}`], figures: '' });
await watch.end();
writeFileSync(join(results, 'attacks.log'), log);

/** Waits until the allocator has given back what it keeps for a while. */
async function settled(base) {
  const deadline = Date.now() + 15_000;
  for (;;) {
    const now = await watch.take();
    if (now.rss <= base.rss + STAYS || Date.now() > deadline) return now;
    await pause(500);
  }
}

function line({ name, faults, figures }) {
  return [`  ${faults.length === 0 ? 'ok    ' : 'FAILED'} ${name}: ${figures}`, ...faults.map((fault) => `      ${fault}`)].join('\n');
}

const failed = judged.filter(({ faults }) => faults.length > 0);
const summary = [
  `attacks on a server with ${viewers} viewers and ${talkers} talkers, ${seconds} s each; without an attack gaps are ${calm.join(' and ')} ms`,
  ...judged.map(line),
  `${judged.length - failed.length} passed, ${failed.length} failed`,
].join('\n');
writeFileSync(join(results, 'attacks.txt'), `${summary}\n`);
console.log(summary.split('\n').at(-1));
process.exit(failed.length === 0 ? 0 : 1);

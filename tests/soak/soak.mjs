// Load that comes and goes for a long time, on a server with two workers behind a network that loses packets and lets some overtake
// others. In the end memory, descriptors and threads have to be where they were, and the log and the counters without surprises.
// `scripts/soak` builds what it needs and starts it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPortunus } from '../server/portunus.mjs';
import { startRelay } from '../server/relay.mjs';
import { loads, registration, STAGE } from './loads.mjs';
import { audioRoom } from './people.mjs';
import * as verdicts from './verdicts.mjs';
import { Pressure, Watch } from './watch.mjs';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, lanes: { type: 'string', default: '3' } },
});
const seconds = Number(values.minutes) * 60;
const lanes = Number(values.lanes);
if (!(seconds >= 60) || !(lanes >= 1)) {
  console.error('soak: --minutes N, 1 or more; --lanes N, 1 or more');
  process.exit(2);
}

/** Of each way: 1 in 100 is lost, 2 in 100 come later than the next ones. */
const WEATHER = { loss: 0.01, late: 0.02 };
/** How long a round measures, in seconds. */
const ROUND_S = 8;
const SAMPLE_MS = 2_000;
/** Threads without work end within 10 s, if nobody asks for anything meanwhile. */
const PEACE_MS = 13_000;
/** How long the server may take until nothing of its clients is left. */
const LEAVING_MS = 90_000;
/** The share of the time in which something waits for a core, from which on the machine is busy: on average, and for some seconds. This load alone stays far below. */
const BUSY = { mean: 0.25, worst: 0.5 };

const results = new URL('../results', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'portunus-soak-'));
mkdirSync(results, { recursive: true });

let log = '';
const relay = await startRelay(2);
const server = await startPortunus({
  workers: 2,
  config: `${relay.config}[recording]
folders = [${JSON.stringify(folder)}]
[[streaming.mountpoint]]
name = "stage"
type = "whip"
id = ${STAGE.id}
${STAGE.config}`,
  onOutput: (text) => (log += text),
});
relay.to(server.media);
relay.set(WEATHER);

const watch = new Watch(server, join(results, 'soak.csv'));
const before = await quiet();
watch.start();
const pressure = new Pressure();
/** Whether the machine has had more to do than it could, since the load began: some seconds of that are enough to be late once. */
const isBusy = () => pressure.mean() > BUSY.mean || pressure.worst > BUSY.worst;
const end = Date.now() + seconds * 1000;
const isOver = () => Date.now() >= end;
console.log(`soak: ${values.minutes} minutes, ${lanes} loads at a time, 1 % of all datagrams lost and 2 % late, each way`);

/**
 * What the server holds without clients. Sockets of SIP and what mixes are made for the first that needs them, and stay: so one of each
 * kind comes and leaves first. Threads that the start needed have ended then.
 */
async function quiet() {
  await audioRoom(server);
  await registration(server, folder);
  return settled(() => true);
}

/** Leaves the server alone until `isSo` holds of what is seen then, or for as long as it may take; returns that. */
async function settled(isSo) {
  const deadline = Date.now() + LEAVING_MS;
  for (;;) {
    await new Promise((done) => setTimeout(done, PEACE_MS));
    const now = await watch.take();
    if (isSo(now) || Date.now() > deadline) return now;
  }
}

/** Each load with what became of its rounds; the one that waited longest runs next. */
const all = loads(server, { folder, seconds: ROUND_S }).map((load) => ({ ...load, rounds: 0, packets: 0, faults: [] }));
const waiting = [...all];

/** Runs one load after the other. */
async function lane() {
  while (!isOver()) {
    const load = waiting.shift();
    const began = Math.round((Date.now() - watch.began) / 1000);
    try {
      const { packets, faults } = await load.run();
      load.packets += packets;
      load.faults.push(...faults.map((fault) => `${began} s: ${fault}`));
    } catch (error) {
      load.faults.push(`${began} s: ${error.message ?? error}`);
    }
    load.rounds += 1;
    waiting.push(load);
  }
}

/** Takes samples until the load is over, and says each minute how things are. */
async function sample() {
  for (let said = 0; !isOver(); ) {
    await new Promise((done) => setTimeout(done, SAMPLE_MS));
    const { at, rss, descriptors, threads, metrics } = await watch.take();
    pressure.look();
    if (at - said < 60) continue;
    said = at;
    const faults = all.reduce((sum, load) => sum + load.faults.length, 0);
    const [mib, peers] = [Math.round(rss / 1024 / 1024), metrics.portunus_media_peers];
    console.log(`  ${Math.round(at / 60)} min: ${mib} MiB, ${descriptors} descriptors, ${threads} threads, ${peers} peers, ${faults} faults`);
  }
}

let after = before;
const judged = [];
try {
  await Promise.all([sample(), ...Array.from({ length: lanes }, lane)]);
  const loaded = watch.samples.at(-1);
  after = await settled((now) => verdicts.isBack(before, now));
  judged.push(
    ...all.map(verdicts.load),
    verdicts.memory(watch.samples.filter(({ at }) => at <= loaded.at), seconds),
    ...verdicts.back(before, after),
    verdicts.counters(before, after, isBusy()),
  );
} catch (error) {
  judged.push({ name: 'the server answers until the end', holds: false, figures: String(error) });
}
const status = await server.stop();
judged.push(verdicts.log(log, isBusy()), { name: 'the server ends without an error', holds: status === 0, figures: `status ${status}` });
relay.close();
await watch.end();
writeFileSync(join(results, 'soak.log'), log);
rmSync(folder, { recursive: true, force: true });

const percent = (share) => `${Math.round(share * 100)} %`;
const failed = judged.filter(({ holds }) => !holds);
const { relayed, lost, late } = relay.count();
const summary = [
  `soak of ${values.minutes} minutes: ${relayed} datagrams relayed, ${lost} lost, ${late} late; ${(after.cpu / 60).toFixed(1)} minutes of CPU time of the server`,
  `  something waited for a core in ${percent(pressure.mean())} of the time, ${percent(pressure.worst)} of the worst ${Pressure.WINDOW} s${isBusy() ? ': the machine is busy, and being late is explained' : ''}`,
  ...judged.map(({ name, holds, figures }) => `  ${holds ? 'ok    ' : 'FAILED'} ${name}: ${figures}`),
  `  figures: tests/results/soak.csv, log: tests/results/soak.log`,
  `${judged.length - failed.length} passed, ${failed.length} failed`,
];
console.log(summary.join('\n'));
writeFileSync(join(results, 'soak.txt'), `${summary.join('\n')}\n`);
// Libraries of clients keep threads and timers.
process.exit(failed.length === 0 ? 0 : 1);

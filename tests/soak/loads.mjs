// The loads of the soak: rounds of hammer's scenarios, each with its own participants, and visits of people (people.mjs). Each load
// comes and goes again and again, and says after each round whether media arrived.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { audioRoom, textRoom, videoRoom } from './people.mjs';

/**
 * The share of the packets that have to arrive in a round. The relay loses one in a hundred. On a machine with other work hammer
 * itself is late, so that what belongs to a second comes in the next, and the last of a round not at all.
 */
const ARRIVE = 0.6;
/** So many seconds in a row without any packet of a load are an outage, not a late machine. */
const SILENT_S = 5;
/** A round of hammer that takes so long hangs, in ms. */
const HANGS_MS = 180_000;

/** The mountpoint that a publisher comes to by WHIP. */
export const STAGE = { id: 9, config: ['audio', 'video'].map((type) => `[[streaming.mountpoint.media]]\ntype = "${type}"\nmid = "${type[0]}"\n`).join('') };

const MEDIA = '--bitrate 150k --audio-bitrate 32k --check-share 1';

/**
 * The loads; `hammer` is a scenario with its options, `people` a visit.
 * @param {import('../server/portunus.mjs').Server} server
 * @param {{ folder: string, seconds: number }} options where recordings go, and how long a round measures
 */
export function loads(server, { folder, seconds }) {
  const whip = `--whip ${server.base}/whip/${STAGE.id} --whep ${server.base}/whep/${STAGE.id}`;
  const hammer = {
    viewers: `streaming --viewers 6 --mountpoints 2 --churn 2 --storm 3 ${MEDIA}`,
    'audio rooms': 'bridge --participants 6 --room-size 3 --talkers 2',
    'WHIP and WHEP': `streaming --viewers 3 ${whip} ${MEDIA}`,
    'video rooms': `rooms --endpoints 3 --viewers 2 --simulcast --leave 1 ${MEDIA}`,
    calls: 'sip --viewers 3',
    recordings: `record --publishers 2 --viewers 2 --record-format webm --folder ${folder} ${MEDIA}`,
    'echo tests': 'echo --peers 3 --churn 1 --bitrate 150k --check-share 1',
    registrations: 'sip --registrations 5 --expires 8',
    'recordings as MJR': `record --publishers 2 --viewers 2 --record-format mjr --folder ${folder} ${MEDIA}`,
  };
  const visits = { 'kicks from video rooms': videoRoom, 'kicks from audio rooms': audioRoom, 'text rooms': textRoom };
  return [
    ...Object.entries(hammer).map(([name, words], index) => ({
      name,
      run: () => round(server, `${words} --duration ${seconds}`.split(' '), join(folder, `${index}.json`)),
    })),
    ...Object.entries(visits).map(([name, visit]) => ({ name, run: async () => ({ packets: await visit(server), faults: [] }) })),
  ];
}

/** One account is registered by SIP, for a moment. */
export const registration = (server, folder) => round(server, 'sip --registrations 1 --expires 10 --settle 0 --duration 1'.split(' '), join(folder, 'first.json'));

/** Rounds that run. None outlives the soak, however that ends. */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Runs hammer once; returns the packets that arrived and what is wrong. */
async function round(server, words, file) {
  rmSync(file, { force: true });
  const child = spawn(hammer(), [...words, '--janus', server.ws, '--json', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-2_000)));
  const hangs = setTimeout(() => child.kill('SIGKILL'), HANGS_MS);
  const [status, signal] = await once(child, 'close');
  clearTimeout(hangs);
  running.delete(child);
  if (status !== 0 || !existsSync(file)) return { packets: 0, faults: [`hammer ended with ${status ?? signal}: ${said.trim().split('\n').at(-1)}`] };
  return judge(JSON.parse(readFileSync(file, 'utf8')).runs[0]);
}

/** The program beside the server. */
export function hammer() {
  return process.env.HAMMER_BIN ?? join(process.env.PORTUNUS_BIN, '../portunus-hammer');
}

/** What a record of hammer's says: packets that arrived, and what is wrong. */
function judge({ samples, summary }) {
  const faults = [];
  const sum = (field) => samples.reduce((total, sample) => total + (sample[field] ?? 0), 0);
  const [packets, due] = [sum('received_packets'), sum('expected_packets')];
  if (summary.failed_joins > 0) faults.push(`${summary.failed_joins} joins failed`);
  if (summary.registered) {
    if (!(summary.registered.refreshes_per_s > 0)) faults.push('no registration was refreshed');
    return { packets: 0, faults };
  }
  if (packets < due * ARRIVE) faults.push(`${packets} of ${due} packets arrived`);
  let silent = 0;
  let longest = 0;
  for (const sample of samples) {
    silent = sample.participants > 0 && sample.received_packets === 0 ? silent + 1 : 0;
    longest = Math.max(longest, silent);
  }
  if (longest >= SILENT_S) faults.push(`no packet for ${longest} s`);
  if (summary.recorded) {
    const { found_packets: found, sent_packets: sent, unreadable_files: unreadable = 0 } = summary.recorded;
    if (found < sent * ARRIVE) faults.push(`${found} of ${sent} packets are recorded`);
    if (unreadable > 0) faults.push(`${unreadable} recordings cannot be read`);
  }
  return { packets, faults };
}

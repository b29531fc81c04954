// What is seen of the server while the soak lasts: memory, descriptors, threads and CPU time by /proc, counters by /metrics.
import { createWriteStream, readFileSync, readdirSync } from 'node:fs';
import { get } from 'node:http';

/** Gauges that have a column of their own. */
const COLUMNS = {
  sessions: 'portunus_sessions',
  handles: 'portunus_handles',
  peers: 'portunus_media_peers',
  recordings: 'portunus_recordings',
  sip_calls: 'portunus_sip_calls',
  sip_accounts: 'portunus_sip_accounts',
  client_memory_bytes: 'portunus_client_memory_bytes',
  recording_waiting_bytes: 'portunus_recording_waiting_bytes',
  audio_rooms: 'portunus_audio_rooms',
  received_datagrams: 'portunus_media_received_datagrams_total',
  sent_datagrams: 'portunus_media_sent_datagrams_total',
};

/**
 * @typedef {object} Sample
 * @property {number} at seconds since the load began
 * @property {number} rss resident memory in bytes
 * @property {number} descriptors
 * @property {number} threads
 * @property {string[]} names of the threads
 * @property {number} cpu CPU time since the start of the server, in seconds
 * @property {Record<string, number>} metrics all of `/metrics`, by name with labels
 */

/** Reads a page by a connection of its own, which is closed then: it leaves no descriptor. */
function page(url) {
  return new Promise((done, failed) => {
    const request = get(url, { agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => (text += part)).on('end', () => done(text)).on('error', failed);
    });
    request.setTimeout(30_000, () => request.destroy(new Error(`${url} does not answer`))).on('error', failed);
  });
}

export class Watch {
  /** @type {Sample[]} */
  samples = [];
  /** None before the load begins. */
  began = 0;

  /**
   * @param {import('../server/portunus.mjs').Server} server
   * @param {string} file where the samples go as CSV
   */
  constructor(server, file) {
    this.server = server;
    this.csv = createWriteStream(file);
    this.csv.write(`seconds,rss_bytes,descriptors,threads,cpu_seconds,${Object.keys(COLUMNS).join(',')}\n`);
  }

  /** The load begins: times count from now. */
  start() {
    this.began = Date.now();
    this.samples = [];
  }

  /** @returns {Promise<Sample>} */
  async take() {
    const { pid, base } = this.server;
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]);
    const times = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    const sample = {
      at: (Date.now() - this.began) / 1000,
      rss: field('VmRSS') * 1024,
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      threads: field('Threads'),
      names: threadNames(pid),
      // Of user and system, in ticks of a hundredth of a second.
      cpu: (Number(times[11]) + Number(times[12])) / 100,
      metrics: metrics(await page(`${base}/metrics`)),
    };
    this.samples.push(sample);
    const columns = Object.values(COLUMNS).map((name) => sample.metrics[name] ?? '');
    if (this.began) this.csv.write(`${[sample.at.toFixed(1), sample.rss, sample.descriptors, sample.threads, sample.cpu, ...columns].join(',')}\n`);
    return sample;
  }

  end() {
    return new Promise((done) => this.csv.end(done));
  }
}

/** Says in which share of the time something waited for a core: since it was made, and in the worst seconds. */
export class Pressure {
  /** Seconds over which the worst share is taken. */
  static WINDOW = 10;

  constructor() {
    this.looks = [this.#now()];
    this.worst = 0;
  }

  /** Called every few seconds. */
  look() {
    const now = this.#now();
    this.looks.push(now);
    const from = this.looks.findLast(({ at }) => now.at - at >= Pressure.WINDOW * 1000);
    if (from) this.worst = Math.max(this.worst, share(from, now));
  }

  /** Since the beginning. */
  mean() {
    return share(this.looks[0], this.#now());
  }

  #now() {
    return { at: Date.now(), waited: waited() };
  }
}

/** The share of the time between two looks in which something waited. */
const share = (from, to) => (to.waited - from.waited) / 1000 / Math.max(to.at - from.at, 1);

/** Time in µs since the start of the machine in which something waited for a core; 0 if the kernel does not say. */
function waited() {
  try {
    return Number(/^some .*total=(\d+)/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))[1]);
  } catch {
    return 0;
  }
}

/** The names of the threads of a process; one that has just ended has none. */
function threadNames(pid) {
  const name = (task) => {
    try {
      return readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8').trim();
    } catch {
      return '';
    }
  };
  return readdirSync(`/proc/${pid}/task`).map(name).filter(Boolean).sort();
}

/** The values of a page in the form of Prometheus. */
function metrics(text) {
  const lines = text.split('\n').filter((line) => line && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

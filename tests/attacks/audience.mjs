// The viewers and talkers of a server that is attacked: hammer's viewers of a mountpoint, and participants of an audio room.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { hammer } from '../soak/loads.mjs';

/** The longest wait for the first media of all, in ms. */
const JOINING_MS = 120_000;
/** hammer's line for a second: the number of participants, and the longest time without a packet. */
const LINE = /: \d+ s +([\d,]+) participants.* gap ([\d.,]+) (us|ms|s)\b/;
const UNITS = { us: 0.001, ms: 1, s: 1_000 };

const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** One run of hammer, whose seconds are read as they are said. */
export class Audience {
  /** @type {{ at: number, gap: number, present: number }[]} in ms since 1970, and ms */
  seconds = [];
  said = '';

  /**
   * @param {string} name
   * @param {string[]} words the scenario with its options
   * @param {number} count how many there are
   * @param {string[]} before a command that runs another
   */
  constructor(name, words, count, before) {
    this.name = name;
    this.count = count;
    const [program, ...args] = [...before, hammer(), ...words];
    this.child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    running.add(this.child);
    this.child.once('exit', () => running.delete(this.child));
    createInterface({ input: this.child.stderr }).on('line', (line) => {
      this.said = `${this.said}${line}\n`.slice(-4_000);
      const [, present, gap, unit] = LINE.exec(line) ?? [];
      if (gap) this.seconds.push({ at: Date.now(), gap: number(gap) * UNITS[unit], present: number(present) });
    });
  }

  /** Waits until all are there and have media. */
  async join() {
    const deadline = Date.now() + JOINING_MS;
    while (!(this.seconds.at(-1)?.present >= this.count)) {
      if (this.child.exitCode !== null) throw new Error(`${this.name}: hammer ended with ${this.child.exitCode}\n${this.said}`);
      if (Date.now() > deadline) throw new Error(`${this.name}: not all came in time\n${this.said}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  /** The longest gap in ms that was said between two times; that of a second is known at its end. Infinite if somebody has left. */
  gap(from, to) {
    const within = this.seconds.filter(({ at }) => at > from && at <= to);
    if (within.length === 0 || within.some(({ present }) => present < this.count)) return Infinity;
    return Math.max(...within.map(({ gap }) => gap));
  }

  async end() {
    if (!running.has(this.child)) return;
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }
}

const number = (text) => Number(text.replaceAll(',', ''));

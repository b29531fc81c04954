// A participant with media: LiveKit's SDK for Python, whose signalling is recorded.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Recorder } from './recorder.mjs';
import { TIMED } from './signal.mjs';

const PYTHON = fileURLToPath(new URL('../.venv/bin/python', import.meta.url));
const PROGRAM = fileURLToPath(new URL('guest.py', import.meta.url));

/** Whether the SDK is installed (`scripts/setup interop`). */
export const hasGuests = existsSync(PYTHON);

/** Kinds that depend on the machine and its load. */
const SKIPPED = new Set(['trickle', 'streamStateUpdate']);

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Guest {
  /** Enters a room. */
  static async enter(url, token, mode) {
    const guest = new Guest();
    guest.recorder = new Recorder(url);
    const proxy = await guest.recorder.start();
    guest.program = spawn(PYTHON, [PROGRAM, proxy, token, mode], { stdio: ['pipe', 'pipe', 'ignore'] });
    guest.answers = createInterface({ input: guest.program.stdout })[Symbol.asyncIterator]();
    await guest.#answered('connect');
    return guest;
  }

  /** Has it do something. */
  async do(...command) {
    this.program.stdin.write(`${command.join('\t')}\n`);
    await this.#answered(command.join(' '));
  }

  async #answered(command) {
    const { value, done } = await this.answers.next();
    if (done || value !== 'ok') throw new Error(`${command}: ${done ? 'it has ended' : value}`);
  }

  /**
   * Takes what the server told since the last time, once it told nothing for `quiet` ms: the last message of each kind, and of each
   * other participant what was told last. How often a thing is told while it changes depends on time.
   */
  async take({ quiet = 700 } = {}) {
    const told = () => this.recorder.frames.filter((it) => it.from === 'server' && !SKIPPED.has(it.kind) && !TIMED.has(it.kind));
    for (let count = -1; count !== told().length;) {
      count = told().length;
      await delay(quiet);
    }
    const frames = told();
    this.recorder.frames.splice(0);
    /** @type {Record<string, any>} */
    const last = {};
    for (const { kind, value } of frames) {
      if (kind === 'join') this.identity = value.participant.identity;
      if (kind !== 'update') last[kind] = value;
      else for (const it of value.participants ?? []) if (it.identity !== this.identity) (last.people ??= {})[it.identity] = it;
    }
    return last;
  }

  end() {
    this.program.kill('SIGKILL');
    this.recorder.stop();
  }
}

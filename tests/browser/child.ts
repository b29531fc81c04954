// Programs that tests start: each has a folder of its own, and ends with the test.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** None outlives the tests, however those end. */
const running = new Set<ChildProcessWithoutNullStreams>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export class Child {
  readonly process: ChildProcessWithoutNullStreams;
  private output = '';
  private readonly exited: Promise<unknown>;

  constructor(readonly name: string, command: string, args: string[], readonly folder: string, env: Record<string, string> = {}) {
    this.process = spawn(command, args, { cwd: folder, env: { ...process.env, ...env } });
    running.add(this.process);
    this.exited = Promise.race([once(this.process, 'exit'), once(this.process, 'error').then(([error]) => this.add(String(error)))]);
    void this.exited.then(() => running.delete(this.process));
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => this.add(text));
    }
    this.process.stdin.on('error', () => {});
  }

  /** What it wrote lately. */
  log(): string {
    return this.output;
  }

  get isRunning(): boolean {
    return running.has(this.process);
  }

  /** Waits until a condition holds; if the program ends before or it takes too long, says what it wrote. */
  async until(what: string, condition: () => unknown, seconds = 20): Promise<void> {
    const deadline = Date.now() + seconds * 1000;
    while (!(await condition())) {
      const gone = !this.isRunning;
      if (gone || Date.now() > deadline) throw new Error(`${this.name}: ${gone ? 'it ended' : 'no'} ${what}\n${this.output.slice(-4000)}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  /** Waits for its end and gives its exit status. */
  async end(): Promise<number | null> {
    await this.exited;
    return this.process.exitCode;
  }

  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    const deadline = setTimeout(() => this.process.kill('SIGKILL'), 2_000);
    await this.exited;
    clearTimeout(deadline);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private add(text: string): void {
    this.output = (this.output + text).slice(-100_000);
  }
}

export const folderFor = (name: string): string => mkdtempSync(join(tmpdir(), `portunus-${name}-`));

// `cargo test --workspace` with several test binaries at a time: many wait more than they compute. Arguments: the cargo to run. What it
// writes is read as that of `cargo test` is: each binary's output in one piece, when it has ended.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';

// These take longest: they begin first, so that nobody waits for them alone in the end.
const FIRST = ['flash_and_beep', 'hammer', 'switching', 'adaptation', 'crash', 'cli'];
// A test that hangs must say so before whoever runs all of them loses patience.
const PATIENCE_MS = 15 * 60_000;

const [cargo = 'cargo'] = process.argv.slice(2);

// What a test has started and not ended would be waited for without end.
const LEFT_MS = 10_000;

/** The groups of processes that run. */
const running = new Set();
process.on('exit', () => running.forEach(end));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** Ends all processes of a group. */
function end(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // None is left.
  }
}

/** Runs a program in a group of its own; gives what it has written, how it ended, and whether it left processes behind. */
function run(program, args, options) {
  return new Promise((resolve) => {
    const child = spawn(program, args, { ...options, detached: true });
    const chunks = [];
    let left = false;
    let waiting;
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    child.on('spawn', () => running.add(child.pid));
    child.on('error', (error) => resolve({ output: `${error}\n`, ended: error.message, left }));
    child.on('exit', () => {
      waiting = setTimeout(() => {
        left = true;
        end(child.pid);
      }, LEFT_MS);
    });
    child.on('close', (code, signal) => {
      clearTimeout(waiting);
      running.delete(child.pid);
      resolve({ output: Buffer.concat(chunks).toString(), ended: signal ?? code, left });
    });
  });
}

/** Compiles all tests; gives the binaries of them. */
async function compile() {
  const args = ['test', '--workspace', '--locked', '--no-run', '--message-format=json-render-diagnostics'];
  const { output, ended } = await run(cargo, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (ended !== 0) process.exit(1);
  const artifacts = output.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
  return artifacts
    .filter((artifact) => artifact.reason === 'compiler-artifact' && artifact.profile.test && artifact.executable)
    .map(({ executable, manifest_path, target }) => ({
      executable,
      name: target.name,
      folder: path.dirname(manifest_path),
    }));
}

/** Runs one binary, where cargo would run it; whether it passed. */
async function test({ executable, folder }) {
  const { output, ended, left } = await run(executable, [], {
    cwd: folder,
    env: { ...process.env, CARGO_MANIFEST_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
  });
  let told = `     Running ${path.relative(process.cwd(), folder)} (${executable})\n${output}`;
  if (!/^test result: /m.test(output)) {
    told += `test all of it, which ended by ${ended} ... FAILED\ntest result: FAILED. 0 passed; 1 failed\n`;
  }
  if (left) told += 'test leaves processes behind ... FAILED\ntest result: FAILED. 0 passed; 1 failed\n';
  process.stdout.write(told);
  return ended === 0 && !left;
}

const binaries = await compile();
const place = ({ name }) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
binaries.sort((one, other) => place(one) - place(other));
let passed = true;
const worker = async () => {
  for (let binary = binaries.shift(); binary; binary = binaries.shift()) passed = (await test(binary)) && passed;
};
await Promise.all(Array.from({ length: availableParallelism() }, worker));
const docs = await run(cargo, ['test', '--workspace', '--locked', '--doc', '--no-fail-fast'], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
process.stdout.write(docs.output);
process.exitCode = passed && docs.ended === 0 ? 0 : 1;

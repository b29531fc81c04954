// Runs `cargo test --workspace` with several test binaries at a time, since many wait more than they compute. The argument is the
// cargo to run. The output has the form of `cargo test`: each binary's in one piece, when it has ended. Failed tests are repeated
// after all others. For each one that passes then, a line says `test NAME ... flaky`.
// With `--build FILE` the tests are compiled and listed in this file; with PORTUNUS_TESTS=FILE those in the list run.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

// The longest tests start first, so that they do not run alone at the end.
const FIRST = ['log', 'hammer', 'simulation', 'switching', 'cluster_broken_links', 'cluster_pauses', 'flash_and_beep', 'adaptation', 'crash', 'cluster', 'cli'];
// Those that take longer are named, with their durations.
const LONG_S = 30;
// With this many failures or more there is a common reason, so nothing is repeated.
const MANY = 8;
// A test that hangs must be reported before the caller of all tests loses patience.
const PATIENCE_MS = 15 * 60_000;

const [cargo = 'cargo', build, list] = process.argv.slice(2);

// Ends processes that a test has started and not ended, which would be waited for forever.
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
    // No process is left.
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

/** Runs tests of one binary, where cargo would run it. */
function runTests({ executable, folder }, args) {
  return run(executable, args, {
    cwd: folder,
    env: { ...process.env, CARGO_MANIFEST_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
  });
}

/** The line that says whose tests follow. */
const heading = ({ executable, folder }) => `     Running ${path.relative(process.cwd(), folder)} (${executable})\n`;

/** Runs all tests of one binary; whether none failed for good, and those that may run once more. */
async function test(binary) {
  const began = Date.now();
  const { output, ended, left } = await runTests(binary, []);
  const seconds = Math.round((Date.now() - began) / 1000);
  let told = heading(binary) + output;
  if (seconds >= LONG_S) told += `    ${binary.name} took ${seconds} s\n`;
  const whole = /^test result: /m.test(output);
  if (!whole) told += `test all of it, which ended by ${ended} ... FAILED\ntest result: FAILED. 0 passed; 1 failed\n`;
  if (left) told += 'test leaves processes behind ... FAILED\ntest result: FAILED. 0 passed; 1 failed\n';
  process.stdout.write(told);
  const failed = [...output.matchAll(/^test (\S+)( - should panic)? \.\.\. FAILED$/gm)].map(([, name]) => name);
  if (whole && !left && failed.length > 0) again.push({ binary, failed });
  else passed &&= ended === 0 && !left;
}

/** Runs a test that failed by itself. What it writes then is not counted. */
async function testAgain(binary, name) {
  const { output, ended, left } = await runTests(binary, ['--exact', name]);
  const flaky = ended === 0 && !left && /^test result: ok\. 1 passed/m.test(output);
  process.stdout.write(`${heading(binary)}${output.replace(/^/gm, 'again: ')}\n${flaky ? `test ${name} ... flaky\n` : ''}`);
  passed &&= flaky;
}

if (build === '--build') {
  writeFileSync(list, JSON.stringify(await compile()));
  process.exit(0);
}
const built = process.env.PORTUNUS_TESTS;
const binaries = built ? JSON.parse(readFileSync(built, 'utf8')) : await compile();
const place = ({ name }) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
binaries.sort((one, other) => place(one) - place(other));
/** The tests that failed, of binaries that ended by themselves. */
const again = [];
let passed = true;
const worker = async () => {
  for (let binary = binaries.shift(); binary; binary = binaries.shift()) await test(binary);
};
await Promise.all(Array.from({ length: availableParallelism() }, worker));
// Many failures are not random.
if (again.flatMap(({ failed }) => failed).length > MANY) passed = false;
else for (const { binary, failed } of again) for (const name of failed) await testAgain(binary, name);
const docs = await run(cargo, ['test', '--workspace', '--locked', '--doc', '--no-fail-fast'], {
  stdio: ['ignore', 'pipe', 'pipe'],
});
process.stdout.write(docs.output);
process.exitCode = passed && docs.ended === 0 ? 0 : 1;

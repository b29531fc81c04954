// The static program as an administrator meets it: in an archive with a script that installs it, and in a container image. It is run
// where there is nothing else. Needs root.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const TOP = join(import.meta.dirname, '../..');
const DIST = join(TOP, 'dist');
/** The user of the image. */
const USER = 65532;
const CONFIG = '[http]\nbind = ["127.0.0.1"]\nport = 9789\n[websocket]\nenabled = false\n[admin]\nport = 0\n[media]\nbind = ["127.0.0.1"]\nport = 0\n';
let folder;

/** Runs a program and returns its output; fails with both outputs if the program fails. */
function run(program, args, options = {}) {
  const done = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26, ...options });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}: ${done.error ?? ''}\n${done.stdout}\n${done.stderr}`);
  return done.stdout;
}

/** Returns the path of a file in dist/. */
const made = (pattern) => join(DIST, readdirSync(DIST).find((file) => pattern.test(file)));

/** Gives a root file system the devices of random numbers that each container and each service of systemd has. */
function devices(root) {
  mkdirSync(join(root, 'dev'), { recursive: true });
  run('mknod', ['-m', '666', join(root, 'dev/random'), 'c', '1', '8']);
  run('mknod', ['-m', '666', join(root, 'dev/urandom'), 'c', '1', '9']);
}

/** Runs a server in a root file system of its own until it says that it serves; returns what it has logged. */
async function serves(root, program) {
  writeFileSync(join(root, 'etc/portunus/portunus.toml'), CONFIG);
  const inside = (args) => [`--userspec=${USER}:${USER}`, root, program, ...args];
  const server = spawn('chroot', inside([]), { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  server.stderr.on('data', (text) => (log += text));
  try {
    const health = () => spawnSync('chroot', inside(['health']), { encoding: 'utf8' });
    const deadline = Date.now() + 30_000;
    let asked = health();
    while (asked.status !== 0 && Date.now() < deadline && server.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      asked = health();
    }
    assert.equal(asked.stdout, 'ok\n', log + asked.stderr);
  } finally {
    server.kill('SIGKILL');
    await new Promise((resolve) => (server.exitCode === null && server.signalCode === null ? server.once('exit', resolve) : resolve()));
  }
  return log;
}

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'portunus-static-'));
  // Under test is the dev profile, as everywhere.
  run('scripts/aside', ['scripts/release', 'tar', 'image'], { cwd: TOP, env: { ...process.env, PORTUNUS_PROFILE: process.env.PORTUNUS_PROFILE ?? 'dev' } });
  run('tar', ['-xzf', made(/^portunus-.*-linux-.*\.tar\.gz$/), '-C', folder]);
});

after(() => folder && rmSync(folder, { recursive: true, force: true }));

/** Returns the unpacked archive. */
const unpacked = () => join(folder, readdirSync(folder).find((name) => name.startsWith('portunus-')));

test('the program runs where there is nothing else but random numbers', async () => {
  const root = join(folder, 'empty');
  mkdirSync(join(root, 'etc/portunus'), { recursive: true });
  devices(root);
  cpSync(join(unpacked(), 'portunus'), join(root, 'portunus'));
  assert.match(run('chroot', [root, '/portunus', '--version']), /^portunus \d+\.\d+\.\d+/);
  await serves(root, '/portunus');
});

test('the script installs what the archive has, and removes it', () => {
  const root = join(folder, 'root');
  const install = (...args) => spawnSync(join(unpacked(), 'install'), args, { encoding: 'utf8', env: { ...process.env, DESTDIR: root } });
  const done = install();
  assert.equal(done.status, 0, done.stderr);
  for (const file of ['usr/local/bin/portunus', 'usr/local/share/man/man1/portunus.1', 'usr/local/share/bash-completion/completions/portunus', 'etc/systemd/system/portunus.service']) {
    assert.ok(existsSync(join(root, file)), file);
  }
  const unit = join(root, 'etc/systemd/system/portunus.service');
  assert.match(readFileSync(unit, 'utf8'), /^ExecStart=\/usr\/local\/bin\/portunus/m);
  // A newer version leaves the configuration as it is.
  const config = join(root, 'etc/portunus/portunus.toml');
  assert.equal(statSync(config).mode & 0o777, 0o640);
  appendFileSync(config, '# mine\n');
  assert.equal(install().status, 0);
  assert.match(readFileSync(config, 'utf8'), /\n# mine\n$/);
  assert.equal(install('--remove').status, 0);
  const left = run('find', [root, '-type', 'f']).trim().split('\n');
  assert.deepEqual(left, [config]);
});

test('an archive that is not as it was published is not installed', () => {
  const broken = join(folder, 'broken');
  cpSync(unpacked(), broken, { recursive: true });
  appendFileSync(join(broken, 'portunus.toml'), 'x');
  const root = join(folder, 'nothing');
  const done = spawnSync(join(broken, 'install'), [], { encoding: 'utf8', env: { ...process.env, DESTDIR: root } });
  assert.equal(done.status, 1);
  assert.match(done.stderr, /not as they were published/);
  assert.ok(!existsSync(root));
});

test('the image runs the server as nobody in particular, and says how it does', async () => {
  const image = join(folder, 'image');
  mkdirSync(image);
  run('tar', ['-xzf', made(/image.*\.tar\.gz$/), '-C', image]);
  const [manifest] = JSON.parse(readFileSync(join(image, 'manifest.json'), 'utf8'));
  assert.match(manifest.RepoTags[0], /portunus:\d/);
  const { config } = JSON.parse(readFileSync(join(image, manifest.Config), 'utf8'));
  assert.equal(config.User, `${USER}:${USER}`);
  assert.deepEqual(config.Healthcheck.Test, ['CMD', '/usr/bin/portunus', 'health']);
  assert.deepEqual(config.Entrypoint, ['/usr/bin/portunus']);
  // As a container has it: the layers one on the other, with a configuration mounted.
  const root = join(folder, 'container');
  mkdirSync(root);
  for (const layer of manifest.Layers) run('tar', ['-xf', join(image, layer), '-C', root]);
  devices(root);
  const data = statSync(join(root, 'data'));
  assert.deepEqual([data.uid, data.gid], [USER, USER]);
  assert.equal(statSync(join(root, 'usr/bin/portunus')).uid, 0);
  await serves(root, '/usr/bin/portunus');
});

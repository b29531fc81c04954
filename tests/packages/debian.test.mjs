// The Debian packages as an administrator meets them: built from the programs under test, and installed, upgraded and purged
// in a Debian of their own (debootstrap). Needs root.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

const TOP = join(import.meta.dirname, '../..');
const PROGRAMS = dirname(process.env.PORTUNUS_BIN ?? join(TOP, 'target/debug/portunus'));
const DIST = join(TOP, 'dist');
let root;
/** A Debian with nothing in it that a Debian can be without. */
let empty;

/** Runs a program and returns its output; fails with both outputs if the program fails. */
function run(program, args, options = {}) {
  const done = spawnSync(program, args, { encoding: 'utf8', ...options });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}: ${done.error ?? ''}\n${done.stdout}\n${done.stderr}`);
  return done.stdout;
}

/** Runs a command of the shell in a new Debian. */
const inside = (command, folder = root) => run('chroot', [folder, 'sh', '-c', command], { env: { PATH: process.env.PATH, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' } });

/** Returns where this machine gets the packages of its own Debian. */
function mirror() {
  const suite = /VERSION_CODENAME=(\w+)/.exec(readFileSync('/etc/os-release', 'utf8'))[1];
  const lines = run('apt-get', ['indextargets', '--format', '$(RELEASE) $(SITE)', 'Created-By: Packages']).split('\n');
  const site = lines.find((line) => line.startsWith(`${suite} `)).split(' ')[1];
  return [suite, site];
}

/** Returns the path of a package in dist/. */
const packed = (name) => join(DIST, readdirSync(DIST).find((file) => file.startsWith(`${name}_`) && file.endsWith('.deb')));

before(() => {
  run('scripts/aside', ['scripts/release', 'deb'], { cwd: TOP, env: { ...process.env, PORTUNUS_PROGRAMS: PROGRAMS } });
  root = mkdtempSync(join(tmpdir(), 'portunus-debian-'));
  chmodSync(root, 0o755);
  const [suite, site] = mirror();
  run('debootstrap', ['--variant=minbase', suite, root, site]);
  // No service is started: there is no systemd that could.
  writeFileSync(join(root, 'usr/sbin/policy-rc.d'), '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  cpSync(packed('portunus'), join(root, 'root/portunus.deb'));
  empty = `${root}-empty`;
  run('cp', ['-a', root, empty]);
  inside('apt-get install -y --no-install-recommends systemd ca-certificates');
});

after(() => {
  for (const folder of [root, empty].filter(Boolean)) rmSync(folder, { recursive: true, force: true });
});

test('lintian finds nothing in the packages', () => {
  assert.equal(run('lintian', ['--allow-root', packed('portunus'), packed('portunus-hammer')]), '');
});

test('the unit is sound, and systemd rates its exposure below 2.0', () => {
  const unit = join(TOP, 'packaging/systemd/portunus.service');
  const rated = run('systemd-analyze', ['security', '--offline=true', '--no-pager', unit]);
  const exposure = Number(/exposure level for portunus\.service: ([\d.]+)/.exec(rated)[1]);
  assert.ok(exposure < 2.0, `${exposure}`);
});

test('one command leads from an empty Debian to the first echo in a browser', (t) => {
  const began = Date.now();
  inside('apt-get install -y /root/portunus.deb', empty);
  const installed = Date.now();
  // As the unit starts it: without systemd nothing else does.
  const unit = readFileSync(join(empty, 'usr/lib/systemd/system/portunus.service'), 'utf8');
  const command = /^ExecStart=(.*)$/m.exec(unit)[1];
  inside('install -d -o portunus -g portunus /var/lib/portunus', empty);
  const server = ['chroot', '--userspec=portunus:portunus', empty, 'sh', '-c', `cd /var/lib/portunus && exec ${command}`];
  // The default ports may be others' on this machine.
  const alone = 'ip link set lo up && exec "$@"';
  run('unshare', ['--net', 'sh', '-c', alone, 'sh', process.execPath, join(import.meta.dirname, 'first-echo.mjs'), ...server]);
  const seconds = (time) => (time / 1000).toFixed(1);
  t.diagnostic(`${seconds(Date.now() - began)} s, of which apt-get took ${seconds(installed - began)} s`);
});

test('the package is installed, upgraded with a changed configuration, and purged', async (t) => {
  await t.test('one command installs it, with its user, and a configuration that others cannot read', () => {
    inside('apt-get install -y /root/portunus.deb');
    assert.match(inside('getent passwd portunus'), /:\/var\/lib\/portunus:\/usr\/sbin\/nologin$/m);
    assert.equal(inside('stat -c "%U:%G %a" /etc/portunus /etc/portunus/portunus.toml'), 'root:portunus 750\nroot:portunus 640\n');
    assert.equal(inside('systemctl is-enabled portunus'), 'enabled\n');
    inside('systemd-analyze verify --man=no portunus.service');
    for (const file of ['man/man1/portunus.1.gz', 'bash-completion/completions/portunus', 'zsh/vendor-completions/_portunus']) {
      assert.ok(existsSync(join(root, 'usr/share', file)), file);
    }
  });

  await t.test('the server runs as its user, and says so to a health check', async () => {
    const folder = join(root, 'var/lib/portunus');
    inside('install -d -o portunus -g portunus /var/lib/portunus');
    writeFileSync(join(root, 'etc/portunus/own.toml'), '[http]\nbind = ["127.0.0.1"]\nport = 9788\n[websocket]\nenabled = false\n[admin]\nport = 0\n[media]\nbind = ["127.0.0.1"]\nport = 0\n');
    const server = spawn('chroot', ['--userspec=portunus:portunus', root, 'sh', '-c', 'cd /var/lib/portunus && exec portunus --config /etc/portunus/own.toml'], { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    server.stderr.on('data', (text) => (log += text));
    try {
      const deadline = Date.now() + 30_000;
      const healthy = () => spawnSync('chroot', [root, 'portunus', 'health', '--config', '/etc/portunus/own.toml'], { encoding: 'utf8' });
      let asked = healthy();
      while (asked.status !== 0 && Date.now() < deadline && server.exitCode === null) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        asked = healthy();
      }
      assert.equal(asked.stdout, 'ok\n', log);
    } finally {
      server.kill('SIGTERM');
      await new Promise((resolve) => (server.exitCode === null && server.signalCode === null ? server.once('exit', resolve) : resolve()));
    }
    assert.equal(spawnSync('chroot', [root, 'portunus', 'health', '--config', '/etc/portunus/own.toml']).status, 1);
    assert.ok(existsSync(folder));
  });

  await t.test('an upgrade keeps what the administrator has changed', () => {
    appendFileSync(join(root, 'etc/portunus/portunus.toml'), '# mine\n');
    const next = join(root, 'root/next');
    run('dpkg-deb', ['-R', packed('portunus'), next]);
    const control = join(next, 'DEBIAN/control');
    writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, 'Version: 99.0-1'));
    run('dpkg-deb', ['-Znone', '-b', next, `${next}.deb`]);
    inside('apt-get install -y -o Dpkg::Options::=--force-confdef /root/next.deb');
    assert.match(inside('dpkg-query -W portunus'), /99\.0-1/);
    assert.match(readFileSync(join(root, 'etc/portunus/portunus.toml'), 'utf8'), /\n# mine\n$/);
    assert.equal(statSync(join(root, 'etc/portunus/portunus.toml')).mode & 0o777, 0o640);
  });

  await t.test('a purge leaves the recordings, and nothing else', () => {
    inside('rm /etc/portunus/own.toml && touch /var/lib/portunus/call.webm');
    inside('apt-get purge -y portunus');
    assert.equal(inside('find / -xdev -name "*portunus*" -not -path "/proc/*" -not -path "/root/*" -not -path "/var/log/*"'), '/var/lib/portunus\n');
    assert.ok(existsSync(join(root, 'var/lib/portunus/call.webm')));
  });
});

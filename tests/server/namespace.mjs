// A network namespace behind a link whose rate can be set, and the ways into it. Needs root and iproute2.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * @typedef {object} Namespace
 * @property {string} host the server's address as seen from inside
 * @property {(command: string) => string} wrap gives the path of a script that runs the command inside
 * @property {(url: string) => Promise<string>} reach gives the address by which those inside reach a loopback address
 * @property {(kbps: number) => void} limit sets what the link carries towards the inside; what is more waits in a queue
 * @property {(way: 'in' | 'out', kbps: number) => void} lose sets what the link carries without a queue; what is more is lost
 * @property {() => void} remove ends all of it
 */

/** Whether this machine lets us make one. */
export function canMakeNamespaces() {
  try {
    const name = `portunus-probe-${process.pid}`;
    run('ip', ['netns', 'add', name]);
    run('ip', ['netns', 'del', name]);
    run('tc', ['-V']);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes a namespace; before the server starts, so that it finds the address.
 * @returns {Namespace}
 */
export function makeNamespace() {
  const id = process.pid % 10_000;
  const [name, outside, inside] = [`portunus-${id}`, `pto${id}`, `pti${id}`];
  const net = `10.${100 + (id % 100)}.${Math.floor(id / 100)}`;
  const folder = mkdtempSync(join(tmpdir(), 'portunus-namespace-'));
  const proxies = [];
  run('ip', ['netns', 'add', name]);
  try {
    run('ip', ['link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', name]);
    // A second later IPv6 would add its addresses, at which Chromium gives up the connections that it is about to make.
    withoutIpv6([], outside);
    withoutIpv6(['ip', 'netns', 'exec', name], inside);
    run('ip', ['addr', 'add', `${net}.1/24`, 'dev', outside]);
    run('ip', ['link', 'set', outside, 'up']);
    for (const command of [`addr add ${net}.2/24 dev ${inside}`, `link set ${inside} up`, 'link set lo up']) {
      run('ip', ['-n', name, ...command.split(' ')]);
    }
  } catch (error) {
    run('ip', ['netns', 'del', name]);
    throw error;
  }
  return {
    host: `${net}.1`,
    wrap: (command) => {
      const script = join(folder, 'inside');
      writeFileSync(script, `#!/bin/sh\nexec ip netns exec ${name} ${command} "$@"\n`);
      chmodSync(script, 0o755);
      return script;
    },
    reach: async (address) => {
      const url = new URL(address);
      const port = Number(url.port);
      const proxy = createServer((client) => {
        const server = connect(port, '127.0.0.1');
        for (const [from, to] of [[client, server], [server, client]]) from.on('error', () => to.destroy()).pipe(to);
      });
      proxies.push(proxy);
      await new Promise((done) => proxy.listen(0, `${net}.1`, () => done(undefined)));
      url.hostname = `${net}.1`;
      url.port = String(proxy.address().port);
      return url.href.replace(/\/$/, '');
    },
    limit: (kbps) => run('tc', bucket(outside, kbps, '400ms')),
    // Kernels are built without netem now and then.
    lose: (way, kbps) => {
      if (way === 'in') run('tc', bucket(outside, kbps, '1ms'));
      else run('tc', ['-n', name, ...bucket(inside, kbps, '1ms')]);
    },
    remove: () => {
      for (const proxy of proxies) proxy.close();
      // The kernel would take its time to do so after the namespace.
      run('ip', ['link', 'del', outside]);
      run('ip', ['netns', 'del', name]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A link of this rate, in which a packet waits so long at most. */
function bucket(device, kbps, latency) {
  return ['qdisc', 'replace', 'dev', device, 'root', 'tbf', 'rate', `${kbps}kbit`, 'burst', '5kb', 'latency', latency];
}

function run(command, args) {
  return execFileSync(command, args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString();
}

/** Has an interface do without IPv6; `inside` is what runs a command where it is. */
function withoutIpv6(inside, device) {
  const [command, ...args] = [...inside, 'tee', `/proc/sys/net/ipv6/conf/${device}/disable_ipv6`];
  try {
    execFileSync(command, args, { input: '1', stdio: ['pipe', 'ignore', 'ignore'] });
  } catch {
    // A kernel without IPv6.
  }
}

// Starts the server under test on ports of its own, on loopback, and stops it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeTcpPort, freeUdpPorts } from './ports.mjs';

const root = new URL('../..', import.meta.url).pathname;

/** Servers that run: none outlives the tests, however those end. */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/**
 * @typedef {object} Server
 * @property {string} base where the pages are: `http://127.0.0.1:PORT`
 * @property {string} http address of the Janus API over HTTP
 * @property {string} ws address of the Janus API over WebSocket
 * @property {string} admin address of the Admin API over HTTP, which has the dashboard at `/`; a WebSocket may be opened there
 * @property {string | null} unix path of the Unix socket
 * @property {() => Promise<number | null>} stop ends it by SIGINT, which waits for no calls, and gives the exit status
 * @property {(signal?: NodeJS.Signals) => Promise<void>} kill ends it by a signal, SIGKILL if none is named
 * @property {() => Promise<void>} restart starts it again at the same ports, once it was killed
 * @property {number | undefined} pid its process; none of a reference
 * @property {number} media the UDP port of the first worker; 0 of a reference
 * @property {() => string} log what it wrote so far
 */

/**
 * Starts the binary named by PORTUNUS_BIN, or the one that `cargo build` made.
 * @param {{ workers?: number, unix?: 'datagram' | 'seqpacket', config?: string, http?: string, basePath?: string,
 *   onOutput?: (text: string) => void }} [options] `http`: keys of that section, which `config` cannot have; `onOutput` gets all that
 *   the server writes, of which `log` keeps the end
 * @returns {Promise<Server>}
 */
export async function startPortunus(options = {}) {
  for (let tries = 4; ; tries -= 1) {
    try {
      return await start(options);
    } catch (error) {
      // A port that was free may be somebody else's by now.
      if (tries === 0 || !String(error).includes('Address already in use')) throw error;
    }
  }
}

async function start({ workers = 2, unix, config = '', http: ofHttp = '', basePath = '/janus', onOutput = () => {} }) {
  const binary = process.env.PORTUNUS_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug/portunus');
  const folder = mkdtempSync(join(tmpdir(), 'portunus-test-'));
  const [http, websocket, admin] = [await freeTcpPort(), await freeTcpPort(), await freeTcpPort()];
  const media = await freeUdpPorts(workers);
  const socket = unix ? join(folder, 'api.sock') : null;
  const file = join(folder, 'portunus.toml');
  writeFileSync(file, configuration({ http, ofHttp, websocket, admin, media, socket, unix, basePath, extra: config }));

  let output = '';
  let child;
  let exited;
  const base = `http://127.0.0.1:${http}`;
  const run = async () => {
    child = spawn(binary, ['--config', file, '--workers', String(workers)], { stdio: ['ignore', 'pipe', 'pipe'] });
    const started = child;
    running.add(started);
    started.once('exit', () => running.delete(started));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        output = (output + text).slice(-200_000);
        onOutput(text);
      });
    }
    const failed = once(child, 'error').then(([error]) => { throw error; });
    exited = once(child, 'exit');
    await Promise.race([failed, ready(`${base}${basePath}/info`, child)]);
  };
  try {
    await run();
  } catch (error) {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`${binary} did not start: ${error}\n${output}`);
  }
  return {
    base,
    http: base + basePath,
    ws: `ws://127.0.0.1:${websocket}`,
    admin: `http://127.0.0.1:${admin}/admin`,
    unix: socket,
    log: () => output,
    get pid() {
      return child.pid;
    },
    media,
    kill: async (signal = 'SIGKILL') => {
      child.kill(signal);
      await exited;
    },
    restart: run,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGINT');
        const deadline = setTimeout(() => child.kill('SIGKILL'), 10_000);
        await exited;
        clearTimeout(deadline);
      }
      rmSync(folder, { recursive: true, force: true });
      return child.exitCode;
    },
  };
}

/** Requests of the tests reach the loopback interface and the files of the tests, and they record on a disk that is nearly full. */
const OF_TESTS = {
  server: 'outgoing_networks = ["127.0.0.0/8", "::1/128"]',
  streaming: `folders = ${JSON.stringify([tmpdir(), root])}`,
  recording: 'keep_free_mb = 0',
};

/** `text` with keys in their sections, whether it has those or not. */
function within(text, keys) {
  return Object.entries(keys).reduce((all, [section, keys]) => {
    const head = `[${section}]\n`;
    return all.includes(head) ? all.replace(head, `${head}${keys}\n`) : `${head}${keys}\n${all}`;
  }, text);
}

function configuration({ http, ofHttp, websocket, admin, media, socket, unix, basePath, extra }) {
  return within(`
[http]
bind = ["127.0.0.1"]
port = ${http}
base_path = "${basePath}"
${ofHttp}

[websocket]
bind = ["127.0.0.1"]
port = ${websocket}
${socket ? `\n[unix]\npath = "${socket}"\nkind = "${unix}"\n` : ''}
[media]
port = ${media}
${extra}`, { ...OF_TESTS, admin: `port = ${admin}` });
}

async function ready(url, child) {
  const deadline = Date.now() + 20_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`it ended with status ${child.exitCode}`);
    try {
      if ((await fetch(url)).ok) return;
    } catch {
      // Not listening yet.
    }
    if (Date.now() > deadline) throw new Error('it did not answer in 20 s');
    await new Promise((done) => setTimeout(done, 50));
  }
}

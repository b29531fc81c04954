// Puts the pages of web/dist in front of another server that speaks the Janus API, so that the same tests can be run
// against it: REFERENCE_HTTP=http://127.0.0.1:8088/janus REFERENCE_WS=ws://127.0.0.1:8188 npm run browser
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { once } from 'node:events';

const dist = new URL('../../web/dist/', import.meta.url).pathname;
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

/** @returns {Promise<import('./portunus.mjs').Server>} */
export async function startReference(http, ws) {
  const server = createServer((incoming, outgoing) => {
    if (incoming.url.startsWith('/janus')) forward(http, incoming, outgoing);
    else void page(incoming, outgoing);
  });
  server.on('upgrade', (incoming, socket, head) => upgrade(ws, incoming, socket, head));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${server.address().port}`,
    http,
    ws,
    unix: null,
    log: () => '',
    pid: undefined,
    media: 0,
    kill: () => Promise.reject(new Error('the reference is not ours to kill')),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      return 0;
    },
  };
}

function forward(http, incoming, outgoing) {
  const target = http + incoming.url.slice('/janus'.length);
  const onward = request(target, { method: incoming.method, headers: incoming.headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
}

async function page(incoming, outgoing) {
  const path = normalize(new URL(incoming.url, 'http://localhost').pathname);
  const file = path === '/' ? 'index.html' : path;
  try {
    const body = await readFile(join(dist, file));
    outgoing.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' }).end(body);
  } catch {
    outgoing.writeHead(404).end();
  }
}

function upgrade(ws, incoming, socket, head) {
  const { hostname, port } = new URL(ws);
  const onward = connect(Number(port), hostname, () => {
    const headers = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}\r\n`).join('');
    onward.write(`GET / HTTP/1.1\r\n${headers}\r\n`);
    onward.write(head);
    onward.pipe(socket).pipe(onward);
  });
  for (const [one, other] of [[onward, socket], [socket, onward]]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
  }
}

// A worker of agents: frames of protobuf over a WebSocket.
import { ServerMessage, WorkerMessage } from '@livekit/protocol';
import WebSocket from 'ws';
import { makeToken } from './tokens.mjs';

/** Connects a worker. Its `messages` are what the server has sent, as JSON with a `kind`. */
export async function connectWorker(url, token = makeToken({ video: { agent: true } })) {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/agent`, { headers: { authorization: `Bearer ${token}` } });
  const worker = { messages: [], closed: null };
  socket.on('message', (data) => {
    const { message } = ServerMessage.fromBinary(new Uint8Array(/** @type {Buffer} */ (data)));
    worker.messages.push({ kind: message.case, value: message.value });
  });
  socket.on('close', (code) => { worker.closed = code; });
  await new Promise((resolve, reject) => {
    socket.on('open', resolve);
    socket.on('error', reject);
    socket.on('unexpected-response', (_, response) => reject(Object.assign(new Error(String(response.statusCode)), { status: response.statusCode })));
  });
  const until = async (kind, timeout = 5_000) => {
    const deadline = Date.now() + timeout;
    for (;;) {
      const at = worker.messages.findIndex((it) => it.kind === kind);
      if (at >= 0) return worker.messages.splice(at, 1)[0].value;
      if (Date.now() > deadline) throw new Error(`no ${kind}: ${worker.messages.map((it) => it.kind)}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  };
  return Object.assign(worker, {
    send: (kind, value) => socket.send(new WorkerMessage({ message: { case: kind, value } }).toBinary()),
    until,
    close: () => socket.terminate(),
  });
}

// A proxy between a client and a server that records the frames of the signalling, and passes on what it does not know.
import { createServer } from 'node:http';
import { SignalRequest, SignalResponse } from '@livekit/protocol';
import WebSocket, { WebSocketServer } from 'ws';

/** @typedef {{ from: 'client' | 'server', kind: string, value: any }} Recorded */

export class Recorder {
  /** @type {Recorded[]} */
  frames = [];

  /** @param {string} upstream `http://…` */
  constructor(upstream) {
    this.upstream = upstream;
    this.server = createServer((request, response) => this.#pass(request, response));
    this.sockets = new WebSocketServer({ server: this.server });
    this.sockets.on('connection', (client, request) => this.#relay(client, request));
  }

  /** Starts it, and returns its address for clients. */
  async start() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', () => resolve(undefined)));
    return `ws://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.server.address()).port}`;
  }

  stop() {
    for (const client of this.sockets.clients) client.terminate();
    this.server.close();
  }

  /** A request without a WebSocket. */
  async #pass(request, response) {
    const { authorization } = request.headers;
    const answer = await fetch(this.upstream + request.url, { method: request.method, headers: authorization ? { authorization } : {} });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
    response.end(Buffer.from(await answer.arrayBuffer()));
  }

  #relay(client, request) {
    const { authorization } = request.headers;
    const server = new WebSocket(this.upstream.replace(/^http/, 'ws') + request.url, { headers: authorization ? { authorization } : {} });
    const waiting = [];
    const send = (data, binary) => (server.readyState === WebSocket.OPEN ? server.send(data, { binary }) : waiting.push([data, binary]));
    server.on('open', () => waiting.splice(0).forEach(([data, binary]) => send(data, binary)));
    client.on('message', (data, binary) => {
      this.#record('client', SignalRequest, data, binary);
      send(data, binary);
    });
    server.on('message', (data, binary) => {
      this.#record('server', SignalResponse, data, binary);
      client.send(data, { binary });
    });
    client.on('close', () => server.close());
    server.on('close', () => client.close());
    server.on('error', () => client.terminate());
    client.on('error', () => server.terminate());
  }

  #record(from, type, data, binary) {
    const frame = binary ? type.fromBinary(new Uint8Array(data)) : type.fromJsonString(data.toString());
    const kind = frame.message.case ?? 'unknown';
    const json = frame.toJson();
    this.frames.push({ from, kind, value: json[kind] ?? json });
  }
}

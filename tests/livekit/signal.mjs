// A client of the signalling without media: frames of protobuf over a WebSocket.
import { SignalRequest, SignalResponse } from '@livekit/protocol';
import WebSocket from 'ws';

/** Kinds whose number depends on time alone. */
export const TIMED = new Set(['pong', 'pongResp', 'refreshToken', 'connectionQuality', 'speakersChanged', 'roomUpdate']);

const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class SignalClient {
  /** @param {WebSocket} socket */
  constructor(socket) {
    this.socket = socket;
    /** @type {{ kind: string, value: any }[]} */
    this.frames = [];
    this.closed = null;
    socket.on('message', (data, isBinary) => {
      const frame = isBinary
        ? SignalResponse.fromBinary(new Uint8Array(/** @type {Buffer} */ (data)))
        : SignalResponse.fromJsonString(data.toString());
      const kind = frame.message.case ?? 'unknown';
      const json = frame.toJson();
      this.frames.push({ kind, value: json[kind] ?? json });
    });
    socket.on('close', (code) => { this.closed = code; });
  }

  /** @param {import('@livekit/protocol').PartialMessage<SignalRequest>['message']} message */
  send(message) {
    this.socket.send(new SignalRequest({ message }).toBinary());
  }

  /** Waits until a frame of this kind is there, and returns its value. */
  async until(kind, { timeout = 5_000, where = (_) => true } = {}) {
    const deadline = Date.now() + timeout;
    for (;;) {
      const frame = this.frames.find((frame) => frame.kind === kind && where(frame.value));
      if (frame) return frame.value;
      if (Date.now() > deadline) throw new Error(`no ${kind} within ${timeout} ms: ${this.frames.map((it) => it.kind)}`);
      await delay(10);
    }
  }

  /**
   * Takes the frames since the last time, once none came for `quiet` ms.
   * @param {{ quiet?: number, timed?: boolean }} [options] `timed`: also those whose number depends on time
   */
  async take({ quiet = 400, timed = false } = {}) {
    for (let count = -1; count !== this.frames.length;) {
      count = this.frames.length;
      await delay(quiet);
    }
    const taken = this.frames.splice(0);
    /** @type {Record<string, any[]>} */
    const groups = {};
    for (const { kind, value } of taken) {
      if (timed || !TIMED.has(kind)) (groups[kind] ??= []).push(value);
    }
    return { first: taken[0]?.kind ?? null, closed: this.closed, ...groups };
  }

  close() {
    this.socket.terminate();
  }
}

/**
 * Opens the signalling of a room.
 * @param {string} url
 * @param {{ token: string, path?: string, query?: Record<string, string>, headers?: Record<string, string>, tls?: object }} options
 * @returns {Promise<SignalClient>} rejected with `{ status, body }` if the server refuses
 */
export async function joinRoom(url, { token, path = '/rtc', query = {}, headers = {}, tls = {} }) {
  const usual = { protocol: '16', sdk: 'js', version: '2.15.0', auto_subscribe: '1', access_token: token };
  const search = new URLSearchParams({ ...usual, ...query });
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${path}?${search}`, { headers, ...tls });
  const client = new SignalClient(socket);
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(client));
    socket.on('error', reject);
    socket.on('unexpected-response', (_, response) => {
      let body = '';
      response.on('data', (chunk) => { body += chunk; });
      response.on('end', () => reject(Object.assign(new Error(`${response.statusCode}: ${body}`), { status: response.statusCode, body })));
    });
  });
}

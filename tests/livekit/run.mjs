// One run of a session against one server: what is sent, and what was answered.
import { Guest } from './guest.mjs';
import { joinRoom } from './signal.mjs';
import { adminToken } from './tokens.mjs';

/** Records the answers to each step of a session. */
export class Run {
  /** @param {string} url of the server: `http://…` */
  constructor(url) {
    this.url = url.replace(/\/$/, '').replace(/^ws/, 'http');
    /** @type {{ step: string, answer: unknown }[]} */
    this.steps = [];
    this.clients = [];
    /** @type {Guest[]} */
    this.guests = [];
  }

  note(step, answer) {
    this.steps.push({ step, answer });
  }

  /**
   * Sends a request.
   * @param {string} step
   * @param {{ method?: string, path: string, token?: string, headers?: Record<string, string>, body?: any, keep?: string[] }} request
   *   `keep`: headers of the answer that are recorded
   */
  async http(step, { method = 'POST', path, token, headers = {}, body, keep = [] }) {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(this.url + path, { method, headers: { ...authorization, ...headers }, body });
    const text = await answer.text();
    const type = answer.headers.get('content-type')?.split(';')[0] ?? null;
    const kept = Object.fromEntries(keep.map((name) => [name, answer.headers.get(name)]));
    const read = type === 'application/json' ? JSON.parse(text) : text.trim();
    this.note(step, { status: answer.status, type, ...kept, body: read });
    return read;
  }

  /** Calls a method of a service with JSON. */
  twirp(step, method, request, token = adminToken(request.room ?? '')) {
    const headers = { 'content-type': 'application/json' };
    return this.http(step, { path: `/twirp/livekit.${method}`, token, headers, body: JSON.stringify(request) });
  }

  /** Joins a room, and records nothing yet. */
  async join(options) {
    const client = await joinRoom(this.url, options);
    this.clients.push(client);
    return client;
  }

  /** Records what a client got since the last time, in groups by kind. */
  async frames(step, client, options) {
    this.note(step, await client.take(options));
  }

  /** Joins a room with media, by one PeerConnection (`one`) or two (`two`), and records nothing yet. */
  async guest(token, mode) {
    const guest = await Guest.enter(this.url, token, mode);
    this.guests.push(guest);
    return guest;
  }

  /** Records what a participant was told last of each kind since the last time. */
  async told(step, guest) {
    this.note(step, await guest.take());
  }

  end() {
    for (const client of this.clients) client.close();
    for (const guest of this.guests) guest.end();
  }
}

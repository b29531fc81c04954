// The steps of the connection check, one after the other.
import { access } from '../access';
import { open, type Capture } from '../capture';
import { apiPath, connect, serverInfo, type Session } from '../session';
import { watch, type Flow } from './flow';
import { STEPS, type Outcome, type StepId, type Steps } from './steps';
import { Connection, NotOffered, type Way } from './way';

/** How long the server may take to answer, in ms. */
const PATIENCE = 8_000;
/** Share of packets from which on losses are heard and seen. */
const LOSS = 0.02;
/** Round trip in ms from which on people talk at the same time. */
const ROUND_TRIP = 300;

export class Checks {
  /** The server's description of itself. */
  server = '';
  /** Whether it went away meanwhile. */
  gone = false;
  private readonly away = new AbortController();
  private session: Session | null = null;
  private capture: Capture | null = null;

  constructor(private readonly steps: Steps) {}

  /** Never rejects. Steps that could not be tried are named so. */
  async run(): Promise<void> {
    try {
      await this.all();
    } finally {
      for (const track of this.capture?.stream.getTracks() ?? []) track.stop();
      this.capture?.close();
      if (this.session && !this.gone) void this.session.close();
      for (const id of STEPS) {
        const state = this.steps.outcomes().get(id)?.state;
        if (state === 'waiting' || state === 'running') this.steps.set(id, { state: 'skipped', reason: '' });
      }
    }
  }

  private async all(): Promise<void> {
    await this.step('http', async () => {
      const info = await inTime(serverInfo());
      this.server = `Portunus ${info['portunus-version']}`;
      return '';
    });
    await this.step('websocket', () => inTime(webSocket()));
    if (!this.works('http') && !this.works('websocket')) return;
    try {
      // The user may have to enter a token, so that this has no time limit.
      this.session = await connect(this.works('websocket') ? 'auto' : 'http', () => this.lose());
    } catch (error) {
      this.steps.set('udp', { state: 'bad', reason: `no session: ${text(error)}` });
      return;
    }
    await this.way('udp', { carrier: 'udp' });
    await this.way('tcp', { carrier: 'tcp' });
    const relays = await this.relays();
    for (const [id, relay] of Object.entries(relays) as [StepId, RTCIceServer | null][]) {
      if (relay) await this.way(id, { carrier: 'udp', relay });
      else if (!this.gone) this.steps.set(id, { state: 'none', reason: 'the server has no such relay' });
    }
    await this.media(relays);
  }

  private lose(): void {
    this.gone = true;
    this.away.abort();
  }

  private works(id: StepId): boolean {
    const state = this.steps.outcomes().get(id)?.state;
    return state === 'good' || state === 'poor';
  }

  /** Tries a step, unless the server is gone. */
  private async step(id: StepId, work: () => Promise<string>): Promise<void> {
    if (this.gone) return;
    this.steps.set(id, { state: 'running', reason: '' });
    const begin = performance.now();
    const end = (state: Outcome['state'], reason: string) => this.steps.set(id, { state, reason, time: performance.now() - begin });
    try {
      end('good', await work());
    } catch (error) {
      if (error instanceof NotOffered) this.steps.set(id, { state: 'none', reason: error.message });
      else end('bad', text(error));
    }
  }

  private way(id: StepId, way: Way): Promise<void> {
    return this.step(id, async () => {
      const connection = await this.connection(way, null);
      const ends = await connection.ends();
      connection.close();
      return ends;
    });
  }

  private connection(way: Way, stream: MediaStream | null): Promise<Connection> {
    if (!this.session) throw new Error('there is no session');
    return Connection.open(this.session, way, stream, this.away.signal);
  }

  /** The relays that the server has for its clients, by the step that tries each. */
  private async relays(): Promise<Record<'turn-udp' | 'turn-tcp' | 'turn-tls', RTCIceServer | null>> {
    const servers = this.gone ? [] : await iceServers(this.session).catch(() => []);
    const by = (fits: (url: string) => boolean) => {
      for (const server of servers) {
        const urls = [server.urls].flat().filter(fits);
        if (urls.length > 0) return { ...server, urls };
      }
      return null;
    };
    const isTcp = (url: string) => /[?&]transport=tcp/.test(url);
    return {
      'turn-udp': by((url) => url.startsWith('turn:') && !isTcp(url)),
      'turn-tcp': by((url) => url.startsWith('turn:') && isTcp(url)),
      'turn-tls': by((url) => url.startsWith('turns:')),
    };
  }

  /** Sends and receives by the best way that works. */
  private async media(relays: Record<string, RTCIceServer | null>): Promise<void> {
    const id = (['udp', 'tcp', 'turn-udp', 'turn-tcp', 'turn-tls'] as const).find((way) => this.works(way));
    if (!id || this.gone) return;
    const relay = relays[id] ?? undefined;
    const way: Way = { carrier: id === 'tcp' ? 'tcp' : 'udp', ...(relay && { relay }) };
    let flow: Flow | null = null;
    const flowing = this.step('send', async () => {
      this.capture = await open('synthetic', { width: 320, height: 180, camera: '', microphone: '' });
      const connection = await this.connection(way, this.capture.stream);
      try {
        this.steps.set('receive', { state: 'running', reason: '' });
        flow = await watch(connection, this.away.signal);
      } finally {
        connection.close();
      }
      if (flow.sent === 0) throw new Error('the browser sent nothing');
      return `${flow.sent} packets`;
    });
    await flowing;
    if (flow) this.judge(flow);
  }

  private judge(flow: Flow): void {
    const { received, frames, lostHere, lostThere, roundTrip, jitter } = flow;
    if (received === 0) this.steps.set('receive', { state: 'bad', reason: 'none of it came back' });
    else this.steps.set('receive', { state: 'good', reason: `${received} packets, ${frames} frames` });
    const parts = [
      roundTrip === undefined ? '' : `round trip ${roundTrip.toFixed(0)} ms`,
      jitter === undefined ? '' : `jitter ${jitter.toFixed(0)} ms`,
      lostThere === undefined ? '' : `${percent(lostThere)} lost on the way there`,
      received === 0 ? '' : `${percent(lostHere)} on the way back`,
    ];
    const isPoor = Math.max(lostHere, lostThere ?? 0) >= LOSS || (roundTrip ?? 0) >= ROUND_TRIP;
    this.steps.set('quality', { state: isPoor ? 'poor' : 'good', reason: parts.filter((part) => part).join(', ') });
  }
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function inTime<T>(work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error(`no answer within ${PATIENCE / 1_000} s`)), PATIENCE));
  return Promise.race([work, late]);
}

/** Opens a WebSocket and has one request answered. */
function webSocket(): Promise<string> {
  return new Promise((done, reject) => {
    const { protocol, host } = window.location;
    const socket = new WebSocket(`${protocol === 'https:' ? 'wss:' : 'ws:'}//${host}${apiPath()}`, 'janus-protocol');
    socket.onopen = () => socket.send(JSON.stringify({ janus: 'info', transaction: 'check' }));
    socket.onmessage = () => {
      socket.close();
      done('');
    };
    socket.onclose = () => reject(new Error('it was not opened: a proxy does not pass it on, or the server has none'));
  });
}

/** The relays that the server offers to the clients of a session. */
async function iceServers(session: Session | null): Promise<RTCIceServer[]> {
  if (!session) return [];
  const request = { janus: 'ice_servers', transaction: 'check', ...access() };
  const response = await fetch(`${apiPath()}/${session.id}`, { method: 'POST', body: JSON.stringify(request), cache: 'no-store' });
  const { data } = (await response.json()) as { data?: { ice_servers?: RTCIceServer[] } };
  return data?.ice_servers ?? [];
}

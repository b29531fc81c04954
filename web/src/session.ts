// A Janus API session with this server, by janus.js: over WebSocket where it can be had, else over HTTP long poll.
import Janus, { type JanusJS } from 'janus-gateway';
import adapter from 'webrtc-adapter';
import { access, AccessDenied, askAccess, forgetAccess, keepAccess, type Access } from './access';
import { IceServers } from './ice-servers';
import { isOver, noteEnding, noteWelcome } from './ending';
import { reconnecting } from './page';

export type Transport = 'auto' | 'ws' | 'http';
export type Jsep = JanusJS.JSEP;
export type Handle = JanusJS.PluginHandle;
export type Track = JanusJS.TrackOption;

export interface ServerInfo {
  'portunus-version': string;
  version_string: string;
  'server-name'?: string;
  'data_channels'?: boolean;
  ipv6?: boolean;
  'ice-lite'?: boolean;
  'full-trickle'?: boolean;
  plugins?: Record<string, { name: string; version_string: string; description: string }>;
  transports?: Record<string, { name: string }>;
}

/** For how many seconds the server keeps a session of these pages that has lost its connection. */
const RECLAIM = 45;
/** How long an attempt to connect again may take, in ms. */
const ATTEMPT = 5_000;
/** How long the server may take to answer when a page doubts that it is there, in ms. */
const DOUBT = 2_000;
/** How often it is looked whether the machine has slept, and from which gap on it has, in ms. */
const LOOK = 5_000;
const SLEPT = 20_000;

/** The address of `path`, which is below the folder of this page: a proxy may have put the pages anywhere. */
export function below(path: string): URL {
  return new URL(path.replace(/^\//, ''), new URL('.', window.location.href));
}

/** The path of the Janus API, which the server writes into its pages. */
export function apiPath(): string {
  return below(document.querySelector<HTMLMetaElement>('meta[name="portunus-api"]')?.content ?? '/janus').pathname;
}

/** Addresses of the Janus API on the host that served this page, in the order in which they are tried. */
function servers(transport: Transport): string[] {
  const { protocol, host } = window.location;
  const ws = `${protocol === 'https:' ? 'wss:' : 'ws:'}//${host}${apiPath()}`;
  const http = `${protocol}//${host}${apiPath()}`;
  if (transport === 'ws') return [ws];
  return transport === 'http' ? [http] : [ws, http];
}

/** The server's description of itself, without a session. */
export async function serverInfo(): Promise<ServerInfo> {
  const response = await fetch(`${apiPath()}/info`, { cache: 'no-store' });
  if (!response.ok) throw new Error(`The server answered with status ${response.status}`);
  return response.json() as Promise<ServerInfo>;
}

/** The server answered 403. */
class Unauthorized extends Error {}

let connecting: Promise<Session> | null = null;
/** Of the connection that is being opened. */
let socket: WebSocket | null = null;
/** When the server has said something last, by the clock of `performance`. */
let heard = 0;

/**
 * Opens a session, as soon as the user has entered what the server asks for; `lost` is called once if it goes away later.
 * One that is being opened is shared.
 */
export function connect(transport: Transport, lost: (why: string) => void): Promise<Session> {
  connecting ??= open(transport, lost).finally(() => (connecting = null));
  return connecting;
}

async function open(transport: Transport, lost: (why: string) => void): Promise<Session> {
  await initialised();
  let shown = access();
  for (let asked = false; ; asked = true) {
    try {
      const session = await create(transport, shown, lost);
      if (asked) keepAccess(shown);
      return session;
    } catch (error) {
      if (!(error instanceof Unauthorized)) throw error;
    }
    forgetAccess();
    shown = await askAccess(asked);
  }
}

function initialised(): Promise<void> {
  const dependencies = Janus.useDefaultDependencies({ adapter });
  const { newWebSocket, httpAPICall } = dependencies;
  dependencies.newWebSocket = (server, protocol) => (socket = watched(newWebSocket(server, protocol)));
  dependencies.httpAPICall = (url, options) => {
    const success = options.success as ((answer: unknown) => void) | undefined;
    httpAPICall(url, { ...options, success: (answer: unknown) => (noteEnding(answer), success?.(answer)) } as typeof options);
  };
  return new Promise((done) => {
    Janus.init({ debug: [], dependencies, callback: () => done() });
  });
}

/** Adds to a connection of janus.js what that does not do by itself. */
function watched(made: WebSocket): WebSocket {
  made.addEventListener('message', ({ data }) => {
    heard = performance.now();
    noteEnding(JSON.parse(String(data)));
  });
  const [send, listen] = [made.send.bind(made), made.addEventListener.bind(made)];
  // The session shall outlive the connection.
  made.send = (text) => send(String(text).replace(/^\{"janus":"create",/, `$&"reclaim_session_timeout":${RECLAIM},`));
  // The end of a connection that another has replaced is no news.
  made.addEventListener = (type: string, listener: any) => listen(type, (event: Event) => (type !== 'close' || made === socket) && listener(event));
  return made;
}

function create(transport: Transport, shown: Access, lost: (why: string) => void): Promise<Session> {
  return new Promise((resolve, reject) => {
    let session: Session | null = null;
    let settled = false;
    const iceServers = new IceServers();
    const janus = new Janus({
      server: servers(transport),
      iceServers: iceServers.list,
      ...shown,
      // janus.js would only close the connection, which the session outlives. See `leave`.
      destroyOnUnload: false,
      success: () => {
        settled = true;
        noteWelcome();
        // They are there before the first PeerConnection is.
        const asked = iceServers.follow(`${apiPath()}/${janus.getSessionId()}`, shown);
        void asked.then(() => resolve((session = new Session(janus, iceServers, lost, shown))));
      },
      error: (reason: unknown) => {
        const text = String(reason);
        if (session) return void session.connectionLost(text);
        iceServers.stop();
        if (settled) return lost(text);
        settled = true;
        // janus.js leaves it open, and passes on the text of an error but not its code.
        socket?.close();
        reject(text.startsWith('Unauthorized') ? new Unauthorized(text) : new Error(text));
      },
    });
  });
}

type State = 'connected' | 'reclaiming' | 'over';

export class Session {
  private state: State = 'connected';
  private readonly back = new Set<() => void>();
  private readonly pending = new Set<(error: Error) => void>();
  private awake = Date.now();
  private readonly looking = setInterval(() => {
    // The connection of a machine that slept may be long gone, without anybody having been told.
    if (Date.now() - this.awake > SLEPT) this.doubt();
    this.awake = Date.now();
  }, LOOK);

  constructor(
    private readonly janus: Janus,
    private readonly iceServers: IceServers,
    private readonly lost: (why: string) => void,
    private readonly shown: Access,
  ) {
    window.addEventListener('pagehide', this.leave);
    // A network that has changed is noticed here long before a connection by TCP ends.
    window.addEventListener('online', this.networkChanged);
  }

  get transport(): 'WebSocket' | 'HTTP' {
    return this.janus.getServer().startsWith('ws') ? 'WebSocket' : 'HTTP';
  }

  /** Whether there is a connection on which the server can be told something. */
  get isConnected(): boolean {
    return this.state === 'connected';
  }

  /** Its id. */
  get id(): string {
    return String(this.janus.getSessionId());
  }

  attach(plugin: string, callbacks: JanusJS.PluginCallbacks): Promise<Handle> {
    return this.answered(
      () =>
        new Promise((success, reject) => {
          this.janus.attach({ ...callbacks, plugin, success, error: (reason) => reject(attachError(reason)) });
        }),
    );
  }

  /** Runs a request once there is a connection. It fails if the connection is lost before the answer. */
  answered<T>(request: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.state === 'over') return reject(new Error('The session with the server is over.'));
      this.pending.add(reject);
      const run = (): void => {
        request()
          .then(resolve, reject)
          .finally(() => this.pending.delete(reject));
      };
      if (this.state === 'connected') return run();
      const stop = this.onBack(() => (stop(), run()));
    });
  }

  /** Calls `run` each time that the session has been taken over by a new connection. Returns how to end that. */
  onBack(run: () => void): () => void {
    this.back.add(run);
    return () => this.back.delete(run);
  }

  close(): Promise<void> {
    this.end();
    return new Promise((done) => {
      this.janus.destroy({ cleanupHandles: true, success: done, error: () => done() });
    });
  }

  /** The connection is gone: takes the session over with a new one, as long as the server keeps it. */
  async connectionLost(why: string): Promise<void> {
    if (this.state !== 'connected') return;
    if (isOver(this.id)) {
      this.end();
      return this.lost(why);
    }
    let reason = why;
    this.state = 'reclaiming';
    this.fail(new Error('The connection to the server was lost. Try again.'));
    reconnecting('session', true);
    const deadline = Date.now() + RECLAIM * 1000;
    for (let pause = 250; Date.now() < deadline; pause = Math.min(2 * pause, 3_000)) {
      const refused = await this.claim();
      if ((this.state as State) === 'over') return reconnecting('session', false);
      if (refused === null) {
        this.state = 'connected';
        reconnecting('session', false);
        for (const run of [...this.back]) run();
        return;
      }
      if (refused.startsWith('No such session')) {
        reason = refused;
        break;
      }
      await new Promise((done) => setTimeout(done, pause));
    }
    reconnecting('session', false);
    this.end();
    this.lost(reason);
  }

  /** No media comes: asks the server whether it is there. A connection that is dead in silence is replaced. */
  doubt(): void {
    if (this.state !== 'connected' || this.transport !== 'WebSocket' || socket?.readyState !== WebSocket.OPEN) return;
    const asked = performance.now();
    socket.send(JSON.stringify({ janus: 'keepalive', transaction: 'doubt', session_id: this.janus.getSessionId(), ...this.shown }));
    setTimeout(() => heard < asked && void this.connectionLost('The server does not answer'), DOUBT);
  }

  /** Opens a connection and claims the session. Returns why that failed, or null. */
  private claim(): Promise<string | null> {
    return new Promise((done) => {
      const old = socket;
      const failed = (reason: string): void => {
        if (socket !== old) socket?.close();
        done(reason);
      };
      const timer = setTimeout(() => failed('It takes too long'), ATTEMPT);
      const settle = (run: () => void) => () => (clearTimeout(timer), run());
      this.janus.reconnect({ success: settle(() => done(null)), error: (reason: unknown) => settle(() => failed(String(reason)))() });
      if (old !== socket) old?.close();
    });
  }

  /** Destroys the session when the page goes away, so that others need not see its user for `RECLAIM` seconds more. */
  private readonly leave = (): void => {
    const request = { janus: 'destroy', transaction: 'leave', ...this.shown };
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ...request, session_id: this.janus.getSessionId() }));
    else navigator.sendBeacon(`${apiPath()}/${this.id}`, JSON.stringify(request));
  };

  private readonly networkChanged = (): void => {
    if (this.transport === 'WebSocket') void this.connectionLost('The network has changed');
  };

  private fail(error: Error): void {
    for (const reject of [...this.pending]) reject(error);
    this.pending.clear();
  }

  private end(): void {
    this.state = 'over';
    clearInterval(this.looking);
    this.iceServers.stop();
    this.back.clear();
    window.removeEventListener('online', this.networkChanged);
    window.removeEventListener('pagehide', this.leave);
    this.fail(new Error('The session with the server is over.'));
  }
}

function attachError(reason: string): Error {
  if (!/^Ooops: 40[35] /.test(reason)) return new Error(reason);
  // After a reload the user can enter another one.
  forgetAccess();
  return new AccessDenied('What you entered does not open this page on this server. Reload it to enter another token.');
}

// A Janus API session with this server, by janus.js: over WebSocket where it can be had, else over HTTP long poll.
import Janus, { type JanusJS } from 'janus-gateway';
import adapter from 'webrtc-adapter';
import { access, AccessDenied, askAccess, forgetAccess, keepAccess, type Access } from './access';
import { IceServers } from './ice-servers';

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

/** The path of the Janus API, which the server writes into its pages. */
export function apiPath(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="portunus-api"]')?.content ?? '/janus';
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
  const { newWebSocket } = dependencies;
  dependencies.newWebSocket = (server, protocol) => (socket = newWebSocket(server, protocol));
  return new Promise((done) => {
    Janus.init({ debug: [], dependencies, callback: () => done() });
  });
}

function create(transport: Transport, shown: Access, lost: (why: string) => void): Promise<Session> {
  return new Promise((resolve, reject) => {
    let settled = false;
    const iceServers = new IceServers();
    const janus = new Janus({
      server: servers(transport),
      iceServers: iceServers.list,
      ...shown,
      // janus.js destroys the session when the page goes away, so that the server need not wait for the time-out.
      destroyOnUnload: true,
      success: () => {
        settled = true;
        // They are there before the first PeerConnection is.
        const asked = iceServers.follow(`${apiPath()}/${janus.getSessionId()}`, shown);
        void asked.then(() => resolve(new Session(janus, iceServers)));
      },
      error: (reason: unknown) => {
        const text = String(reason);
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

export class Session {
  constructor(
    private readonly janus: Janus,
    private readonly iceServers: IceServers,
  ) {}

  get transport(): 'WebSocket' | 'HTTP' {
    return this.janus.getServer().startsWith('ws') ? 'WebSocket' : 'HTTP';
  }

  /** Its id. */
  get id(): string {
    return String(this.janus.getSessionId());
  }

  attach(plugin: string, callbacks: JanusJS.PluginCallbacks): Promise<Handle> {
    return new Promise((success, reject) => {
      this.janus.attach({ ...callbacks, plugin, success, error: (reason) => reject(attachError(reason)) });
    });
  }

  close(): Promise<void> {
    this.iceServers.stop();
    return new Promise((done) => {
      this.janus.destroy({ cleanupHandles: true, success: done, error: () => done() });
    });
  }
}

function attachError(reason: string): Error {
  if (!/^Ooops: 40[35] /.test(reason)) return new Error(reason);
  // After a reload the user can enter another one.
  forgetAccess();
  return new AccessDenied('What you entered does not open this page on this server. Reload it to enter another token.');
}

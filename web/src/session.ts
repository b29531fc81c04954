// A Janus API session with this server, by janus.js: over WebSocket where it can be had, else over HTTP long poll.
import Janus, { type JanusJS } from 'janus-gateway';
import adapter from 'webrtc-adapter';

export type Transport = 'auto' | 'ws' | 'http';
export type Jsep = JanusJS.JSEP;
export type Handle = JanusJS.PluginHandle;
export type Track = JanusJS.TrackOption;

export interface ServerInfo {
  name: string;
  version_string: string;
  'server-name'?: string;
  'data_channels'?: boolean;
  ipv6?: boolean;
  'ice-lite'?: boolean;
  'full-trickle'?: boolean;
  plugins?: Record<string, { name: string; version_string: string; description: string }>;
  transports?: Record<string, { name: string }>;
}

/** Addresses of the Janus API on the host that served this page, in the order in which they are tried. */
function servers(transport: Transport): string[] {
  const { protocol, host } = window.location;
  const ws = `${protocol === 'https:' ? 'wss:' : 'ws:'}//${host}/janus`;
  const http = `${protocol}//${host}/janus`;
  if (transport === 'ws') return [ws];
  return transport === 'http' ? [http] : [ws, http];
}

/** What the server says about itself, without a session. */
export async function serverInfo(): Promise<ServerInfo> {
  const response = await fetch('/janus/info', { cache: 'no-store' });
  if (!response.ok) throw new Error(`The server answered with status ${response.status}`);
  return response.json() as Promise<ServerInfo>;
}

/** Opens a session; `lost` is called once if it goes away later. */
export async function connect(transport: Transport, lost: (why: string) => void): Promise<Session> {
  await new Promise<void>((done) => {
    Janus.init({
      debug: [],
      dependencies: Janus.useDefaultDependencies({ adapter }),
      callback: () => done(),
    });
  });
  return new Promise((resolve, reject) => {
    let settled = false;
    const janus = new Janus({
      server: servers(transport),
      // janus.js destroys the session when the page goes away, so that the server need not wait for the time-out.
      destroyOnUnload: true,
      success: () => {
        settled = true;
        resolve(new Session(janus));
      },
      error: (reason: unknown) => {
        if (settled) lost(String(reason));
        else reject(new Error(String(reason)));
        settled = true;
      },
    });
  });
}

export class Session {
  constructor(private readonly janus: Janus) {}

  get transport(): 'WebSocket' | 'HTTP' {
    return this.janus.getServer().startsWith('ws') ? 'WebSocket' : 'HTTP';
  }

  attach(plugin: string, callbacks: JanusJS.PluginCallbacks): Promise<Handle> {
    return new Promise((success, reject) => {
      this.janus.attach({ ...callbacks, plugin, success, error: (reason) => reject(new Error(reason)) });
    });
  }

  close(): Promise<void> {
    return new Promise((done) => {
      this.janus.destroy({ cleanupHandles: true, success: done, error: () => done() });
    });
  }
}

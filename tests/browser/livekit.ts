// Participants of LiveKit in pages: the SDK from npm as it is, and access tokens.
import type { Page } from '@playwright/test';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { startServer } from '../server/index.mjs';
import { freeTcpPort } from '../server/ports.mjs';
import type { Server } from '../server/portunus.mjs';
import { BLANK } from './in-page';

const folder = dirname(createRequire(import.meta.url).resolve('livekit-client'));

/** The SDK's build for script tags: `LivekitClient`. */
const SDK = join(folder, 'livekit-client.umd.js');

export const KEY = 'devkey';
export const LIVEKIT_SECRET = 'secret-of-32-bytes-for-the-tests';

export interface LiveKitServer extends Server {
  /** Where its LiveKit door is: `ws://127.0.0.1:PORT`. */
  livekit: string;
}

/** Starts a server with a LiveKit door. */
export async function startLiveKit(config = '', keys = ''): Promise<LiveKitServer> {
  const port = await freeTcpPort();
  const section = `[livekit]\nkeys = { ${KEY} = "${LIVEKIT_SECRET}" }\nbind = ["127.0.0.1"]\nport = ${port}\n${keys}\n`;
  const server = await startServer({ config: `${section}${config}` });
  return Object.assign(server, { livekit: `ws://127.0.0.1:${port}` });
}

/** An access token for `room` with more or other grants. */
export function token(identity: string, room: string, video: object = {}, claims: object = {}, secret = LIVEKIT_SECRET): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = Math.floor(Date.now() / 1000);
  const body = {
    iss: KEY,
    sub: identity,
    name: identity.toUpperCase(),
    nbf: now - 5,
    exp: now + 3600,
    video: { roomJoin: true, room, ...video },
    ...claims,
  };
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(body)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Opens a page with the SDK. */
export async function openSdk(page: Page, server: LiveKitServer): Promise<void> {
  await page.goto(`${server.base}${BLANK}`);
  await page.addScriptTag({ path: SDK });
}

/** Has the next room of the page be encrypted end to end with this key. */
export async function encrypt(page: Page, key: string): Promise<void> {
  await page.evaluate(
    async ([script, key]) => {
      const { ExternalE2EEKeyProvider } = (window as any).LivekitClient;
      const keyProvider = new ExternalE2EEKeyProvider();
      await keyProvider.setKey(key);
      const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
      Object.assign(window, { moreOptions: { encryption: { keyProvider, worker } } });
    },
    [readFileSync(join(folder, 'livekit-client.e2ee.worker.js'), 'utf8'), key] as const,
  );
}

/** Connects `window.room`, of which `window.events` keeps what happens. */
export async function connect(page: Page, server: LiveKitServer, ofToken: string, room: object = {}, options: object = {}): Promise<void> {
  await page.evaluate(
    async ([url, ofToken, roomOptions, options]) => {
      const { Room, RoomEvent } = (window as any).LivekitClient;
      const room = new Room({ ...(roomOptions as object), ...(window as any).moreOptions });
      const events: unknown[][] = [];
      Object.assign(window, { room, events });
      for (const name of Object.values(RoomEvent) as string[]) {
        room.on(name, (...values: any[]) => events.push([name, ...values.map((it) => it?.identity ?? it?.trackSid ?? it?.sid ?? (typeof it === 'object' ? '' : it))]));
      }
      room.on('trackSubscribed', (track: any) => document.body.appendChild(track.attach()));
      await room.connect(url as string, ofToken as string, options);
    },
    [server.livekit, ofToken, room, options] as const,
  );
}

/** Evaluates an expression in which `room` is the page's room. */
export function inRoom<T>(page: Page, expression: string): Promise<T> {
  return page.evaluate(`(async () => (${expression}))()`) as Promise<T>;
}

/** What the page receives: the participants with their tracks. */
export function seen(page: Page): Promise<string[]> {
  return inRoom(
    page,
    `[...room.remoteParticipants.values()].flatMap((it) => [...it.trackPublications.values()].map((track) =>
      [it.identity, track.source, track.isSubscribed ? 'subscribed' : 'known', track.isMuted ? 'muted' : 'on'].join(' '))).sort()`,
  );
}

// Rooms for browser tests: a server that has some, users on the page, and looks at what each receives.
import type { BrowserContext, Locator, Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, test as base } from './fixtures';
import type { Server } from '../server/portunus.mjs';
import type { Stat } from './stats';

export const SECRET = 's3cret';
export const PIN = '4321';

/** Rooms that the server has from the start; tests that count heads make one of their own. */
export const ROOMS = { demo: 1001, locked: 1002, small: 1003, layers: 1004, svc: 1005 };

type Options = Record<string, string | number | boolean>;

const ALL: Options = { publishers: 8, secret: SECRET, notify_joining: true };

const OPTIONS: Options[] = [
  { room: ROOMS.demo, description: 'Demo', videocodec: 'vp8,h264' },
  { room: ROOMS.locked, description: 'Locked', pin: PIN },
  { room: ROOMS.small, description: 'Small', publishers: 1 },
  { room: ROOMS.layers, description: 'Layers', videocodec: 'vp8' },
  { room: ROOMS.svc, description: 'Layers of one stream', videocodec: 'vp9,av1' },
];

/** As tables of the configuration. */
const CONFIG = OPTIONS.map(
  (options) => `\n[[videoroom.room]]\n${Object.entries({ ...ALL, ...options }).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join('')}`,
).join('');

export const test = base.extend<{}, {}>({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2, config: CONFIG });
      if (isReference) for (const options of OPTIONS) await ask(server, { request: 'create', ...ALL, ...options });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
});

/** Asks a plugin something that it answers at once, on a handle of its own. */
export async function ask(server: Server, body: object, plugin = 'janus.plugin.videoroom'): Promise<Record<string, any>> {
  const post = async (path: string, message: object) => {
    const answer = await fetch(`${server.http}${path}`, { method: 'POST', body: JSON.stringify({ transaction: 't', ...message }) });
    return answer.json();
  };
  const { data: session } = await post('', { janus: 'create' });
  const { data: handle } = await post(`/${session.id}`, { janus: 'attach', plugin });
  const { plugindata } = await post(`/${session.id}/${handle.id}`, { janus: 'message', body });
  await post(`/${session.id}`, { janus: 'destroy' });
  return plugindata.data;
}

/** Opens the page in a new tab and joins as a user would. */
export async function enter(context: BrowserContext, id: number, name: string, query = 'size=320x180&simulcast=0'): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`/videoroom.html?room=${id}&name=${name}&details=1&panels=people,chat&${query}`);
  await page.getByTestId('join').click();
  await expect(page.getByTestId('status')).toContainText(`In the room as ${name}`);
  return page;
}

/** Where somebody's picture is shown. */
export function tile(page: Page, name: string): Locator {
  return page.getByTestId(`tile-${name}`);
}

/** Waits until somebody's picture moves. */
export async function seen(page: Page, name: string): Promise<void> {
  const frames = () =>
    tile(page, name).getByTestId('video').evaluate(async (element) => {
      const video = element as HTMLVideoElement;
      const shown = video.getVideoPlaybackQuality().totalVideoFrames;
      if (shown > 0) return shown;
      // Firefox does not count what it shows of a stream, only what it decodes.
      const track = (video.srcObject as MediaStream | null)?.getVideoTracks()[0];
      const connections = (window as any).peerConnections as RTCPeerConnection[];
      const receiver = connections.flatMap((one) => one.getReceivers()).find((one) => one.track === track);
      const stats = receiver ? [...(await receiver.getStats()).values()] : [];
      return (stats.find((stat) => stat.type === 'inbound-rtp')?.framesDecoded ?? 0) as number;
    });
  await expect.poll(frames, { message: `${name} is seen` }).toBeGreaterThan(0);
  const before = await frames();
  await expect.poll(frames, { message: `${name} moves` }).toBeGreaterThan(before + 10);
}

/** The width of a picture as it is received. */
export function widthOf(page: Page, name: string): Promise<number> {
  return tile(page, name).getByTestId('video').evaluate((video) => (video as HTMLVideoElement).videoWidth);
}

/** What all PeerConnections that are not closed receive or send. */
export function streams(page: Page, type: 'inbound-rtp' | 'outbound-rtp', kind: 'audio' | 'video'): Promise<Stat[]> {
  return page.evaluate(
    async ([type, kind]) => {
      const made = (window as any).peerConnections as RTCPeerConnection[];
      const reports = await Promise.all(made.filter((one) => one.connectionState !== 'closed').map((one) => one.getStats()));
      return reports.flatMap((report) => [...report.values()]).filter((stat) => stat.type === type && stat.kind === kind);
    },
    [type, kind] as const,
  );
}

/** How much a counter grows in a moment. */
export async function growth(counter: () => Promise<number>): Promise<number> {
  const before = await counter();
  await new Promise((done) => setTimeout(done, 300));
  return (await counter()) - before;
}

/** How many PeerConnections of a page are not closed. */
export function open(page: Page): Promise<number> {
  return page.evaluate(
    () => ((window as any).peerConnections as RTCPeerConnection[]).filter((one) => one.connectionState !== 'closed').length,
  );
}

export { expect };

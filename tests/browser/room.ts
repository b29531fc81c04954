// Rooms for browser tests: a server that has some, users on the page, and looks at what each receives.
import type { BrowserContext, Locator, Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, test as base } from './fixtures';
import type { Stat } from './stats';

export const ADMIN_KEY = 'k3y';
export const SECRET = 's3cret';
export const PIN = '4321';

const room = (id: number, keys: string, publishers = 8) => `
[[videoroom.room]]
room = ${id}
publishers = ${publishers}
secret = "${SECRET}"
notify_joining = true
${keys}
`;

/** Rooms that the server has from the start; tests that count heads make one of their own. */
export const ROOMS = { demo: 1001, locked: 1002, small: 1003, layers: 1004, svc: 1005 };

const CONFIG =
  room(ROOMS.demo, 'description = "Demo"\nvideocodec = "vp8,h264"') +
  room(ROOMS.locked, `description = "Locked"\npin = "${PIN}"`) +
  room(ROOMS.small, 'description = "Small"', 1) +
  room(ROOMS.layers, 'description = "Layers"\nvideocodec = "vp8"') +
  room(ROOMS.svc, 'description = "Layers of one stream"\nvideocodec = "vp9,av1"');

export const test = base.extend<{}, {}>({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2, config: CONFIG });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
});

test.skip(isReference, 'needs rooms of its own');

/** Opens the page in a new tab and joins as a user would. */
export async function enter(context: BrowserContext, id: number, name: string, query = 'size=320x180&simulcast=0'): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`/videoroom.html?room=${id}&name=${name}&${query}`);
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
    tile(page, name).getByTestId('video').evaluate((video) => (video as HTMLVideoElement).getVideoPlaybackQuality().totalVideoFrames);
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

/** How many PeerConnections of a page are not closed. */
export function open(page: Page): Promise<number> {
  return page.evaluate(
    () => ((window as any).peerConnections as RTCPeerConnection[]).filter((one) => one.connectionState !== 'closed').length,
  );
}

export { expect };

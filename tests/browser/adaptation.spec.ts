// Bandwidth adaptation with real browsers: one publishes simulcast, and of two that watch one is behind a link that
// becomes slow for a while.
import { chromium, type Browser, type Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { canMakeNamespaces, makeNamespace } from '../server/namespace.mjs';
import type { Namespace } from '../server/namespace.mjs';
import { startPortunus } from '../server/portunus.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, test } from './fixtures';
import { blankPage } from './in-page';

const ROOM = `[[videoroom.room]]\nroom = 1\nvideocodec = "vp8"\nbitrate = 3000000\n`;

test.skip(isReference || !canMakeNamespaces(), 'it needs a server of ours, root and network namespaces');
test.setTimeout(240_000);

let namespace: Namespace;
let server: Server;
let inside: Browser;

test.beforeAll(async ({ launchOptions }) => {
  namespace = makeNamespace();
  server = await startPortunus({ workers: 2, config: ROOM });
  inside = await chromium.launch({ ...launchOptions, executablePath: namespace.wrap(launchOptions.executablePath ?? 'chromium') });
});

test.afterAll(async () => {
  await inside?.close();
  await server?.stop();
  namespace?.remove();
});

/** Watches the feed as `window.viewer`. */
async function watch(page: Page, address: string, feed: number): Promise<void> {
  await page.evaluate(
    `(async () => {
      window.viewer = await Client.open('${address}', 'janus.plugin.videoroom');
      await viewer.subscribe({ request: 'join', ptype: 'subscriber', room: 1, streams: [{ feed: ${feed}, mid: '0' }] });
    })()`,
  );
}

const width = async (page: Page) => ((await page.evaluate(`viewer.picture('0')`)) as { width: number }).width;
const frames = async (page: Page) => ((await page.evaluate(`viewer.picture('0')`)) as { frames: number }).frames;
/** The encodings that the viewer was told of. */
const told = (page: Page) =>
  page.evaluate(`viewer.messages.map((one) => one.substream).filter((one) => one !== undefined)`) as Promise<number[]>;

test('a viewer whose link becomes slow gets a smaller picture, and the large one when it is over; the other is untouched', async ({
  context,
  clientScript,
}) => {
  namespace.limit(20_000);
  const publisher = await context.newPage();
  await blankPage(publisher, server, clientScript);
  const feed = (await publisher.evaluate(
    `(async () => {
      window.one = await Client.open('${server.ws}', 'janus.plugin.videoroom');
      const { id } = (await one.ask({ request: 'join', ptype: 'publisher', room: 1 })).data;
      await one.negotiate([{ type: 'video', capture: { width: 1280, height: 720 }, recv: false, simulcast: true }], { request: 'publish' });
      return id;
    })()`,
  )) as number;
  await expect.poll(() => publisher.evaluate(`one.up`)).toBe(true);

  const near = await context.newPage();
  await blankPage(near, server, clientScript);
  await watch(near, server.ws, feed);
  const far = await inside.newPage();
  await blankPage(far, { ...server, base: await namespace.reach(server.base) }, clientScript);
  await watch(far, await namespace.reach(server.ws), feed);

  // An encoder without hardware needs its time to get to the largest picture.
  await expect.poll(() => width(near), { timeout: 60_000, message: 'near, at first' }).toBe(1280);
  await expect.poll(() => width(far), { timeout: 30_000, message: 'far, at first' }).toBe(1280);
  const nearTold = (await told(near)).length;

  namespace.limit(250);
  await expect.poll(async () => (await told(far)).at(-1), { timeout: 30_000, message: 'far is told of a smaller one' }).toBeLessThan(2);
  await expect.poll(() => width(far), { timeout: 30_000, message: 'far, while the link is slow' }).toBeLessThan(700);
  const moved = await frames(far);
  await expect.poll(() => frames(far), { timeout: 15_000, message: 'far moves on' }).toBeGreaterThan(moved + 20);
  expect(await width(near), 'near, meanwhile').toBe(1280);

  namespace.limit(20_000);
  await expect.poll(() => width(far), { timeout: 40_000, message: 'far, in the end' }).toBe(1280);
  await expect.poll(async () => (await told(far)).at(-1), { message: 'far is told of the large one' }).toBe(2);
  expect(await width(near), 'near, in the end').toBe(1280);
  expect((await told(near)).slice(nearTold).filter((one) => one < 2), 'near went down').toEqual([]);
});

// Audio rooms with janus.js, unmodified, used as Janus's demo does.
import type { BrowserContext, Page } from '@playwright/test';
import { buildSync } from 'esbuild';
import { isReference } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { hears, loudness, TONES } from './audio';
import { expect, type Name, ROOMS, test as base } from './audioroom';
import { blankPage } from './in-page';

const test = base.extend<{}, { demoScript: string }>({
  demoScript: [
    async ({}, use) => {
      const entryPoints = [new URL('audio-demo.ts', import.meta.url).pathname];
      await use(buildSync({ entryPoints, bundle: true, write: false, format: 'iife' }).outputFiles[0].text);
    },
    { scope: 'worker' },
  ],
});
test.skip(isReference, 'needs rooms of its own');

/** A tab with the demo in it, which has a tone. */
async function open(context: BrowserContext, server: Server, script: string, name: Name, transport: 'http' | 'ws' = 'ws', stereo = false): Promise<Page> {
  const page = await context.newPage();
  await blankPage(page, server, script, `?tone=${TONES[name]}`);
  await page.evaluate(`(async () => { window.demo = await Demo.open(${JSON.stringify(server[transport])}, ${stereo}); })()`);
  return page;
}

const run = <T>(page: Page, expression: string): Promise<T> => page.evaluate(`(async () => (${expression}))()`) as Promise<T>;

/** Joins, and waits until the media is up. */
async function join(page: Page, room: number, name: string): Promise<number> {
  await run(page, `demo.join(${room}, '${name}')`);
  await expect.poll(() => run(page, 'demo.up'), { message: `${name} is up` }).toBe(true);
  return run(page, 'demo.id');
}

const send = (page: Page, body: object) => run<void>(page, `demo.send(${JSON.stringify(body)})`);
const ask = (page: Page, body: object) => run<Record<string, any>>(page, `demo.ask(${JSON.stringify(body)})`);
const seen = (page: Page, id: number) => run<Record<string, any> | null>(page, `demo.people.get(${id}) ?? null`);

test('as in the demo: joining, muting, talking, places, rooms that change, lists', async ({ context, server, demoScript }) => {
  const ann = await open(context, server, demoScript, 'ann', 'ws', true);
  const ben = await open(context, server, demoScript, 'ben', 'http', true);
  const cleo = await open(context, server, demoScript, 'cleo', 'ws', true);
  await join(ann, ROOMS.places, 'Ann');
  const benId = await join(ben, ROOMS.places, 'Ben');
  const cleoId = await join(cleo, ROOMS.places, 'Cleo');
  await hears(ann, 'ben', 'cleo');
  await hears(ben, 'ann', 'cleo');
  await hears(cleo, 'ann', 'ben');
  await expect.poll(() => seen(ann, benId)).toMatchObject({ display: 'Ben', setup: true, muted: false, spatial_position: 50 });
  await expect.poll(() => run(ann, 'demo.talking')).toContain(`talking ${benId}`);
  await expect.poll(() => run(ann, 'demo.media')).toContain('audio true');

  await send(ben, { request: 'configure', muted: true });
  await expect.poll(() => seen(ann, benId)).toMatchObject({ muted: true });
  await hears(ann, 'cleo');
  await send(ben, { request: 'configure', muted: false });
  await hears(ann, 'ben', 'cleo');

  // The slider.
  await send(ben, { request: 'configure', spatial_position: 0 });
  await send(cleo, { request: 'configure', spatial_position: 100 });
  await expect.poll(() => seen(ann, cleoId)).toMatchObject({ spatial_position: 100 });
  const side = async (name: Name) => {
    const [left, right] = (await loudness(ann))[name] ?? [0, 0];
    return left - right;
  };
  await expect.poll(() => side('ben')).toBeGreaterThan(15);
  await expect.poll(() => side('cleo')).toBeLessThan(-15);

  // The connection goes along to another room.
  await send(ben, { request: 'changeroom', room: ROOMS.demo, display: 'Benjamin' });
  await expect.poll(() => run(ben, 'demo.room')).toBe(ROOMS.demo);
  expect(await run(ben, '[...demo.people.keys()]')).toEqual([]);
  await expect.poll(() => run(ann, 'demo.left')).toEqual([benId]);
  await hears(ann, 'cleo');
  await hears(ben);
  await send(ann, { request: 'changeroom', room: ROOMS.demo, display: 'Ann' });
  await hears(ann, 'ben');
  await hears(ben, 'ann');
  await hears(cleo);
  const listed = await ask(cleo, { request: 'listparticipants', room: ROOMS.demo });
  expect(listed['participants'].map((one: any) => one.display).sort()).toEqual(['Ann', 'Benjamin']);
});

test('a connection is restarted, kept while somebody is out, and ends with the room', async ({ context, server, demoScript }) => {
  const ann = await open(context, server, demoScript, 'ann');
  const ben = await open(context, server, demoScript, 'ben', 'http');
  const { room } = await ask(ann, { request: 'create', sampling_rate: 16_000, secret: 's' });
  expect((await ask(ben, { request: 'exists', room }))['exists']).toBe(true);
  await join(ann, room, 'Ann');
  const benId = await join(ben, room, 'Ben');
  await hears(ann, 'ben');
  const ufrag = () => run<string>(ben, `demo.handle.webrtcStuff.pc.remoteDescription.sdp.match(/a=ice-ufrag:(\\S+)/)[1]`);
  const before = await ufrag();
  await run(ben, 'demo.restart()');
  await expect.poll(ufrag).not.toBe(before);
  await hears(ben, 'ann');
  await hears(ann, 'ben');

  await send(ben, { request: 'leave' });
  await expect.poll(() => run(ann, 'demo.left')).toEqual([benId]);
  await hears(ann);
  await run(ben, `demo.join(${room}, 'Ben')`);
  await hears(ann, 'ben');
  await hears(ben, 'ann');

  expect(await ask(ann, { request: 'destroy', room, secret: 's' })).toMatchObject({ audiobridge: 'destroyed' });
  for (const page of [ann, ben]) {
    await expect.poll(() => run(page, 'demo.isDestroyed')).toBe(true);
    await expect.poll(() => run(page, 'demo.up')).toBe(false);
    await run(page, 'demo.destroy()');
  }
});

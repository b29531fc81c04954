// The video room with janus.js as applications use it: one PeerConnection for each feed or for all, renegotiated.
import type { Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { blankPage } from './in-page';
import { ask, enter, expect, growth, ROOMS, SECRET, test } from './room';

/** Evaluates statements in which `server`, `room` and the clients of former ones (`window.x`) are known. */
async function run<T>(page: Page, server: Server, body: string): Promise<T> {
  return page.evaluate(`(async () => { const server = ${JSON.stringify(server.ws)}, room = ${ROOMS.demo}; ${body} })()`) as Promise<T>;
}

/** Publishes a drawn picture as `window.NAME`; its id is `NAME.id`. */
async function publish(page: Page, server: Server, name: string): Promise<void> {
  await run(
    page,
    server,
    `const one = window.${name} = await Client.open(server, 'janus.plugin.videoroom');
    const joined = (await one.ask({ request: 'join', ptype: 'publisher', room, display: '${name}' })).data;
    one.id = joined.id;
    one.joined = joined;
    one.answer = await one.negotiate(
      [{ type: 'video', capture: picture(), recv: false }, { type: 'data' }],
      { request: 'publish' });`,
  );
  await expect.poll(() => page.evaluate(`${name}.up`)).toBe(true);
}

/** Waits until the picture on a mid of `window.NAME` moves, and has this width. */
async function moves(page: Page, name: string, mid: string, width = 320): Promise<void> {
  const look = () => page.evaluate(`${name}.picture('${mid}')`) as Promise<{ frames: number; width: number }>;
  await expect.poll(async () => (await look()).width, { message: `width of ${name}, mid ${mid}` }).toBe(width);
  const before = (await look()).frames;
  await expect.poll(async () => (await look()).frames, { message: `frames of ${name}, mid ${mid}` }).toBeGreaterThan(before + 10);
}

const directions = (page: Page, name: string) => page.evaluate(`${name}.directions()`);

test('one PeerConnection for all feeds: they come, go and come again', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await publish(page, server, 'ann');
  await publish(page, server, 'ben');
  await expect.poll(() => page.evaluate(`ann.messages.flatMap((one) => one.publishers ?? []).map((one) => one.display)`)).toContain('ben');
  await run(page, server, `window.viewer = await Client.open(server, 'janus.plugin.videoroom');
    await viewer.subscribe({ request: 'join', ptype: 'subscriber', room, streams: [{ feed: ann.id, mid: '0' }] });`);
  await moves(page, 'viewer', '0');

  const updated = await run<any>(page, server, `return viewer.subscribe({ request: 'subscribe', streams: [{ feed: ben.id, mid: '0' }] });`);
  expect(updated.streams.map((one: any) => one.feed_display)).toEqual(['ann', 'ben']);
  await moves(page, 'viewer', '1');
  await moves(page, 'viewer', '0');

  // One goes: its line is told to be inactive without being asked for, and the other's goes on.
  await run(page, server, `await ann.ask({ request: 'unpublish' });`);
  await expect.poll(() => directions(page, 'viewer')).toEqual({ 0: 'inactive', 1: 'recvonly' });
  await moves(page, 'viewer', '1');
  await expect.poll(() => page.evaluate(`ben.messages.some((one) => one.unpublished === ann.id)`)).toBe(true);

  // It publishes again, wider: its line is used again, and there is none more.
  await run(page, server, `await ann.negotiate([{ type: 'video', capture: picture(480, 270), recv: false }], { request: 'publish' });`);
  await expect.poll(() => page.evaluate(`ben.messages.some((one) => one.videoroom === 'event' && one.publishers?.[0]?.id === ann.id)`)).toBe(true);
  const exchanged = await run<any>(page, server, `return viewer.subscribe({ request: 'update', subscribe: [{ feed: ann.id }], unsubscribe: [{ feed: ben.id }] });`);
  expect(exchanged.error).toBeUndefined();
  await moves(page, 'viewer', '0', 480);
  expect(await directions(page, 'viewer')).toEqual({ 0: 'recvonly', 1: 'inactive' });
});

test('a publisher adds a picture and takes it away; a pause holds all', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await publish(page, server, 'ann');
  await publish(page, server, 'ben');
  await run(page, server, `window.viewer = await Client.open(server, 'janus.plugin.videoroom');
    await viewer.subscribe({ request: 'join', ptype: 'subscriber', room, feed: ann.id });
    await ann.negotiate([{ type: 'video', capture: picture(480, 270), recv: false, add: true }],
      { request: 'configure', descriptions: [{ mid: '2', description: 'Slides' }] });`);
  const told = () => page.evaluate(`ben.messages.filter((one) => one.publishers?.[0]?.id === ann.id).at(-1)?.publishers[0].streams.at(-1)`);
  await expect.poll(told).toMatchObject({ type: 'video', mid: '2', description: 'Slides', codec: 'vp8' });
  await run(page, server, `await viewer.subscribe({ request: 'subscribe', streams: [{ feed: ann.id, mid: '2' }] });`);
  await moves(page, 'viewer', '2', 480);
  await moves(page, 'viewer', '0');

  await run(page, server, `await viewer.ask({ request: 'pause' });`);
  const frames = async (mid: string) => ((await page.evaluate(`viewer.picture('${mid}')`)) as { frames: number }).frames;
  await expect.poll(() => growth(() => frames('0'))).toBe(0);
  await run(page, server, `await viewer.ask({ request: 'start' });`);
  await moves(page, 'viewer', '0');

  await run(page, server, `await ann.negotiate([{ type: 'video', mid: '2', remove: true, recv: false }], { request: 'configure' });`);
  await expect.poll(told).toEqual({ type: 'video', mindex: 2, mid: '2', disabled: true });
  await run(page, server, `await viewer.subscribe({ request: 'unsubscribe', streams: [{ feed: ann.id, mid: '2' }] });`);
  expect(await directions(page, 'viewer')).toMatchObject({ 2: 'inactive' });
  await moves(page, 'viewer', '0');
});

for (const codec of ['vp8', 'h264', 'av1'] as const) {
  test(`a viewer is switched to another feed and back without a negotiation, ${codec}`, async ({ page, server, clientScript }) => {
    await blankPage(page, server, clientScript);
    const room = codec === 'av1' ? ROOMS.svc : ROOMS.demo;
    const also = `const room = ${room};`;
    for (const [name, width] of [['ann', 320], ['ben', 480]] as const) {
      await page.evaluate(`(async () => { ${also}
        const one = window.${name} = await Client.open(${JSON.stringify(server.ws)}, 'janus.plugin.videoroom');
        one.id = (await one.ask({ request: 'join', ptype: 'publisher', room })).data.id;
        one.answer = await one.negotiate([{ type: 'video', capture: picture(${width}, ${(width * 9) / 16}), recv: false }],
          { request: 'publish', videocodec: '${codec}' });
      })()`);
      expect(await page.evaluate(`${name}.answer.video_codec`)).toBe(codec);
      await expect.poll(() => page.evaluate(`${name}.up`)).toBe(true);
    }
    await page.evaluate(`(async () => { ${also}
      window.viewer = await Client.open(${JSON.stringify(server.ws)}, 'janus.plugin.videoroom');
      await viewer.subscribe({ request: 'join', ptype: 'subscriber', room, streams: [{ feed: ann.id }] });
    })()`);
    await moves(page, 'viewer', '0', 320);
    for (const [name, width] of [['ben', 480], ['ann', 320]] as const) {
      const { data } = (await page.evaluate(
        `viewer.ask({ request: 'switch', streams: [{ feed: ${name}.id, mid: '0', sub_mid: '0' }] })`,
      )) as any;
      expect(data).toMatchObject({ switched: 'ok', changes: 1 });
      await moves(page, 'viewer', '0', width);
    }
    expect(await page.evaluate(`viewer.messages.filter((one) => one.started === 'ok').length`)).toBe(1);
  });
}

test('joins, names and leaves are told to the others, in order', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await publish(page, server, 'ann');
  await publish(page, server, 'ben');
  expect(await page.evaluate(`ben.joined.publishers.map((one) => one.display)`)).toContain('ann');
  await run(page, server, `await ben.ask({ request: 'configure', display: 'benjamin' });
    await ben.ask({ request: 'leave' });`);
  const story = () =>
    page.evaluate(`ann.messages.map((one) =>
      one.joining?.id === ben.id ? 'joining' : one.publishers?.[0]?.id === ben.id ? 'publishes'
      : one.display === 'benjamin' && one.id === ben.id ? 'renamed' : one.unpublished === ben.id ? 'unpublished'
      : one.leaving === ben.id ? 'leaving' : '').filter(Boolean)`);
  // Janus leaves the PeerConnection of who has left open, and says nothing of it.
  const end = isReference ? ['leaving'] : ['unpublished', 'leaving'];
  await expect.poll(story).toEqual(['joining', 'publishes', 'renamed', ...end]);
  await run(page, server, `await ann.destroy();`);
});

test('VP9 with SVC goes from a room to the ports of a mountpoint, whose viewer chooses layers', async ({ page, context, server, clientScript }) => {
  test.skip(isReference, 'the reference chooses no layers of SVC in rooms');
  const STREAMING = 'janus.plugin.streaming';
  const video = { type: 'video', mid: 'v', port: 0, rtcpport: 0, pt: 98, codec: 'vp9', svc: true };
  const { stream } = await ask(server, { request: 'create', type: 'rtp', id: 7, media: [video] }, STREAMING);
  const ann = await enter(context, ROOMS.svc, 'Ann', 'size=1280x720&codec=vp9&svc=L3T3');
  const [port] = stream.ports;
  const publishers = async () => {
    const { participants } = await ask(server, { request: 'listparticipants', room: ROOMS.svc });
    return participants.filter((one: any) => one.publisher && one.display === 'Ann');
  };
  await expect.poll(publishers).toHaveLength(1);
  const [{ id }] = await publishers();
  const mid = await ann.evaluate(() => {
    const sections = ((window as any).peerConnections as RTCPeerConnection[]).flatMap((one) => one.getTransceivers());
    return sections.find((one) => one.sender.track?.kind === 'video')?.mid;
  });
  const streams = [{ mid, port: port.port, rtcp_port: port.rtcp_port }];
  const forward = { request: 'rtp_forward', room: ROOMS.svc, secret: SECRET, publisher_id: id, host: '127.0.0.1', streams };
  const forwarded = await ask(server, forward);
  expect(forwarded.forwarders, JSON.stringify(forwarded)).toHaveLength(1);
  await blankPage(page, server, clientScript);
  await page.evaluate(`(async () => {
    window.viewer = await Client.open('${server.ws}', '${STREAMING}');
    await viewer.watch({ id: 7 });
  })()`);
  const look = () => page.evaluate(`viewer.picture('v')`) as Promise<{ frames: number; width: number }>;
  for (const [layer, width] of [[0, 320], [2, 1280], [1, 640]]) {
    await page.evaluate(`viewer.handle.send({ message: { request: 'configure', spatial_layer: ${layer} } })`);
    await expect.poll(async () => (await look()).width, { message: `layer ${layer}`, timeout: 40_000 }).toBe(width);
    const { frames } = await look();
    await expect.poll(async () => (await look()).frames).toBeGreaterThan(frames + 10);
  }
  await ann.getByTestId('leave').click();
  await ask(server, { request: 'destroy', id: 7 }, STREAMING);
});

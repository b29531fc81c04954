// Janode's modules with media: an application's server speaks to ours by Janode, its browsers bring and show the media.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Page } from '@playwright/test';
import Janode from 'janode';
import Streaming from 'janode/plugins/streaming';
import VideoRoom from 'janode/plugins/videoroom';
import { expect, FIREFOX, test as base } from './fixtures';
import { blankPage } from './in-page';
import { PEERS, withSession } from './peers';

const { EVENT } = VideoRoom;

const test = base.extend<{ session: Record<string, any>; manager: Record<string, any> }, {}>({
  session: async ({ server }, use) => withSession(server, use),
  manager: async ({ session }, use) => use(await session.attach(VideoRoom)),
});

/** Joins and publishes the tracks (JavaScript of their list) of a page; gives the handle, once the media is up. */
async function publish(session: any, page: Page, room: number, name: string, tracks: string, encodings = 'undefined'): Promise<any> {
  const handle = await session.attach(VideoRoom);
  const joined = await handle.joinPublisher({ room, display: name });
  const up = once(handle, Janode.EVENT.HANDLE_WEBRTCUP);
  const jsep = await page.evaluate(`(async () => offer('${name}', ${tracks}, ${encodings}))()`);
  const published = await handle.publish({ jsep });
  await page.evaluate(([name, answer]) => (window as any).peers[name as string].setRemoteDescription(answer), [name, published.jsep] as const);
  await up;
  return Object.assign(handle, { joined, published });
}

/** Answers what a subscription was offered. */
async function start(viewer: any, page: Page, name: string, { jsep }: any): Promise<void> {
  const answer = await page.evaluate(([name, jsep]) => (window as any).answer(name, jsep), [name, jsep] as const);
  expect(await viewer.start({ jsep: answer })).toMatchObject({ started: 'ok' });
}

/** Waits until a picture moves and has this width. */
async function moves(page: Page, name: string, mid: string, width: number): Promise<void> {
  const look = () => page.evaluate(`seen('${name}', '${mid}')`) as Promise<{ frames: number; width: number }>;
  await expect.poll(async () => (await look()).width, { timeout: 30_000 }).toBe(width);
  const { frames } = await look();
  await expect.poll(async () => (await look()).frames).toBeGreaterThan(frames + 5);
}

test('Janode: publish, subscribe, update, switch, pause and leave, with events', FIREFOX, async ({ page, server, clientScript, session, manager }) => {
  await blankPage(page, server, clientScript);
  await page.addScriptTag({ content: PEERS });
  const { room } = await manager.create({ max_publishers: 6, talking_events: true, talking_packets_threshold: 10, talking_level_threshold: 60 });
  const ann = await publish(session, page, room, 'ann', `[await sound(), picture(320, 180)]`);
  expect(ann.published.streams.map((one: any) => one.codec)).toEqual(['opus', 'vp8']);
  // The fake microphone beeps.
  const [talking] = await once(ann, EVENT.VIDEOROOM_TALKING);
  expect(talking).toMatchObject({ room, feed: ann.joined.feed, talking: true, mid: '0' });

  const listed = once(ann, EVENT.VIDEOROOM_PUB_LIST);
  const ben = await publish(session, page, room, 'ben', `[picture(480, 270)]`);
  expect(ben.joined.publishers).toMatchObject([{ feed: ann.joined.feed, display: 'ann', audiocodec: 'opus', videocodec: 'vp8' }]);
  expect((await listed)[0]).toMatchObject({ room, publishers: [{ feed: ben.joined.feed, display: 'ben' }] });

  // Nobody listens at the port, which is no matter to a forwarder.
  const of = { room, feed: ann.joined.feed };
  const { forwarder } = await manager.startForward({ ...of, host: '127.0.0.1', video_port: 19_998 });
  expect(forwarder).toMatchObject({ host: '127.0.0.1', video_port: 19_998 });
  const { forwarders } = await manager.listForward({ room });
  expect(forwarders).toMatchObject([{ feed: of.feed, forwarders: [{ video_stream: forwarder.video_stream, video_port: 19_998 }] }]);
  expect(await manager.stopForward({ ...of, stream: forwarder.video_stream })).toMatchObject({ ...of, stream: forwarder.video_stream });
  expect((await manager.listForward({ room })).forwarders).toEqual([]);

  // One feed on one handle, in the older form.
  const single = await session.attach(VideoRoom);
  const attached = await single.joinSubscriber({ room, feed: ann.joined.feed, offer_audio: false });
  expect(attached).toMatchObject({ room, feed: ann.joined.feed, display: 'ann' });
  await start(single, page, 'single', attached);
  await moves(page, 'single', '0', 320);
  expect(await single.switch({ to_feed: ben.joined.feed })).toMatchObject({ switched: 'ok', from_feed: ann.joined.feed, to_feed: ben.joined.feed, display: 'ben' });
  await moves(page, 'single', '0', 480);
  expect(await single.pause()).toMatchObject({ paused: 'ok' });
  expect(await single.start({})).toMatchObject({ started: 'ok' });
  await moves(page, 'single', '0', 480);

  // All on one.
  const viewer = await session.attach(VideoRoom);
  const joined = await viewer.joinSubscriber({ room, private_id: ann.joined.private_id, streams: [{ feed: ann.joined.feed }] });
  await start(viewer, page, 'viewer', joined);
  const updated = await viewer.update({ subscribe: [{ feed: ben.joined.feed }] });
  expect(updated.streams.map((one: any) => [one.feed_id, one.type])).toEqual([
    [ann.joined.feed, 'audio'],
    [ann.joined.feed, 'video'],
    [ben.joined.feed, 'video'],
  ]);
  await start(viewer, page, 'viewer', updated);
  await moves(page, 'viewer', '1', 320);
  await moves(page, 'viewer', '2', 480);
  expect(await viewer.configure({ streams: [{ mid: '2', send: false }] })).toMatchObject({ configured: 'ok' });
  expect(await viewer.configure({ streams: [{ mid: '2', send: true }] })).toMatchObject({ configured: 'ok' });
  const restarted = await viewer.configure({ restart: true });
  await start(viewer, page, 'viewer', restarted);
  await moves(page, 'viewer', '2', 480);

  const gone = once(viewer, EVENT.VIDEOROOM_UPDATED);
  const told = once(ann, EVENT.VIDEOROOM_UNPUBLISHED);
  expect(await ben.unpublish()).toMatchObject({ feed: ben.joined.feed });
  expect((await told)[0]).toEqual({ room, feed: ben.joined.feed });
  const [after] = await gone;
  expect(after.streams.map((one: any) => one.active)).toEqual([true, true, false]);
  await start(viewer, page, 'viewer', after);
  await moves(page, 'viewer', '1', 320);
  expect(await viewer.leave()).toMatchObject({ room });
});

test('Janode: layers of a simulcast feed', async ({ page, server, clientScript, session, manager }) => {
  await blankPage(page, server, clientScript);
  await page.addScriptTag({ content: PEERS });
  const { room } = await manager.create({ max_publishers: 6, videocodec: 'vp8' });
  const encodings = `[{ rid: 'h', maxBitrate: 900000 }, { rid: 'm', scaleResolutionDownBy: 2 }, { rid: 'l', scaleResolutionDownBy: 4 }]`;
  const ann = await publish(session, page, room, 'ann', `[picture(1280, 720)]`, encodings);
  const viewer = await session.attach(VideoRoom);
  const layers: number[] = [];
  viewer.on(EVENT.VIDEOROOM_SC_SUBSTREAM_LAYER, (event: any) => layers.push(event.sc_substream_layer));
  const joined = await viewer.joinSubscriber({ room, feed: ann.joined.feed, sc_substream_layer: 0 });
  expect(joined.streams[0].simulcast).toMatchObject({ 'substream-target': 0 });
  await start(viewer, page, 'viewer', joined);
  await moves(page, 'viewer', '0', 320);
  expect(layers).toEqual([0]);
  await viewer.configure({ sc_substream_layer: 2, sc_substream_fallback_ms: 500, sc_temporal_layers: 2 });
  await moves(page, 'viewer', '0', 1280);
  await viewer.configure({ streams: [{ mid: '0', substream: 1 }] });
  await moves(page, 'viewer', '0', 640);
  await expect.poll(() => layers.at(-1)).toBe(1);
});

/** Sends a moving picture of this width to a port of the server, until it is killed. */
function sendPicture(port: number, width: number): ChildProcess {
  const encoder = '-c:v libvpx -deadline realtime -cpu-used 8 -g 25 -b:v 300k';
  const line = `-v error -re -f lavfi -i testsrc2=size=${width}x180:rate=25 ${encoder} -f rtp rtp://127.0.0.1:${port}?pkt_size=1200`;
  return spawn('ffmpeg', line.split(' '), { stdio: 'ignore' });
}

test('Janode: a mountpoint is watched, paused, switched and stopped', FIREFOX, async ({ page, server, session }) => {
  await blankPage(page, server, PEERS);
  const owner = await session.attach(Streaming);
  const create = () => owner.createRtpMountpoint({ video: { port: 0, pt: 96, rtpmap: 'VP8/90000' } });
  const [one, two] = [await create(), await create()];
  const senders = [sendPicture(one.video_port, 320), sendPicture(two.video_port, 480)];
  try {
    const viewer = await session.attach(Streaming);
    const answered = async ({ jsep }: any) => {
      const answer = await page.evaluate((jsep) => (window as any).answer('viewer', jsep), jsep);
      return (await viewer.start({ jsep: answer })).status;
    };
    const told = once(viewer, Streaming.EVENT.STREAMING_STATUS);
    expect(await answered(await viewer.watch({ id: one.id }))).toBe('starting');
    expect((await told)[0]).toMatchObject({ status: 'started', id: one.id });
    await moves(page, 'viewer', 'v', 320);

    await viewer.configure({ video: false });
    await viewer.configure({ video: true });
    await moves(page, 'viewer', 'v', 320);
    expect(await viewer.pause()).toMatchObject({ status: 'pausing' });
    // Its `start` goes with an answer only.
    expect(await answered(await viewer.watch({ id: one.id }))).toBe('started');
    await moves(page, 'viewer', 'v', 320);
    const restart = await viewer.watch({ id: one.id, restart: true });
    expect(restart).toMatchObject({ status: 'updating', restart: true });
    expect(await answered(restart)).toBe('started');
    await moves(page, 'viewer', 'v', 320);

    expect(await viewer.switch({ id: two.id })).toEqual({ switched: 'ok', id: two.id });
    await moves(page, 'viewer', 'v', 480);
    const hangup = once(viewer, Janode.EVENT.HANDLE_HANGUP);
    expect(await viewer.stop()).toMatchObject({ status: 'stopping', id: two.id });
    await hangup;
  } finally {
    for (const sender of senders) sender.kill('SIGKILL');
    for (const { id } of [one, two]) await owner.destroyMountpoint({ id });
  }
});

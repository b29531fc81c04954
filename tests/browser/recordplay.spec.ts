// Record & Play: Chromium records with each codec that it has and plays it back, by janus.js and on the page.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test as base } from './fixtures';
import { blankPage, client, makeMedia } from './in-page';
import { codec, sum } from './stats';

/** The tone that is recorded, in Hz. */
const TONE = 440;

const test = base.extend<{ folder: string; shelf: Server }>({
  folder: async ({}, use) => {
    const folder = mkdtempSync(join(tmpdir(), 'portunus-shelf-'));
    await use(folder);
    rmSync(folder, { recursive: true });
  },
  shelf: async ({ folder }, use) => {
    const server = await startServer({ workers: 1, config: `[recording]\ndir = ${JSON.stringify(folder)}\n` });
    await use(server);
    await server.stop();
  },
});
test.skip(isReference, 'the reference records into a folder of its own');

/** Opens a client of the plugin on a blank page. */
async function attach(page: Page, shelf: Server, script: string): Promise<void> {
  await blankPage(page, shelf, script);
  await client(page, `window.client = await Client.open(${JSON.stringify(shelf.ws)}, 'janus.plugin.recordplay'), null`);
  await makeMedia(page, TONE);
}

/** Records for some seconds. */
async function record(page: Page, body: object): Promise<void> {
  const tracks = `[{ type: 'audio', capture: window.sound, recv: false }, { type: 'video', capture: window.picture, recv: false }]`;
  const data = await client<any>(page, `client.negotiate(${tracks}, ${JSON.stringify({ request: 'record', name: 'Demo', ...body })})`);
  expect(data.result).toMatchObject({ status: 'recording' });
  await expect.poll(() => client(page, 'client.up')).toBe(true);
  await expect.poll(() => sum(page, 'outbound-rtp', 'video', 'framesEncoded')).toBeGreaterThan(90);
  await client(page, `client.handle.send({ message: { request: 'stop' } }), null`);
  await said(page, 'done');
}

/** Waits until the plugin has told this. */
async function said(page: Page, status: string): Promise<void> {
  const told = () => client<any[]>(page, 'client.messages');
  await expect.poll(async () => (await told()).map(({ result }) => result?.status), { timeout: 20_000 }).toContain(status);
}

/** The only recording. */
async function listed(page: Page): Promise<any> {
  const data = await client<any>(page, `new Promise((success) => client.handle.send({ message: { request: 'list' }, success }))`);
  expect(data.list).toHaveLength(1);
  return data.list[0];
}

/** How loud frequencies are in what is received, in dB. */
function heard(page: Page, frequencies: number[]): Promise<number[]> {
  return page.evaluate(async (frequencies) => {
    const connection = ((window as any).peerConnections as RTCPeerConnection[]).at(-1)!;
    const track = connection.getReceivers().find((receiver) => receiver.track.kind === 'audio')!.track;
    const context = ((window as any).ear ??= new AudioContext()) as AudioContext;
    await context.resume();
    const analyser = new AnalyserNode(context, { fftSize: 8192, smoothingTimeConstant: 0, minDecibels: -120 });
    context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    await new Promise((done) => setTimeout(done, 400));
    const bins = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(bins);
    const at = (hz: number) => Math.round((hz * analyser.fftSize) / context.sampleRate);
    return frequencies.map((hz) => Math.max(...bins.slice(at(hz) - 2, at(hz) + 3)));
  }, frequencies);
}

/** Plays it, and looks and listens. */
async function playsBack(page: Page, id: number, video: string, audio: string): Promise<void> {
  const told = await client<any>(page, `client.play({ id: ${id} })`);
  expect(told).toMatchObject({ status: 'preparing', id });
  expect(told.warning).toBeUndefined();
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(20);
  expect(await codec(page, 'inbound-rtp', 'video')).toBe(video);
  expect(await codec(page, 'inbound-rtp', 'audio')).toBe(audio);
  await expect
    .poll(async () => {
      const [tone, other] = await heard(page, [TONE, 3 * TONE]);
      return tone! - other!;
    })
    .toBeGreaterThan(15);
  const before = (await client<any[]>(page, 'client.messages')).filter(({ result }) => result?.status === 'done').length;
  await expect
    .poll(async () => (await client<any[]>(page, 'client.messages')).filter(({ result }) => result?.status === 'done').length, { timeout: 20_000 })
    .toBeGreaterThan(before);
}

for (const format of ['mjr', 'webm'] as const) {
  for (const [name, mime] of [
    ['vp8', 'VP8'],
    ['vp9', 'VP9'],
    ['h264', 'H264'],
    ['av1', 'AV1'],
  ] as const) {
    test(`${mime} is recorded as ${format} and played back`, async ({ page, shelf, clientScript }) => {
      await attach(page, shelf, clientScript);
      const has = await page.evaluate(
        (mime) => RTCRtpSender.getCapabilities('video')?.codecs.some((codec) => codec.mimeType === `video/${mime}`),
        mime,
      );
      test.skip(!has, `this browser has no ${mime}`);
      await record(page, { id: 1, videocodec: name, record_format: format });
      const entry = await listed(page);
      expect(entry).toMatchObject({ id: 1, name: 'Demo', audio_codec: 'opus', video_codec: name });
      expect(entry.duration).toBeGreaterThan(2_000);
      await playsBack(page, 1, mime, 'opus');
    });
  }
}

for (const format of ['webm', 'mp4'] as const) {
  test(`messages are recorded beside ${format} and come again with the picture`, async ({ page, shelf, clientScript }) => {
    await attach(page, shelf, clientScript);
    const body = { request: 'record', name: 'Demo', id: 1, videocodec: format === 'mp4' ? 'vp9' : 'vp8', record_format: format };
    const tracks = `[{ type: 'audio', capture: window.sound, recv: false }, { type: 'video', capture: window.picture, recv: false }, { type: 'data' }]`;
    await client(page, `client.negotiate(${tracks}, ${JSON.stringify(body)})`);
    await expect.poll(() => client(page, 'client.open')).toBe(true);
    const sent: number[] = [];
    for (const [message, frames] of [['first', 30], ['second', 90]] as const) {
      await expect.poll(() => sum(page, 'outbound-rtp', 'video', 'framesEncoded')).toBeGreaterThan(frames);
      sent.push(await client<number>(page, `client.send('${message}').then(() => performance.now())`));
    }
    await client(page, `client.handle.send({ message: { request: 'stop' } }), null`);
    await said(page, 'done');
    // Between two looks of this test a recording may end: the page notes when messages come.
    await client(page, `window.came = [], client.received.push = function (...all) { came.push(performance.now()); return Array.prototype.push.apply(this, all); }, null`);
    const told = await client<any>(page, 'client.play({ id: 1 })');
    expect(told).toMatchObject({ status: 'preparing', id: 1 });
    expect(told.warning).toBeUndefined();
    await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(10);
    await expect.poll(() => client(page, 'client.received')).toEqual(['first', 'second']);
    const came = await client<number[]>(page, 'came');
    expect(Math.abs(came[1]! - came[0]! - (sent[1]! - sent[0]!)), 'ms earlier or later').toBeLessThan(500);
  });
}

test('PCMU is recorded and played back, with simulcast beside', async ({ page, shelf, clientScript, folder }) => {
  await attach(page, shelf, clientScript);
  const tracks = `[{ type: 'audio', capture: window.sound, recv: false },
    { type: 'video', capture: window.picture, recv: false, simulcast: true }]`;
  await client(page, `client.negotiate(${tracks}, { request: 'record', name: 'Demo', id: 1, audiocodec: 'pcmu', videocodec: 'vp8' })`);
  await expect.poll(() => sum(page, 'outbound-rtp', 'video', 'framesEncoded')).toBeGreaterThan(90);
  await client(page, `client.handle.send({ message: { request: 'stop' } }), null`);
  await said(page, 'done');
  expect(await listed(page)).toMatchObject({ audio_codec: 'pcmu', video_codec: 'vp8' });
  await playsBack(page, 1, 'VP8', 'PCMU');
  expect(readdirSync(join(folder, 'recordplay')).filter((name) => name.endsWith('.mjr'))).toHaveLength(2);
});

test('a viewer seeks, pauses and goes on', async ({ page, shelf, clientScript }) => {
  await attach(page, shelf, clientScript);
  await record(page, { id: 1 });
  await client(page, `client.play({ id: 1 })`);
  await said(page, 'playing');
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(5);
  await client(page, `client.handle.send({ message: { request: 'pause' } }), null`);
  await said(page, 'paused');
  await page.evaluate(() => new Promise((done) => setTimeout(done, 500)));
  const before = await sum(page, 'inbound-rtp', 'video', 'framesDecoded');
  await page.evaluate(() => new Promise((done) => setTimeout(done, 1_000)));
  expect(await sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBe(before);
  await client(page, `client.handle.send({ message: { request: 'seek', position: 0 } }), null`);
  await said(page, 'seeking');
  await client(page, `client.handle.send({ message: { request: 'resume' } }), null`);
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(before + 30);
});

/** Records on the page for some seconds. */
async function recordOnPage(page: Page, shelf: Server, more = ''): Promise<void> {
  await page.goto(`${shelf.base}/recordplay.html?source=synthetic&name=Demo${more}`);
  await expect(page.getByTestId('none')).toBeVisible();
  await page.getByTestId('record').click();
  await expect(page.getByTestId('status')).toHaveText('Recording.');
  await expect(page.getByTestId('passed')).toHaveText(/0:0[3-9]/);
  await page.getByTestId('end').click();
  await expect(page.getByTestId('recording')).toHaveCount(1);
}

test('the page records, lists and plays, with seek and pause', async ({ page, shelf }) => {
  await recordOnPage(page, shelf);
  const item = page.getByTestId('recording');
  await expect(item.getByTestId('title')).toHaveText('Demo');
  await expect(item.getByTestId('facts')).toHaveText(/\d{4}-\d\d-\d\d .* · 0:0[2-9] · .* · vp8, opus/);
  // The picture is of the file itself.
  await expect.poll(() => item.getByTestId('picture').evaluate((picture: HTMLVideoElement) => picture.videoWidth)).toBeGreaterThan(0);
  const href = (await item.getByTestId('download').getAttribute('href')) ?? '';
  expect(href).toMatch(/^\/recordplay\/[0-9a-f]{32}\/rec-\d+\.webm$/);
  const file = await fetch(shelf.base + href, { headers: { range: 'bytes=0-3' } });
  expect(file.status).toBe(206);
  expect([...new Uint8Array(await file.arrayBuffer())]).toEqual([0x1a, 0x45, 0xdf, 0xa3]);

  await item.getByTestId('play').click();
  await expect(page.getByTestId('player-title')).toHaveText('Demo');
  const video = page.getByTestId('video');
  const time = () => video.evaluate((element: HTMLVideoElement) => element.currentTime);
  await expect.poll(time).toBeGreaterThan(0.5);
  await page.getByTestId('pause').click();
  await expect(page.getByTestId('pause')).toHaveText('Go on');
  await page.getByTestId('seek').fill('0.5');
  await page.getByTestId('pause').click();
  await expect(page.getByTestId('pause')).toHaveText('Pause');
  const frames = await sum(page, 'inbound-rtp', 'video', 'framesDecoded');
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(frames + 20);
  // At its end the server hangs up.
  await expect(page.getByTestId('player')).toBeHidden({ timeout: 15_000 });
  await expect(page.getByTestId('notice')).toBeHidden();
});

test('the page records Janus’s files, and stops what it plays', FIREFOX, async ({ page, shelf, folder }) => {
  await recordOnPage(page, shelf, '&format=mjr&codec=vp8');
  const names = readdirSync(join(folder, 'recordplay'));
  expect(names.filter((name) => name.endsWith('-video.mjr'))).toHaveLength(1);
  await expect(page.getByTestId('icon')).toBeVisible();
  await page.getByTestId('play').click();
  await expect.poll(() => sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(5);
  await page.getByTestId('stop').click();
  await expect(page.getByTestId('player')).toBeHidden();
  // It can be played again.
  await page.getByTestId('play').click();
  await expect(page.getByTestId('player')).toBeVisible();
});

test('what others record appears in the list', FIREFOX, async ({ page, context, shelf }) => {
  const other = await context.newPage();
  await other.goto(`${shelf.base}/recordplay.html`);
  await expect(other.getByTestId('none')).toBeVisible();
  await recordOnPage(page, shelf);
  await expect(other.getByTestId('recording').getByTestId('title')).toHaveText('Demo');
});

test('the page fits a phone while it records and plays', FIREFOX, async ({ page, shelf }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const fits = async () => expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await page.goto(`${shelf.base}/recordplay.html?source=synthetic&name=${'long'.repeat(30)}`);
  await page.getByTestId('record').click();
  await expect(page.getByTestId('passed')).toHaveText(/0:0[2-9]/);
  await fits();
  expect((await page.getByTestId('end').boundingBox())?.height).toBeGreaterThanOrEqual(44);
  await page.getByTestId('end').click();
  await expect(page.getByTestId('recording')).toHaveCount(1);
  await fits();
  await page.getByTestId('play').click();
  await expect(page.getByTestId('player')).toBeVisible();
  await fits();
});

test('who may not record is told so', async ({ page, folder }) => {
  const server = await startServer({
    workers: 1,
    config: `[server]\ntrust_loopback = false\n[recording]\ndir = ${JSON.stringify(folder)}\n`,
  });
  try {
    await page.goto(`${server.base}/recordplay.html?source=synthetic&name=Demo`);
    await page.getByTestId('record').click();
    await expect(page.getByTestId('notice')).toContainText('recording needs a trusted client');
    await expect(page.getByTestId('record')).toBeEnabled();
  } finally {
    await server.stop();
  }
});

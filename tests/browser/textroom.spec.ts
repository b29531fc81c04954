// The text room by other clients than our page: janus.js in two tabs, and Janode whose browsers bring the data channels.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import type { Page } from '@playwright/test';
import Janode from 'janode';
import TextRoom from 'janode/plugins/textroom';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { blankPage } from './in-page';

type Json = Record<string, any>;

/** A page with janus.js, whose data channel to the text room is open. */
async function janusJs(page: Page, server: Server, script: string): Promise<void> {
  await blankPage(page, server, script);
  await page.evaluate(async (ws) => {
    const { Client } = window as any;
    const client = await Client.open(ws, 'janus.plugin.textroom');
    (window as any).client = client;
    await client.setUp();
  }, server.ws);
  await expect.poll(() => page.evaluate(() => (window as any).client.open)).toBe(true);
}

/** Sends a request on the data channel. */
async function write(page: Page, request: Json): Promise<void> {
  await page.evaluate((text) => (window as any).client.send(text), JSON.stringify({ transaction: 't', ...request }));
}

/** All that has come on the data channel. */
async function heard(page: Page): Promise<Json[]> {
  const texts: string[] = await page.evaluate(() => (window as any).client.received);
  return texts.map((text) => JSON.parse(text));
}

const kinds = async (page: Page) => (await heard(page)).map(({ textroom }) => textroom);

test('janus.js: two tabs write to each other, whisper, and one is kicked', FIREFOX, async ({ context, server, clientScript }) => {
  const al = await context.newPage();
  const bo = await context.newPage();
  for (const page of [al, bo]) await janusJs(page, server, clientScript);
  const room = 4321;
  await write(al, { textroom: 'create', room, history: 10, secret: 's' });
  await expect.poll(() => kinds(al)).toEqual(['success']);
  await write(al, { textroom: 'join', room, username: 'al', display: 'Al' });
  await expect.poll(() => kinds(al)).toEqual(['success', 'join', 'success']);
  await write(al, { textroom: 'message', room, text: 'hello, wörld' });
  await expect.poll(() => kinds(al)).toEqual(['success', 'join', 'success', 'message', 'success']);

  await write(bo, { textroom: 'join', room, username: 'bo' });
  await expect.poll(() => kinds(bo)).toEqual(['message', 'join', 'success']);
  const [remembered, joined, answer] = await heard(bo);
  expect(remembered).toMatchObject({ room, from: 'al', display: 'Al', text: 'hello, wörld' });
  expect(remembered!['date']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}$/);
  expect(joined).toEqual({ textroom: 'join', room, username: 'bo' });
  expect(answer).toEqual({ textroom: 'success', participants: [{ username: 'al', display: 'Al' }], transaction: 't' });

  await write(bo, { textroom: 'message', room, text: 'psst', tos: ['al', 'zed'] });
  await expect.poll(async () => (await heard(bo)).at(-1)).toEqual({ textroom: 'success', sent: { al: true, zed: false }, transaction: 't' });
  await expect.poll(async () => (await heard(al)).at(-1)).toMatchObject({ textroom: 'message', from: 'bo', text: 'psst', whisper: true });

  await write(al, { textroom: 'kick', room, secret: 's', username: 'bo' });
  await expect.poll(async () => (await heard(bo)).at(-1)).toEqual({ textroom: 'kicked', room, username: 'bo' });
  await write(bo, { textroom: 'message', room, text: 'still there?' });
  await expect.poll(async () => (await heard(bo)).at(-1)).toMatchObject({ textroom: 'error', error_code: 422 });

  // By the API: an announcement, and the end, of which each is told on the data channel.
  const announce = (body: Json) => al.evaluate((body) => (window as any).client.handle.send({ message: body }), body);
  await announce({ request: 'announcement', room, secret: 's', text: 'closing' });
  await expect.poll(async () => (await heard(al)).at(-1)).toMatchObject({ textroom: 'announcement', room, text: 'closing' });
  await announce({ request: 'destroy', room, secret: 's' });
  await expect.poll(async () => (await kinds(al)).slice(-2)).toEqual(['destroyed', 'destroyed']);
});

/** A page's half of a connection that an application's server sets up by Janode. */
const PEER = `
  const received = [];
  const pc = new RTCPeerConnection();
  const complete = () => new Promise((done) => {
    const look = () => pc.iceGatheringState === 'complete' && done({ type: 'answer', sdp: pc.localDescription.sdp });
    pc.onicegatheringstatechange = look;
    look();
  });
  pc.ondatachannel = ({ channel }) => (channel.onmessage = ({ data }) => received.push([channel.label, JSON.parse(data)]));
  let channel;
  async function answer(jsep) {
    await pc.setRemoteDescription(jsep);
    channel ??= pc.createDataChannel('from-the-page');
    await pc.setLocalDescription();
    return complete();
  }
  Object.assign(window, { answer, received, write: (request) => channel.send(JSON.stringify({ transaction: 't', ...request })), state: () => channel?.readyState });
`;

test('Janode: an application sets up the connections of two tabs, announces and ends the room', async ({ context, server }) => {
  Janode.Logger?.setLevel?.('none');
  const connection = await Janode.connect({ address: { url: server.ws }, max_retries: 0 });
  const session = await connection.create();
  const manager = await session.attach(TextRoom);
  const { room } = await manager.create({ description: 'By Janode', history: 5, secret: 's' });
  const pages: Page[] = [];
  for (const username of ['al', 'bo']) {
    const page = await context.newPage();
    await blankPage(page, server, PEER);
    const handle = await session.attach(TextRoom);
    const { jsep } = await handle.setup();
    expect(jsep.type).toBe('offer');
    await handle.ack(await page.evaluate((jsep) => (window as any).answer(jsep), jsep));
    await expect.poll(() => page.evaluate(() => (window as any).state())).toBe('open');
    await page.evaluate(([room, username]) => (window as any).write({ textroom: 'join', room, username }), [room, username] as const);
    pages.push(page);
  }
  const [al, bo] = pages as [Page, Page];
  const last = (page: Page) => page.evaluate(() => (window as any).received.at(-1));
  // The server opens its own channel, since the page has none of that name.
  await expect.poll(() => last(bo)).toEqual(['JanusDataChannel', { textroom: 'success', participants: [{ username: 'al' }], transaction: 't' }]);
  expect(await manager.listParticipants({ room })).toMatchObject({ room, participants: [{ username: 'al' }, { username: 'bo' }] });
  await manager.announcement({ room, secret: 's', text: 'hear' });
  for (const page of [al, bo]) await expect.poll(async () => (await last(page))?.[1]).toMatchObject({ textroom: 'announcement', text: 'hear' });
  await manager.kick({ room, secret: 's', username: 'bo' });
  await expect.poll(async () => (await last(al))?.[1]).toEqual({ textroom: 'kicked', room, username: 'bo' });
  expect(await manager.destroy({ room, secret: 's' })).toMatchObject({ room });
  await expect.poll(async () => (await last(al))?.[1]).toEqual({ textroom: 'destroyed', room });
  await session.destroy();
  await connection.close();
});

/** The memory that a process has, in MiB. */
const memory = (pid: number | undefined): number => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

test('a member and a client of the API who flood cost little memory and hold up nobody', async ({ context, clientScript }) => {
  test.skip(isReference, 'it is about our memory');
  // What is flooded with is more than the server may grow by.
  const [flood, growth] = [32 << 20, 20];
  // A back-end that takes messages and never answers.
  const backEnd = createServer().listen(0, '127.0.0.1');
  await once(backEnd, 'listening');
  const server = await startServer({ workers: 1 });
  try {
    const pages: Record<string, Page> = {};
    for (const name of ['al', 'bo', 'eve']) await janusJs((pages[name] = await context.newPage()), server, clientScript);
    const { al, bo, eve } = pages as Record<'al' | 'bo' | 'eve', Page>;
    const room = 77;
    await write(al, { textroom: 'create', room, history: 1000, post: `http://127.0.0.1:${(backEnd.address() as AddressInfo).port}/` });
    await expect.poll(() => kinds(al)).toEqual(['success']);
    for (const [username, page] of Object.entries(pages)) {
      await write(page, { textroom: 'join', room, username });
      await expect.poll(async () => (await kinds(page)).at(-1)).toBe('success');
    }
    const before = memory(server.pid);
    let most = before;
    const floods = Promise.all([
      // On the data channel as fast as it goes,
      eve.evaluate(
        async ([room, flood]) => {
          const channel: RTCDataChannel = Object.values((window as any).client.handle.webrtcStuff.dataChannel as object)[0];
          const text = JSON.stringify({ textroom: 'message', transaction: 'flood', room, ack: false, text: 'x'.repeat(60_000) });
          for (let sent = 0; sent < flood; sent += text.length) {
            while (channel.bufferedAmount > 1 << 20) await new Promise((done) => setTimeout(done, 1));
            channel.send(text);
          }
          while (channel.bufferedAmount > 0) await new Promise((done) => setTimeout(done, 10));
        },
        [room, flood] as const,
      ),
      // and by the API.
      eve.evaluate(async (room) => {
        const { handle } = (window as any).client;
        const message = { request: 'announcement', room, text: 'y'.repeat(4_000) };
        for (let sent = 0; sent < 1_500; sent += 1) await new Promise((success, error) => handle.send({ message, success, error }));
      }, room),
    ]);
    let isOver = false;
    void floods.finally(() => (isOver = true)).catch(() => {});
    let said = 0;
    do {
      await write(al, { textroom: 'message', room, text: `calm ${(said += 1)}` });
      const heardIt = () => bo.evaluate((text) => (window as any).client.received.some((it: string) => it.includes(`"${text}"`)), `calm ${said}`);
      await expect.poll(heardIt, { intervals: [20, 100] }).toBe(true);
      most = Math.max(most, memory(server.pid));
    } while (!isOver);
    await floods;
    most = Math.max(most, memory(server.pid));
    const refused = await eve.evaluate(() => (window as any).client.received.filter((it: string) => /"error_code": ?499/.test(it)).length);
    expect(refused).toBeGreaterThan(300);
    console.log(`    ${before.toFixed(1)} MiB before, ${most.toFixed(1)} MiB at most; ${said} messages of others meanwhile`);
    expect(most - before).toBeLessThan(growth);
  } finally {
    await server.stop();
    backEnd.close();
  }
});

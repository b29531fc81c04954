// What pages do when a connection, the network or the server goes away and comes back.
import { isReference, startServer } from '../server/index.mjs';
import { FIREFOX } from './fixtures';
import { mediaFlows, grows } from './stats';
import { enter, expect, open, ROOMS, seen, test, tile } from './room';
import type { Page } from '@playwright/test';

test.skip(isReference, 'it keeps no sessions for these pages');

/** Lets a page lose its WebSocket, and have none for a while. */
async function interruptible(page: Page): Promise<{ cut(): Promise<void>; mend(): void }> {
  const sockets: { close(): void }[] = [];
  let away = false;
  await page.routeWebSocket(/./, (socket) => {
    if (away) return void socket.close({ code: 1011 });
    const server = socket.connectToServer();
    sockets.push({ close: () => { void socket.close({ code: 1011 }); void server.close({ code: 1011 }); } });
  });
  return {
    cut: async () => {
      away = true;
      for (const socket of sockets.splice(0)) socket.close();
    },
    mend: () => void (away = false),
  };
}

test('a lost WebSocket is replaced, and the call goes on', FIREFOX, async ({ page }) => {
  const link = await interruptible(page);
  await page.goto('/echotest.html?size=320x180&source=synthetic');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
  await link.cut();
  await expect(page.getByTestId('reconnecting')).toBeVisible();
  link.mend();
  await expect(page.getByTestId('reconnecting')).toBeHidden();
  // The session is the same: its handle does what it is asked for.
  await page.getByTestId('mute-audio').click();
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
  expect(await open(page)).toBe(1);
  await expect(page.getByTestId('notice')).not.toContainText('ended');
  await page.getByTestId('hangup').click();
  await expect(page.getByTestId('status')).toHaveText('Ready.');
});

test('who loses the WebSocket stays in the room, and learns what happened meanwhile', async ({ context }) => {
  const ann = await context.newPage();
  const link = await interruptible(ann);
  await ann.goto(`/videoroom.html?room=${ROOMS.demo}&name=Ann&size=320x180&simulcast=0`);
  await ann.getByTestId('join').click();
  const ben = await enter(context, ROOMS.demo, 'Ben');
  await seen(ben, 'Ann');
  await seen(ann, 'Ben');
  await link.cut();
  await expect(ann.getByTestId('reconnecting')).toBeVisible();
  const cleo = await enter(context, ROOMS.demo, 'Cleo');
  await seen(cleo, 'Ann');
  await expect(tile(ben, 'Ann')).toBeVisible();
  link.mend();
  await expect(ann.getByTestId('reconnecting')).toBeHidden();
  await seen(ann, 'Cleo');
  await expect(ben.getByTestId('log')).not.toContainText('Ann left');
});

test('ICE is restarted when media stops to come, and the call goes on', async ({ page }) => {
  await page.goto('/echotest.html?size=320x180&source=synthetic');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
  const name = () => page.evaluate(() => /a=ice-ufrag:(\S+)/.exec((window as any).peerConnections[0].localDescription.sdp)?.[1]);
  const before = await name();
  // As the browser says it of a network that is gone.
  await page.evaluate(() => {
    const connection = (window as any).peerConnections[0] as RTCPeerConnection;
    Object.defineProperty(connection, 'iceConnectionState', { configurable: true, value: 'disconnected' });
    connection.dispatchEvent(new Event('iceconnectionstatechange'));
    delete (connection as any).iceConnectionState;
  });
  await expect.poll(name).not.toBe(before);
  await expect(page.getByTestId('reconnecting')).toBeHidden();
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
});

test('a server that was started anew is joined again', async ({ context }) => {
  const server = await startServer({ workers: 1, config: '\n[[videoroom.room]]\nroom = 1\n' });
  try {
    const [ann, ben] = [await context.newPage(), await context.newPage()];
    for (const [page, name] of [[ann, 'Ann'], [ben, 'Ben']] as const) {
      await page.goto(`${server.base}/videoroom.html?room=1&name=${name}&size=320x180&simulcast=0`);
      await page.getByTestId('join').click();
    }
    await seen(ann, 'Ben');
    await ann.getByTestId('mute-audio').click();
    await server.kill();
    await expect(ann.getByTestId('reconnecting')).toBeVisible();
    await expect(ann.getByTestId('leave')).toBeVisible();
    await server.restart();
    await expect(ann.getByTestId('reconnecting')).toBeHidden();
    await seen(ann, 'Ben');
    await seen(ben, 'Ann');
    await expect(ann.getByTestId('mute-audio')).toHaveAttribute('aria-pressed', 'true');
    await expect(tile(ben, 'Ann').getByRole('img', { name: 'muted' })).toBeVisible();
  } finally {
    await server.stop();
  }
});

test('who leaves while the server is away is out', async ({ page }) => {
  const server = await startServer({ workers: 1, config: '\n[[videoroom.room]]\nroom = 1\n' });
  await page.goto(`${server.base}/videoroom.html?room=1&name=Ann&source=none`);
  await page.getByTestId('join').click();
  await expect(page.getByTestId('room-title')).toBeVisible();
  await server.kill();
  await expect(page.getByTestId('reconnecting')).toBeVisible();
  await page.getByTestId('leave').click();
  await expect(page.getByTestId('lobby')).toBeVisible();
  await expect(page.getByTestId('meeting')).toBeHidden();
  await expect(page.getByTestId('reconnecting')).toBeVisible();
  await server.restart();
  await expect(page.getByTestId('reconnecting')).toBeHidden();
  await expect(page.getByTestId('room-1')).toContainText('0 people');
  await server.stop();
});

// What pages do when a connection, the network or the server goes away and comes back.
import { isReference, startServer } from '../server/index.mjs';
import { FIREFOX } from './fixtures';
import { mediaFlows, grows } from './stats';
import { enter, expect, open, ROOMS, seen, test, tile } from './room';
import type { Server } from '../server/portunus.mjs';
import { interruptible } from './interruptible';

test.skip(isReference, 'it keeps no sessions for these pages');

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
  // The machine sleeps for a minute, and nobody tells it that the connection is gone.
  link.freeze();
  const before = link.opened();
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 60_000;
  });
  await expect.poll(link.opened).toBeGreaterThan(before);
  await expect(page.getByTestId('reconnecting')).toBeHidden();
  // Another network: nobody waits until the old connection is found to be dead.
  const opened = link.opened();
  await page.evaluate(() => window.dispatchEvent(new Event('online')));
  await expect.poll(link.opened).toBeGreaterThan(opened);
  await expect(page.getByTestId('reconnecting')).toBeHidden();
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

test('ICE is restarted when media stops to come, on a connection to the server that is alive', async ({ page }) => {
  const link = await interruptible(page);
  await page.goto('/echotest.html?size=320x180&source=synthetic');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
  const name = () => page.evaluate(() => /a=ice-ufrag:(\S+)/.exec((window as any).peerConnections[0].localDescription.sdp)?.[1]);
  for (const how of ['alive', 'dead'] as const) {
    if (how === 'dead') link.freeze();
    const before = await name();
    // As the browser says it of a network that is gone.
    await page.evaluate(() => {
      const connection = (window as any).peerConnections[0] as RTCPeerConnection;
      Object.defineProperty(connection, 'iceConnectionState', { configurable: true, value: 'disconnected' });
      connection.dispatchEvent(new Event('iceconnectionstatechange'));
      delete (connection as any).iceConnectionState;
    });
    await expect.poll(name, how).not.toBe(before);
    await expect(page.getByTestId('reconnecting')).toBeHidden();
  }
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
});

/** Ends the PeerConnections of all handles of a plugin, and nothing else. */
async function hangUp(server: Server, plugin: string): Promise<void> {
  const admin = async (path: string, message: object) => {
    const body = JSON.stringify({ transaction: 't', ...message });
    return (await fetch(`${server.admin}${path}`, { method: 'POST', body })).json() as any;
  };
  const { sessions } = await admin('', { janus: 'overview' });
  for (const { session_id, handles } of sessions) {
    for (const handle of handles.filter((one: any) => one.plugin === plugin && one.connection)) {
      await admin(`/${session_id}/${handle.handle_id}`, { janus: 'hangup_webrtc' });
    }
  }
}

test('other pages come back, too: by a connection of their own, and to a server that was started anew', FIREFOX, async ({ context }) => {
  const rooms = '[[audiobridge.room]]\nroom = 1\nsampling_rate = 16000\n\n[[textroom.room]]\nroom = 1\nhistory = 10\n';
  const server = await startServer({ workers: 1, config: rooms });
  try {
    const [echo, sound, text, call] = [await context.newPage(), await context.newPage(), await context.newPage(), await context.newPage()];
    await echo.goto(`${server.base}/echotest.html?source=synthetic&size=320x180`);
    await echo.getByTestId('start').click();
    for (const [page, path] of [[sound, 'audioroom.html?source=synthetic'], [text, 'textroom.html?']] as const) {
      await page.goto(`${server.base}/${path}&room=1&name=Ann`);
      await page.getByTestId('join').click();
    }
    const muted = (pressed: boolean) => expect(sound.getByTestId('mute')).toHaveAttribute('aria-pressed', String(pressed));
    await call.goto(`${server.base}/videocall.html?name=Ann`);
    await call.getByTestId('register').click();
    await expect(call.getByTestId('status')).toHaveText('Registered as Ann.');
    await expect(sound.getByTestId('person-Ann')).toContainText('silent');
    await sound.getByTestId('mute').click();
    await expect(sound.getByTestId('person-Ann')).toContainText('muted');
    const line = text.getByTestId('said').filter({ hasText: 'Good morning' });
    await text.getByTestId('text-input').fill('Good morning');
    await text.getByTestId('text-send').click();
    await expect(line).toHaveCount(1);

    for (const [page, plugin] of [[sound, 'janus.plugin.audiobridge'], [text, 'janus.plugin.textroom']] as const) {
      await hangUp(server, plugin);
      await expect(page.getByTestId('reconnecting')).toBeVisible();
      await expect(page.getByTestId('reconnecting')).toBeHidden();
      await expect(page.getByTestId('meeting')).toBeVisible();
    }
    await expect(sound.getByTestId('person-Ann')).toContainText('muted');
    await muted(true);
    // What was said stands there once, and one can go on.
    await expect(line).toHaveCount(1);
    await text.getByTestId('text-input').fill('Where were we?');
    await text.getByTestId('text-send').click();
    await expect(text.getByTestId('said').filter({ hasText: 'Where were we?' })).toHaveCount(1);

    await mediaFlows(echo, { video: true });
    await server.kill();
    for (const page of [echo, sound, text, call]) await expect(page.getByTestId('reconnecting')).toBeVisible({ timeout: 3_000 });
    await expect(echo.getByTestId('reconnecting')).toContainText('The server does not answer so far');
    await server.restart();
    for (const page of [echo, sound, text, call]) await expect(page.getByTestId('reconnecting')).toBeHidden();
    await expect(echo.getByTestId('status')).toContainText('Connected');
    await expect(call.getByTestId('status')).toHaveText('Registered as Ann.');
    await expect(sound.getByTestId('person-Ann')).toContainText('muted');
    await muted(true);
    await expect(line).toHaveCount(1);
    await expect(text.getByTestId('people')).toContainText('Ann');
  } finally {
    await server.stop();
  }
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

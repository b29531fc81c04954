// What pages say of calls that fail or end, of servers that take nobody, and of sources that are silent.
import { spawn } from 'node:child_process';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { mediaFlows } from './stats';

test.skip(isReference, 'the reasons are ours');

/** Takes all addresses of media out of what a page and the server tell each other: as if the network let none of it through. */
async function blockMedia(page: Page): Promise<void> {
  const without = (text: string) => text.replace(/a=(candidate|end-of-candidates)[^\\]*\\r\\n/g, '');
  await page.routeWebSocket(/./, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => {
      const text = String(message);
      const { janus, transaction } = JSON.parse(text);
      if (janus === 'trickle') socket.send(JSON.stringify({ janus: 'ack', transaction }));
      else server.send(without(text));
    });
    server.onMessage((message) => socket.send(without(String(message))));
  });
}

test('a call without media says so early, and in the end why, with the server’s sentence', async ({ page }) => {
  await blockMedia(page);
  await page.goto('/echotest.html?source=synthetic&size=320x180');
  await page.getByTestId('start').click();
  const notice = page.getByTestId('notice');
  await expect(notice).toContainText('Still connecting', { timeout: 15_000 });
  await expect(page.getByTestId('open-check')).toBeVisible();
  await expect(notice).toContainText('The echo test has ended. No media could be exchanged with the server.', { timeout: 60_000 });
  // As in the log.
  await expect(notice).toContainText('The client has named no address within');
  await expect(page.getByTestId('to-check')).toHaveAttribute('href', 'check.html');
  await expect(page.getByTestId('start')).toBeVisible();
  await page.getByTestId('again').click();
  await expect(page.getByTestId('status')).toHaveText('Connecting…');
});

test('a call that an administrator ends says that the server has ended it', FIREFOX, async ({ page, server }) => {
  await page.goto('/echotest.html?source=synthetic&size=320x180');
  await page.getByTestId('start').click();
  await mediaFlows(page, { video: true });
  const admin = async (path: string, message: object) => {
    const body = JSON.stringify({ transaction: 't', ...message });
    return (await fetch(`${server.admin}${path}`, { method: 'POST', body })).json() as any;
  };
  const { sessions } = await admin('', { janus: 'list_sessions' });
  for (const session of sessions) {
    const { handles } = await admin(`/${session}`, { janus: 'list_handles' });
    for (const handle of handles) await admin(`/${session}/${handle}`, { janus: 'hangup_webrtc' });
  }
  await expect(page.getByTestId('notice')).toContainText(/The echo test (is over|has ended)/);
  await expect(page.getByTestId('status')).toHaveText('Ready.');
});

test('a server that is being drained says so', FIREFOX, async ({ page }) => {
  const server = await startServer({ workers: 1, config: '\n[[videoroom.room]]\nroom = 1\n' });
  try {
    const body = JSON.stringify({ janus: 'drain', transaction: 't' });
    await fetch(server.admin, { method: 'POST', body });
    for (const path of ['/echotest.html?source=none', '/streaming.html', '/videoroom.html?room=1&name=Ann']) {
      await page.goto(`${server.base}${path}`);
      if (path.startsWith('/echo')) await page.getByTestId('start').click();
      await expect(page.getByTestId('notice'), path).toContainText('being drained');
      await expect(page.getByTestId('notice'), path).not.toContainText('cannot be reached');
    }
  } finally {
    await page.goto('about:blank');
    await server.stop();
  }
});

test('a player waits, plays, and says since when nothing comes', FIREFOX, async ({ page }) => {
  const media = `[[streaming.mountpoint.media]]\ntype = "video"\nmid = "v"\nport = 18900\npt = 96\ncodec = "vp8"\n`;
  const server = await startServer({ workers: 1, config: `\n[[streaming.mountpoint]]\nid = 5\nname = "cam"\ntype = "rtp"\nbufferkf_ms = 5000\n${media}` });
  const line = '-v error -re -f lavfi -i testsrc2=size=320x180:rate=15 -c:v libvpx -deadline realtime -cpu-used 8 -g 30 -b:v 200k -payload_type 96 -f rtp rtp://127.0.0.1:18900';
  let feeder: ReturnType<typeof spawn> | undefined;
  try {
    await page.goto(`${server.base}/streaming.html`);
    await expect(page.getByTestId('state')).toContainText('waits for media: nothing has come so far');
    await page.getByTestId('play').click();
    const state = page.getByTestId('player-state');
    await expect(state).toHaveText('Waiting: nothing has come yet.');
    await expect(page.getByTestId('status')).toHaveText('Waiting: nothing has come yet.');
    await expect(page.getByTestId('playing')).toHaveAttribute('data-state', 'waiting');
    feeder = spawn('ffmpeg', line.split(' '), { stdio: 'ignore' });
    await expect(page.getByTestId('status')).toContainText('Playing');
    await expect(state).toBeHidden();
    await expect(page.getByTestId('latency')).toContainText('ms behind the server');
    feeder.kill('SIGKILL');
    await expect(state).toHaveText(/^Stopped \d+ s ago\.$/);
    await expect(page.getByTestId('status')).toHaveText(/^Stopped \d+ s ago\.$/);
    await expect(page.getByTestId('state')).toContainText(/no media for \d+ s/);
    feeder = spawn('ffmpeg', line.split(' '), { stdio: 'ignore' });
    await expect(page.getByTestId('status')).toContainText('Playing');
    await page.getByTestId('mute').click();
    await expect(page.getByTestId('mute')).toHaveAttribute('aria-pressed', 'true');
    await page.getByTestId('volume').fill('0.5');
    expect(await page.getByTestId('video').evaluate((video: HTMLVideoElement) => [video.volume, video.muted])).toEqual([0.5, false]);
    await page.getByTestId('fullscreen').click();
    await expect.poll(() => page.evaluate(() => document.fullscreenElement?.className)).toBe('player');
  } finally {
    feeder?.kill('SIGKILL');
    await page.goto('about:blank');
    await server.stop();
  }
});

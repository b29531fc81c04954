// The example of an app on LiveKit's SDK (examples/meeting), with its backend, as anybody would start it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from '@playwright/test';
import { expect, FIREFOX, test as base } from './fixtures';
import { KEY, LIVEKIT_SECRET, startLiveKit, type LiveKitServer } from './livekit';
import { enter, SECRET, seen, tile } from './room';

const ROOM = 4712;
const CONFIG = `
[[videoroom.room]]
room = ${ROOM}
description = "Both"
publishers = 8
secret = "${SECRET}"
notify_joining = true
`;

const test = base.extend<object, { meeting: string }>({
  server: [
    async ({}, use) => {
      const server = await startLiveKit(CONFIG);
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
  meeting: [
    async ({ server }, use) => {
      const backend = spawn(process.execPath, [fileURLToPath(new URL('../../examples/meeting/server.mjs', import.meta.url))], {
        env: { ...process.env, LIVEKIT_URL: (server as LiveKitServer).livekit, LIVEKIT_API_KEY: KEY, LIVEKIT_API_SECRET: LIVEKIT_SECRET, PORT: '0' },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await use(await address(backend));
      backend.kill();
    },
    { scope: 'worker' },
  ],
});

/** The address that a backend prints. */
async function address(backend: ChildProcess): Promise<string> {
  const failed = once(backend, 'exit').then(() => { throw new Error('the backend ended'); });
  const [line] = await Promise.race([once(backend.stdout!, 'data'), failed]);
  return String(line).trim();
}

async function join(context: BrowserContext, meeting: string, name: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(meeting);
  await page.getByLabel('Room').fill(String(ROOM));
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Join' }).click();
  await expect(page.getByRole('status')).toHaveText(`In ${ROOM}`);
  return page;
}

/** The figure of somebody, or of a screen. */
const figure = (page: Page, caption: string | RegExp) => page.getByRole('figure').filter({ hasText: caption });

/** Waits until the picture of a figure moves. */
async function moves(page: Page, caption: string | RegExp): Promise<void> {
  const time = () => figure(page, caption).locator('video').evaluate((video: HTMLVideoElement) => (video.videoWidth > 0 ? video.currentTime : 0));
  await expect.poll(time).toBeGreaterThan(0.5);
  const before = await time();
  await expect.poll(time).toBeGreaterThan(before + 0.5);
}

test('a meeting: people see each other, mute, chat and leave', FIREFOX, async ({ context, meeting }) => {
  const [ann, ben] = [await join(context, meeting, 'Ann'), await join(context, meeting, 'Ben')];
  await moves(ann, 'Ben');
  await moves(ben, 'Ann');
  await expect(figure(ann, 'Ann (you)')).toBeVisible();
  await expect(ann.getByRole('button', { name: 'Microphone' })).toHaveAttribute('aria-pressed', 'true');
  await ann.getByRole('button', { name: 'Microphone' }).click();
  await expect(figure(ben, 'Ann (muted)')).toBeVisible();
  await ann.getByRole('button', { name: 'Camera' }).click();
  await expect(figure(ben, 'Ann').locator('video')).toHaveCount(0);
  await ann.getByRole('button', { name: 'Camera' }).click();
  await moves(ben, 'Ann');
  await ben.getByLabel('Message').fill('Hello <b>Ann</b>');
  await ben.getByRole('button', { name: 'Send' }).click();
  for (const page of [ann, ben]) await expect(page.getByRole('listitem')).toHaveText('Ben: Hello <b>Ann</b>');
  await ben.getByRole('button', { name: 'Leave' }).click();
  await expect(ben.getByRole('status')).toHaveText('You have left.');
  await expect(figure(ann, 'Ben')).toHaveCount(0);
});

test('somebody in the meeting and somebody on the page of the video room see each other', async ({ context, meeting }) => {
  const ann = await join(context, meeting, 'Ann');
  const ben = await enter(context, ROOM, 'Ben');
  await seen(ben, 'Ann');
  await moves(ann, 'Ben');
  // Chromium would ask which screen; a canvas moves as one.
  await ann.evaluate(() => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [640, 360];
    const paint = () => canvas.getContext('2d')!.fillRect(Math.random() * 600, 0, 20, 20);
    setInterval(paint, 50);
    navigator.mediaDevices.getDisplayMedia = async () => canvas.captureStream(20);
  });
  await ann.getByRole('button', { name: 'Share the screen' }).click();
  await expect(figure(ann, 'The screen of Ann')).toBeVisible();
  await expect.poll(() => ben.evaluate(() => [...document.querySelectorAll('video')].filter((it) => it.videoWidth === 640 && it.currentTime > 0.5).length)).toBeGreaterThan(0);
  await ann.getByRole('button', { name: 'Leave' }).click();
  await expect(tile(ben, 'Ann')).toHaveCount(0);
});

test('tokens are for those who name themselves and a room', async ({ meeting }) => {
  expect((await fetch(`${meeting}token?room=a`)).status).toBe(400);
  expect((await fetch(`${meeting}nothing`)).status).toBe(404);
  expect((await fetch(`${meeting}token?room=a&name=b`, { method: 'POST' })).status).toBe(405);
});

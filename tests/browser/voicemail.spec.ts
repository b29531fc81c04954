// The voice mail page: messages are left, and heard in the files that the server writes.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test as base } from './fixtures';

/** The tone that the page makes, in Hz. */
const TONE = 330;

const test = base.extend<{ folder: string; mail: Server }>({
  folder: async ({}, use) => {
    const folder = mkdtempSync(join(tmpdir(), 'portunus-mail-'));
    await use(folder);
    rmSync(folder, { recursive: true });
  },
  mail: async ({ folder }, use) => {
    const server = await startServer({ workers: 1, config: `[recording]\ndir = ${JSON.stringify(folder)}\n` });
    await use(server);
    await server.stop();
  },
});
test.skip(isReference, 'the reference has no such page');

function has(program: string): boolean {
  try {
    execFileSync(program, ['-version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** How long a file is, in s. */
function duration(file: string): number {
  return Number(execFileSync('ffprobe', ['-v', 'error', '-show_entries', 'format=duration', '-of', 'csv=p=0', file]));
}

/** How loud a file is around a frequency, in dB. */
function loudness(file: string, frequency: number): number {
  const filter = `bandpass=f=${frequency}:width_type=h:w=20,bandpass=f=${frequency}:width_type=h:w=20,volumedetect`;
  const said = execFileSync('sh', ['-c', `ffmpeg -hide_banner -i "$0" -af ${filter} -f null - 2>&1`, file]).toString();
  return Number(/mean_volume: (\S+) dB/.exec(said)?.[1]);
}

/** Opens the page, and records the tone. */
async function record(page: Page, mail: Server): Promise<void> {
  await page.goto(`${mail.base}/voicemail.html?source=synthetic`);
  await page.getByTestId('record').click();
  await expect(page.getByTestId('status')).toContainText('Recording');
}

function hearsTheTone(file: string): void {
  expect(loudness(file, TONE)).toBeGreaterThan(-45);
  expect(loudness(file, TONE) - loudness(file, 1_000)).toBeGreaterThan(20);
}

// Not in Firefox: without a sound device it starts no AudioContext, so there is no tone to send.
test('a message ends by itself, and the tone is heard in its file and in the page', async ({ page, mail, folder }) => {
  test.skip(!has('ffmpeg'), 'there is no ffmpeg');
  await record(page, mail);
  await expect(page.getByTestId('left')).toHaveText(/^\d+(\.0)? s$/);
  await expect.poll(() => page.getByTestId('level').evaluate((meter: HTMLMeterElement) => meter.value)).toBeGreaterThan(0.3);
  const message = page.getByTestId('message');
  await expect(message).toHaveCount(1);
  const href = (await message.getByTestId('download').getAttribute('href')) ?? '';
  expect(href).toMatch(/\/recordings\/\/janus-voicemail-\d+\.opus$/);
  const file = join(folder, 'message.opus');
  const response = await fetch(href);
  expect(response.headers.get('content-type')).toBe('audio/ogg');
  writeFileSync(file, Buffer.from(await response.arrayBuffer()));
  expect(duration(file)).toBeGreaterThan(9.5);
  expect(duration(file)).toBeLessThan(10.2);
  hearsTheTone(file);

  const player = message.getByTestId('player');
  await player.evaluate((audio: HTMLAudioElement) => audio.play());
  await expect.poll(() => player.evaluate((audio: HTMLAudioElement) => audio.currentTime)).toBeGreaterThan(1);
  const length = await player.evaluate((audio: HTMLAudioElement) => audio.duration);
  expect(length).toBeCloseTo(duration(file), 1);
  // To go to a place takes a part of the file.
  await player.evaluate((audio: HTMLAudioElement) => (audio.currentTime = 8));
  await expect.poll(() => player.evaluate((audio: HTMLAudioElement) => audio.currentTime)).toBeGreaterThan(8.5);
});

test('messages are stopped, and follow one another', FIREFOX, async ({ page, mail, folder }) => {
  await record(page, mail);
  for (const count of [1, 2]) {
    if (count > 1) await page.getByTestId('record').click();
    await expect(page.getByTestId('progress')).not.toHaveJSProperty('value', 0);
    await page.getByTestId('stop').click();
    await expect(page.getByTestId('message')).toHaveCount(count);
    await expect(page.getByTestId('status')).toHaveText('Ready.');
  }
  await expect(page.getByTestId('notice')).toBeHidden();
  expect(readdirSync(join(folder, 'voicemail'))).toHaveLength(2);
});

test('a server that is killed leaves a message that plays', async ({ page, mail, folder }) => {
  test.skip(!has('ffmpeg'), 'there is no ffmpeg');
  await record(page, mail);
  const begun = performance.now();
  const progress = () => page.getByTestId('progress').evaluate((bar: HTMLProgressElement) => bar.value);
  await expect.poll(progress).toBeGreaterThan(0.4);
  const recorded = (performance.now() - begun) / 1000;
  await mail.kill();
  const [name] = readdirSync(join(folder, 'voicemail'));
  const file = join(folder, 'voicemail', name ?? '');
  expect(duration(file)).toBeGreaterThan(recorded - 2);
  hearsTheTone(file);
  await expect(page.getByTestId('notice')).toContainText('The server cannot be reached', { timeout: 70_000 });
});

test('who may not record is told so', async ({ page, folder }) => {
  const server = await startServer({
    workers: 1,
    config: `[server]\ntrust_loopback = false\n[recording]\ndir = ${JSON.stringify(folder)}\n`,
  });
  try {
    await page.goto(`${server.base}/voicemail.html?source=synthetic`);
    await page.getByTestId('record').click();
    await expect(page.getByTestId('notice')).toContainText('recording needs a trusted client');
    await expect(page.getByTestId('record')).toBeEnabled();
  } finally {
    await server.stop();
  }
});

test('without a microphone a tone is offered', async ({ page, mail }) => {
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = async () => {
      throw new DOMException('no', 'NotFoundError');
    };
  });
  await page.goto(`${mail.base}/voicemail.html`);
  await page.getByTestId('record').click();
  await expect(page.getByTestId('notice')).toContainText('was not found');
  await page.getByTestId('use-synthetic').click();
  await expect(page.getByTestId('status')).toContainText('Recording');
});

test('the page fits a phone while it records', async ({ page, mail }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await record(page, mail);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  expect((await page.getByTestId('stop').boundingBox())?.height).toBeGreaterThanOrEqual(44);
});

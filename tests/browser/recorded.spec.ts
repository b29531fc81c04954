// Recordings of a server that was killed while it wrote them: Chromium plays each to within 2 s of that.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, test } from './fixtures';
import { blankPage, client, makeMedia } from './in-page';

/** How often the server is killed; each time all of these are being recorded. */
const KILLS = Number(process.env.KILLS ?? 2);
const FILES = [
  { codec: 'vp8', format: 'webm' },
  { codec: 'vp9', format: 'webm' },
  { codec: 'h264', format: 'mp4' },
] as const;
/** What of a file may be lost, in s. */
const LOST = 2;
/** They are played so much faster. */
const RATE = 4;

test.skip(isReference, 'the reference records into a folder of its own');

interface Played {
  time: number;
  frames: number;
  ended: boolean;
  error: string | null;
}

/** Records all of them until the server is killed; gives for how long there were pictures of all, in s. */
async function recordAndKill(page: Page, folder: string, clientScript: string): Promise<number> {
  const server = await startServer({ workers: 1, config: `[recording]\ndir = ${JSON.stringify(folder)}\n` });
  try {
    await blankPage(page, server, clientScript);
    await makeMedia(page);
    for (const { codec, format } of FILES) {
      const tracks = `[{ type: 'audio', capture: window.sound, recv: false }, { type: 'video', capture: window.picture, recv: false }]`;
      const body = { record: true, filename: codec, record_format: format, videocodec: codec };
      await client(page, `Client.open(${JSON.stringify(server.ws)}).then((made) => made.negotiate(${tracks}, ${JSON.stringify(body)}))`);
    }
    await expect.poll(() => fewestSent(page), { intervals: [100] }).toBeGreaterThan(0);
    const begun = performance.now();
    // At any moment, once there is something that must not be lost.
    await new Promise((done) => setTimeout(done, 1000 * (LOST + 0.5 + 2 * Math.random())));
    const recorded = (performance.now() - begun) / 1000;
    await server.kill();
    return recorded;
  } finally {
    await server.stop();
  }
}

/** Of the page's connections, how many pictures the one has sent that has sent the fewest. */
function fewestSent(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const sent = ((window as any).peerConnections as RTCPeerConnection[]).map(async (connection) => {
      const all = [...(await connection.getStats()).values()];
      return all.find(({ type, kind }) => type === 'outbound-rtp' && kind === 'video')?.framesSent ?? 0;
    });
    return Math.min(...(await Promise.all(sent)));
  });
}

/** Plays files beside each other, each to its end. */
async function play(page: Page, files: string[]): Promise<Played[]> {
  // A page that may read them.
  const blank = `${files[0]}.html`;
  writeFileSync(blank, '');
  await page.goto(pathToFileURL(blank).href);
  await page.evaluate(
    ([files, defaultPlaybackRate]) => {
      for (const src of files) {
        const video = document.body.appendChild(Object.assign(document.createElement('video'), { src, defaultPlaybackRate }));
        void video.play().catch(() => {});
      }
    },
    [files.map((file) => pathToFileURL(file).href), RATE] as const,
  );
  const state = () =>
    page.evaluate(() =>
      [...document.querySelectorAll('video')].map((video) => ({
        time: video.currentTime,
        frames: video.getVideoPlaybackQuality().totalVideoFrames,
        ended: video.ended,
        error: video.error?.message ?? null,
      })),
    );
  const isOver = ({ ended, error }: Played) => ended || error !== null;
  await expect.poll(async () => (await state()).every(isOver), { intervals: [200] }).toBe(true);
  return state();
}

/** The time of the last packet, in s; none without ffprobe. */
function lastPacket(file: string): number | undefined {
  try {
    const told = execFileSync('ffprobe', ['-v', 'error', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', file]).toString();
    return Math.max(...told.split('\n').map(Number).filter(Number.isFinite));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

test('what a killed server has recorded plays in Chromium', async ({ page, clientScript }) => {
  test.setTimeout((KILLS + 1) * 60_000);
  const player = await page.context().newPage();
  let most = 0;
  for (let number = 0; number < KILLS; number += 1) {
    const folder = mkdtempSync(join(tmpdir(), 'portunus-killed-'));
    try {
      const recorded = await recordAndKill(page, folder, clientScript);
      const files = FILES.map(({ codec, format }) => join(folder, `${codec}.${format}`));
      const all = await play(player, files);
      for (const [place, file] of files.entries()) {
        const played = all[place]!;
        const told = `${basename(file)} in round ${number}: ${recorded.toFixed(3)} s recorded, ${JSON.stringify(played)}`;
        expect(played, told).toMatchObject({ ended: true, error: null });
        expect(played.time, told).toBeGreaterThan(recorded - LOST);
        expect(played.time, told).toBeGreaterThan((lastPacket(file) ?? 0) - 0.5);
        expect(played.frames, told).toBeGreaterThan(played.time * 5);
        most = Math.max(most, recorded - played.time);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  console.log(`    ${KILLS * FILES.length} files, ${most.toFixed(3)} s missing at most`);
});

// Pages with calls, streams and files come back after the server was started anew: the phone, streaming, record & play.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import type { Server } from '../server/portunus.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { interruptible } from './interruptible';
import { type Kamailio, needsPhones, startKamailio } from './kamailio';
import { callWith, dial, newUser, press, talks } from './phone';
import { grows } from './stats';

test.skip(isReference, 'it keeps no sessions for these pages');

/** Both are told of at once, and end. */
async function restarts(server: Server, pages: Page[]): Promise<void> {
  await server.kill();
  for (const page of pages) await expect(page.getByTestId('reconnecting')).toBeVisible({ timeout: 3_000 });
  await server.restart();
  for (const page of pages) await expect(page.getByTestId('reconnecting')).toBeHidden();
}

async function registered(context: BrowserContext, server: Server, kamailio: Kamailio, user: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${server.base}/sip.html?server=${kamailio.domain}&user=${user}`);
  await page.getByTestId('secret').fill(kamailio.secret(user));
  await page.getByTestId('register').click();
  await expect(page.getByTestId('status')).toHaveText(`Registered as ${user}.`);
  return page;
}

test('a phone keeps its call when the connection is lost, and registers again at a server that was started anew', FIREFOX, async ({ context }) => {
  needsPhones();
  const kamailio = await startKamailio();
  const server = await startServer({ workers: 1, config: `[sip]\nlocal_ip = "127.0.0.1"\ntls_cacert = "${kamailio.certificate}"\n` });
  try {
    const [ann, ben] = [newUser('ann'), newUser('ben')];
    const one = await context.newPage();
    const link = await interruptible(one);
    await one.goto(`${server.base}/sip.html?server=${kamailio.domain}&user=${ann}`);
    await one.getByTestId('secret').fill(kamailio.secret(ann));
    await one.getByTestId('register').click();
    await expect(one.getByTestId('status')).toHaveText(`Registered as ${ann}.`);
    const other = await registered(context, server, kamailio, ben);
    await dial(one, ben);
    await press(other, ann, 'accept');
    await talks(one, ben);
    await grows(one, 'inbound-rtp', 'audio', 'packetsReceived', 20);

    await link.cut();
    await expect(one.getByTestId('reconnecting')).toBeVisible();
    link.mend();
    await expect(one.getByTestId('reconnecting')).toBeHidden();
    await talks(one, ben);
    await grows(one, 'inbound-rtp', 'audio', 'packetsReceived', 20);
    // The session is the same: its handle does what it is asked for.
    await press(one, ben, 'hold');
    await expect(callWith(one, ben).getByTestId('call-state')).toContainText('On hold');
    await press(one, ben, 'hold');
    await talks(one, ben);

    await restarts(server, [one, other]);
    for (const [page, user, peer] of [[one, ann, ben], [other, ben, ann]] as const) {
      await expect(page.getByTestId('status')).toHaveText(`Registered as ${user}.`);
      await expect(page.getByTestId('call-card'), user).toHaveText([]);
      await expect(page.getByTestId('notice')).toContainText(`The call with ${peer} has ended, as the server was started anew.`);
    }
    await one.getByTestId('again').click();
    await press(other, ann, 'accept');
    await talks(one, ben);
    await grows(one, 'inbound-rtp', 'audio', 'packetsReceived', 20);
  } finally {
    await Promise.all(context.pages().map((page) => page.goto('about:blank')));
    await server.stop();
    await kamailio.stop();
  }
});

test('record & play goes on with what it played, says what became of a recording, and lists what was recorded', FIREFOX, async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'portunus-shelf-'));
  const server = await startServer({ workers: 1, config: `[recording]\ndir = ${JSON.stringify(folder)}\n` });
  try {
    await page.goto(`${server.base}/recordplay.html?source=synthetic&name=Demo&codec=vp8`);
    await page.getByTestId('record').click();
    await expect(page.getByTestId('passed')).toHaveText(/0:0[8-9]|0:1/);
    await page.getByTestId('end').click();
    await expect(page.getByTestId('recording')).toHaveCount(1);

    await page.getByTestId('play').click();
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
    await page.getByTestId('seek').fill('4');
    const at = () => page.getByTestId('seek').evaluate((range: HTMLInputElement) => Number(range.value));
    await expect.poll(at).toBeGreaterThan(4);
    await restarts(server, [page]);
    await expect(page.getByTestId('player')).toBeVisible();
    await expect(page.getByTestId('player-title')).toHaveText('Demo');
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 5);
    expect(await at()).toBeGreaterThan(4);
    await page.getByTestId('stop').click();
    await expect(page.getByTestId('player')).toBeHidden();

    await page.getByTestId('record').click();
    await expect(page.getByTestId('passed')).toHaveText(/0:0[3-9]/);
    await restarts(server, [page]);
    await expect(page.getByTestId('recorder')).toBeHidden();
    await expect(page.getByTestId('notice')).toContainText('has ended the recording');
    await expect(page.getByTestId('recording')).toHaveCount(2);
    await page.getByTestId('record-again').click();
    await expect(page.getByTestId('passed')).toHaveText(/0:0[1-9]/);
    await expect(page.getByTestId('recording-now')).toHaveText('● Recording');
    await page.getByTestId('end').click();
    await expect(page.getByTestId('recording')).toHaveCount(3);
  } finally {
    await page.goto('about:blank');
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a stream is played again', FIREFOX, async ({ page }) => {
  const media = '[[streaming.mountpoint.media]]\ntype = "video"\nmid = "v"\nport = 18910\npt = 96\ncodec = "vp8"\n';
  const server = await startServer({ workers: 1, config: `\n[[streaming.mountpoint]]\nid = 5\nname = "cam"\ntype = "rtp"\nbufferkf_ms = 5000\n${media}` });
  const line = '-v error -re -f lavfi -i testsrc2=size=320x180:rate=15 -c:v libvpx -deadline realtime -cpu-used 8 -g 30 -b:v 200k -payload_type 96 -f rtp rtp://127.0.0.1:18910';
  const feeder = spawn('ffmpeg', line.split(' '), { stdio: 'ignore' });
  try {
    await page.goto(`${server.base}/streaming.html`);
    await expect(page.getByTestId('state')).toContainText('media comes in');
    await page.getByTestId('play').click();
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
    await restarts(server, [page]);
    await expect(page.getByTestId('player')).toBeVisible();
    await expect(page.getByTestId('status')).toContainText('Playing');
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
    await expect(page.getByTestId('notice')).toBeHidden();
  } finally {
    feeder.kill('SIGKILL');
    await page.goto('about:blank');
    await server.stop();
  }
});

// The video call page, in several tabs.
import type { BrowserContext, Page } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { grows, mediaFlows, statsOf } from './stats';

let number = 0;

/** Opens a tab and registers a name that no other test uses; gives the tab and the name. */
async function user(context: BrowserContext, query = 'size=320x180&codec=vp8'): Promise<[Page, string]> {
  const name = `user${process.pid}-${(number += 1)}`;
  const page = await context.newPage();
  await page.goto(`/videocall.html?${query}&name=${name}`);
  await page.getByTestId('register').click();
  await expect(page.getByTestId('status')).toHaveText(`Registered as ${name}.`);
  return [page, name];
}

async function call(caller: Page, callee: string): Promise<void> {
  await caller.getByTestId('refresh').click();
  await caller.getByTestId(`call-${callee}`).click();
}

async function established(context: BrowserContext, query?: string): Promise<{ caller: Page; callee: Page; names: string[] }> {
  const [callee, name] = await user(context, query);
  const [caller, own] = await user(context, query);
  await call(caller, name);
  await expect(callee.getByTestId('incoming')).toContainText(`${own} is calling`);
  await callee.getByTestId('accept').click();
  await expect(caller.getByTestId('status')).toContainText('In a call');
  return { caller, callee, names: [own, name] };
}

/** The port of the server's that a tab's media goes to; each worker has its own. */
async function serverPort(page: Page): Promise<number> {
  const [transport] = await statsOf(page, 'transport');
  const pair = (await statsOf(page, 'candidate-pair')).find((stat) => stat.id === transport.selectedCandidatePairId);
  return (await statsOf(page, 'remote-candidate')).find((stat) => stat.id === pair?.remoteCandidateId)?.port;
}

test('two tabs call each other, on two workers, with text and a hang-up', FIREFOX, async ({ context }) => {
  const { caller, callee, names } = await established(context);
  await mediaFlows(caller, { audio: 'opus', video: 'VP8' });
  await mediaFlows(callee, { audio: 'opus', video: 'VP8' });
  if (!isReference) expect(await serverPort(caller)).not.toBe(await serverPort(callee));

  await caller.getByTestId('text-input').fill('can you read me?');
  await caller.getByTestId('text-send').click();
  await expect(callee.getByTestId('text-log')).toContainText('can you read me?');
  await callee.getByTestId('text-input').fill('yes');
  await callee.getByTestId('text-send').click();
  await expect(caller.getByTestId('text-log')).toContainText('yes');

  await callee.getByTestId('hangup').click();
  for (const [page, name] of [[caller, names[0]], [callee, names[1]]] as const) {
    await expect(page.getByTestId('status')).toHaveText(`Registered as ${name}.`);
  }
  await expect(caller.getByTestId('notice')).toContainText('hung up');

  // Both are free again.
  await call(callee, names[0]);
  await caller.getByTestId('accept').click();
  await mediaFlows(callee, { audio: true, video: true });
});

test('mute, bitrate and ICE restart in a call', async ({ context }) => {
  const { caller, callee } = await established(context);
  await mediaFlows(callee, { audio: true, video: true });
  await caller.getByTestId('mute-video').click();
  await expect
    .poll(async () => {
      const before = (await statsOf(callee, 'inbound-rtp', 'video'))[0]?.packetsReceived;
      await grows(callee, 'inbound-rtp', 'audio', 'packetsReceived', 30);
      return (await statsOf(callee, 'inbound-rtp', 'video'))[0]?.packetsReceived - before;
    })
    .toBe(0);
  await caller.getByTestId('mute-video').click();
  await grows(callee, 'inbound-rtp', 'video', 'framesDecoded', 10);

  await caller.getByTestId('restart').click();
  await mediaFlows(caller, { audio: true, video: true });
  await mediaFlows(callee, { audio: true, video: true });
  await expect(caller.getByTestId('notice')).toBeHidden();
});

test('a busy user is not disturbed', async ({ context }) => {
  const { caller, names } = await established(context);
  const [third, name] = await user(context);
  await call(third, names[1]);
  await expect(third.getByTestId('notice')).toContainText('another call');
  await expect(third.getByTestId('status')).toHaveText(`Registered as ${name}.`);
  await mediaFlows(caller, { audio: true, video: true });
});

test('a call is rejected', async ({ context }) => {
  const [callee, name] = await user(context);
  const [caller, own] = await user(context);
  await call(caller, name);
  await callee.getByTestId('reject').click();
  await expect(caller.getByTestId('notice')).toContainText('Call rejected');
  await expect(caller.getByTestId('status')).toHaveText(`Registered as ${own}.`);
  await expect(callee.getByTestId('status')).toHaveText(`Registered as ${name}.`);
});

test('the caller gives up before the answer', async ({ context }) => {
  const [callee, name] = await user(context);
  const [caller] = await user(context);
  await call(caller, name);
  await expect(callee.getByTestId('incoming')).toBeVisible();
  await caller.getByTestId('hangup').click();
  await expect(callee.getByTestId('incoming')).toBeHidden();
  await expect(callee.getByTestId('status')).toHaveText(`Registered as ${name}.`);
});

test('who hangs up while the browser asks for the camera calls nobody', async ({ context }) => {
  const [callee, name] = await user(context);
  const [caller, own] = await user(context);
  // The question is open until the test answers it.
  await caller.evaluate(() => {
    const devices = navigator.mediaDevices;
    const open = devices.getUserMedia.bind(devices);
    devices.getUserMedia = (constraints) =>
      new Promise((resolve, reject) => {
        (window as any).allow = () => open(constraints).then(resolve, reject);
      });
  });
  await call(caller, name);
  await expect(caller.getByTestId('status')).toHaveText(`Calling ${name}…`);
  await caller.getByTestId('hangup').click();
  await expect(caller.getByTestId('status')).toHaveText(`Registered as ${own}.`);
  await caller.evaluate(() => (window as any).allow());
  // Neither is taken for busy.
  await call(callee, own);
  await expect(caller.getByTestId('incoming')).toContainText(`${name} is calling`);
  await expect(callee.getByTestId('incoming')).toBeHidden();
});

test('closing the tab ends the call for the other side', async ({ context }) => {
  const { caller, callee, names } = await established(context);
  await mediaFlows(caller, { audio: true, video: true });
  await callee.close();
  await expect(caller.getByTestId('status')).toHaveText(`Registered as ${names[0]}.`);
});

test('a name can be taken only once', async ({ context }) => {
  const [, name] = await user(context);
  const page = await context.newPage();
  await page.goto(`/videocall.html?name=${name}`);
  await page.getByTestId('register').click();
  await expect(page.getByTestId('notice')).toContainText('already taken');
});

test('the callee chooses the simulcast layer of the caller', async ({ context }) => {
  const { caller, callee } = await established(context, 'size=1280x720&codec=vp8&simulcast=1');
  await mediaFlows(callee, { video: 'VP8' });
  await mediaFlows(caller, { video: 'VP8' });
  const width = async () => (await statsOf(callee, 'inbound-rtp', 'video'))[0]?.frameWidth;
  for (const [layer, expected] of [[0, 320], [1, 640]] as const) {
    await callee.getByTestId(`spatial-${layer}`).click();
    await expect.poll(width, { timeout: 40_000 }).toBe(expected);
  }
});

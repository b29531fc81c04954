// The controls of the echo test page: mute, bitrate, layers, text, restart.
import { isReference } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { grows, mediaFlows, rate, receivedWidth, statsOf } from './stats';

test('mute stops sound and picture, each alone', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&size=320x180');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });

  await page.getByTestId('mute-audio').click();
  await expect(page.getByTestId('mute-audio')).toHaveAttribute('aria-pressed', 'true');
  await expect.poll(() => rate(page, 'inbound-rtp', 'audio', 'packetsReceived')).toBe(0);
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
  await page.getByTestId('mute-audio').click();
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 20);

  await page.getByTestId('mute-video').click();
  await expect.poll(() => rate(page, 'inbound-rtp', 'video', 'framesDecoded')).toBe(0);
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 20);
  await page.getByTestId('mute-video').click();
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
});

test('a bitrate cap lowers what is sent, and lifting it raises it', async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&size=1280x720');
  await page.getByTestId('start').click();
  await mediaFlows(page, { video: true });
  const sent = async () => 8 * (await rate(page, 'outbound-rtp', 'video', 'bytesSent'));
  await expect.poll(sent, { message: 'free bitrate', timeout: 40_000 }).toBeGreaterThan(250_000);
  await page.getByTestId('bitrate').selectOption('128');
  await expect.poll(sent, { message: 'capped bitrate', timeout: 30_000 }).toBeLessThan(180_000);
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
  await page.getByTestId('bitrate').selectOption('0');
  await expect.poll(sent, { message: 'bitrate without the cap', timeout: 40_000 }).toBeGreaterThan(250_000);
});

test('simulcast by rid: each layer can be chosen', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&simulcast=1&size=1280x720');
  await page.getByTestId('start').click();
  await mediaFlows(page, { video: 'VP8' });
  await expect.poll(async () => (await statsOf(page, 'outbound-rtp', 'video')).map((stat) => stat.rid).sort()).toEqual(['h', 'l', 'm']);
  for (const [layer, width] of [[0, 320], [1, 640], [2, 1280], [0, 320]] as const) {
    await page.getByTestId(`spatial-${layer}`).click();
    await expect.poll(() => receivedWidth(page), { message: `width of layer ${layer}`, timeout: 40_000 }).toBe(width);
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
    await expect(page.getByTestId('figure-layer')).toContainText(`(${layer})`);
  }
});

test('simulcast: a lower temporal layer has fewer frames', async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&simulcast=1&size=1280x720');
  await page.getByTestId('start').click();
  await mediaFlows(page, { video: 'VP8' });
  await page.getByTestId('spatial-0').click();
  await expect.poll(() => receivedWidth(page)).toBe(320);
  const frames = () => rate(page, 'inbound-rtp', 'video', 'framesReceived');
  await expect.poll(frames).toBeGreaterThan(12);
  const all = await frames();
  await page.getByTestId('temporal-0').click();
  await expect.poll(frames).toBeLessThan(all * 0.75);
  await page.getByTestId('temporal-2').click();
  await expect.poll(frames).toBeGreaterThan(all * 0.75);
});

for (const [name, mime] of [['vp9', 'VP9'], ['av1', 'AV1']] as const) {
  test(`SVC with ${mime}: each spatial layer can be chosen`, async ({ page }) => {
    test.skip(isReference, 'the reference is older than SVC in the echo test');
    await page.goto(`/echotest.html?codec=${name}&svc=L3T3&size=1280x720`);
    await page.getByTestId('start').click();
    await mediaFlows(page, { video: mime });
    await expect.poll(async () => (await statsOf(page, 'outbound-rtp', 'video'))[0]?.scalabilityMode).toBe('L3T3');
    for (const [layer, width] of [[0, 320], [2, 1280], [1, 640]] as const) {
      await page.getByTestId(`spatial-${layer}`).click();
      await expect.poll(() => receivedWidth(page), { message: `width of layer ${layer}`, timeout: 40_000 }).toBe(width);
      await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 10);
    }
  });
}

test('text comes back with the echo prefix', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?source=none');
  await page.getByTestId('start').click();
  await page.getByTestId('text-input').fill('knock knock');
  await page.getByTestId('text-send').click();
  await expect(page.getByTestId('text-log')).toContainText('Janus EchoTest here! You wrote: knock knock');
});

test('an ICE restart by the button keeps the call', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&size=320x180');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
  const ufrag = async () => (await statsOf(page, 'transport'))[0].iceLocalUsernameFragment;
  const before = await ufrag();
  await page.getByTestId('restart').click();
  await expect.poll(ufrag).not.toBe(before);
  await mediaFlows(page, { audio: true, video: true });
  await expect(page.getByTestId('notice')).toBeHidden();
});

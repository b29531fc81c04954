// The echo test page with each codec.
import { expect, FIREFOX, firefoxWith, test } from './fixtures';
import { codec, mediaFlows } from './stats';

for (const [name, mime, size] of [
  ['vp8', 'VP8', '640x360'],
  ['vp9', 'VP9', '640x360'],
  ['h264', 'H264', '640x360'],
  ['av1', 'AV1', '320x180'],
] as const) {
  test(`echo with ${mime} and Opus`, firefoxWith(name), async ({ page }) => {
    await page.goto(`/echotest.html?codec=${name}&size=${size}`);
    const encodes = await page.evaluate(
      (mime) => RTCRtpSender.getCapabilities('video')?.codecs.some((codec) => codec.mimeType === `video/${mime}`),
      mime,
    );
    test.skip(!encodes, `this browser has no ${mime} encoder`);
    await page.getByTestId('start').click();
    await expect(page.getByTestId('status')).toContainText('Connected');
    await mediaFlows(page, { audio: 'opus', video: mime });
    expect(await codec(page, 'outbound-rtp', 'video')).toBe(mime);
    await expect(page.getByTestId('figure-video-codec')).toHaveText(mime);
    await expect(page.getByTestId('figure-srtp')).not.toHaveText('–');
    await page.getByTestId('hangup').click();
    await expect(page.getByTestId('start')).toBeVisible();
  });
}

for (const [name, mime] of [['pcmu', 'PCMU'], ['g722', 'G722']] as const) {
  test(`echo with ${mime}`, FIREFOX, async ({ page }) => {
    await page.goto(`/echotest.html?audiocodec=${name}&size=320x180`);
    await page.getByTestId('start').click();
    await mediaFlows(page, { audio: mime, video: true });
  });
}

test('a synthetic source, whose address the browser hides, is echoed', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?source=synthetic&size=320x180');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: 'opus', video: true });
});

test('the page can be reloaded in a call, and a second call follows a first', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&size=320x180');
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
  await page.reload();
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
  await page.getByTestId('hangup').click();
  await page.getByTestId('start').click();
  await mediaFlows(page, { audio: true, video: true });
});

for (const transport of ['http', 'ws'] as const) {
  test(`the page works over ${transport} alone`, FIREFOX, async ({ page }) => {
    await page.goto(`/echotest.html?transport=${transport}&size=320x180`);
    await page.getByTestId('start').click();
    await expect(page.getByTestId('status')).toContainText(transport === 'ws' ? 'WebSocket' : 'HTTP');
    await mediaFlows(page, { audio: true, video: true });
  });
}

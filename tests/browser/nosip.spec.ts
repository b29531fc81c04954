// Plain RTP between two handles: on its page, and by janus.js as Janus's demo does.
import { isReference, startServer } from '../server/index.mjs';
import { expect, test as base } from './fixtures';
import { blankPage, client } from './in-page';
import { grows, mediaFlows } from './stats';

const test = base.extend({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2, config: '[nosip]\nlocal_ip = "127.0.0.1"\n' });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
});

for (const [srtp, profile, says] of [
  ['', '', 'plain RTP'],
  ['sdes_optional', 'AES_CM_128_HMAC_SHA1_32', 'SRTP'],
  ['sdes_mandatory', 'AEAD_AES_256_GCM', 'SRTP'],
] as const) {
  test(`two ends of the page see and hear each other, ${srtp || 'plain'}`, async ({ page }) => {
    await page.goto(`/nosip.html?source=synthetic&srtp=${srtp}&profile=${profile}`);
    await page.getByTestId('start').click();
    await expect(page.getByTestId('status')).toHaveText(`In a call by ${says}.`);
    const offer = await page.getByTestId('offer').textContent();
    expect(offer).toMatch(srtp === 'sdes_mandatory' ? /^m=audio \d+ RTP\/SAVP /m : /^m=audio \d+ RTP\/AVP /m);
    if (profile) expect(offer).toContain(`a=crypto:1 ${profile} inline:`);
    else expect(offer).not.toContain('a=crypto');
    expect(offer).not.toMatch(/^a=(ice|fingerprint|candidate|setup)/m);
    await mediaFlows(page, { audio: true, video: true });
    for (const end of ['caller', 'callee']) {
      await expect.poll(() => page.getByTestId(`${end}-video`).evaluate((video: HTMLVideoElement) => video.videoWidth)).toBe(640);
    }
    // Sound is decoded for who hears it only.
    await page.getByTestId('callee-video').evaluate((video: HTMLVideoElement) => (video.muted = false));
    await grows(page, 'inbound-rtp', 'audio', 'totalAudioEnergy', 1e-6);
    await page.getByTestId('stop').click();
    await expect(page.getByTestId('status')).toHaveText('Hung up.');
    await expect(page.getByTestId('start')).toBeVisible();
  });
}

test('janus.js: a call, a renegotiation, keyframes, recording, the end', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await page.evaluate(`(async () => {
    window.ends = [];
    for (const name of ['caller', 'callee']) ends.push(await Client.open(${JSON.stringify(server.ws)}, 'janus.plugin.nosip'));
    const make = (end, what, options) => new Promise((success, error) => end.handle[what]({ ...options, success, error }));
    window.dial = async (srtp, tracks) => {
      const [caller, callee] = ends;
      const offered = await caller.ask({ request: 'generate', srtp }, await make(caller, 'createOffer', { tracks }));
      const ringing = await callee.ask({ request: 'process', type: 'offer', sdp: offered.data.result.sdp, srtp });
      const answered = await callee.ask({ request: 'generate', srtp }, await make(callee, 'createAnswer', { jsep: ringing.jsep, tracks }));
      const accepted = await caller.ask({ request: 'process', type: 'answer', sdp: answered.data.result.sdp, srtp });
      await make(caller, 'handleRemoteJsep', { jsep: accepted.jsep });
      return [offered, ringing, answered, accepted].map(({ data }) => data.result);
    };
  })()`);
  const sound = `[{ type: 'audio', capture: true, recv: true }]`;
  const [offered, ringing, answered, accepted] = await client<Record<string, any>[]>(page, `dial('sdes_mandatory', ${sound})`);
  expect(offered).toMatchObject({ event: 'generated', type: 'offer' });
  expect(ringing).toMatchObject({ event: 'processed', srtp: 'sdes_mandatory' });
  expect(answered).toMatchObject({ event: 'generated', type: 'answer' });
  expect(accepted).toMatchObject({ event: 'processed', srtp: 'sdes_mandatory' });
  await mediaFlows(page, { audio: true });
  const renewed = await client<Record<string, any>[]>(page, `dial('sdes_mandatory', [{ type: 'video', capture: picture(), recv: true, add: true }])`);
  expect(renewed[0]).toMatchObject({ event: 'generated', update: true });
  expect(renewed[1]).toMatchObject({ event: 'processed', update: true });
  await mediaFlows(page, { audio: true, video: true });
  // The reference is older: it does not say so, and ends at the other.
  if (!isReference) {
    const keyframe = await client(page, `ends[0].ask({ request: 'keyframe', user: true, peer: true }).then(({ data }) => data)`);
    expect(keyframe).toEqual({ nosip: 'event', result: { event: 'keyframesent' } });
    expect(await client(page, `ends[0].ask({ request: 'rtp_forward', streams: [] }).then(({ data }) => data.error_code)`)).toBe(443);
  }
  expect(await client(page, `ends[0].ask({ request: 'hangup' }).then(({ data }) => data)`)).toMatchObject({ nosip: 'event', result: { event: 'hangingup' } });
  await expect.poll(() => client(page, 'ends[0].hangups.length')).toBeGreaterThan(0);
});

// janus.js as applications use it: over each transport, with data channels, renegotiation and restarts.
import { isReference } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { AUDIO, blankPage, client, DATA, start, VIDEO } from './in-page';
import { grows, mediaFlows, rate, stats, statsOf } from './stats';

for (const transport of ['http', 'ws'] as const) {
  test(`janus.js over ${transport === 'ws' ? 'WebSocket' : 'HTTP long poll'}`, FIREFOX, async ({ page, server, clientScript }) => {
    await blankPage(page, server, clientScript);
    await start(page, server[transport], `[${AUDIO}, ${VIDEO}, ${DATA}]`, { audio: true, video: true });
    await expect.poll(() => client(page, 'client.up')).toBe(true);
    await mediaFlows(page, { audio: 'opus', video: true });
    expect(await client(page, `(await client.ask({ bitrate: 'much' })).data.error_code`)).toBe(413);
    // Media events say that sound and picture arrive at the server.
    await expect.poll(() => client<string[]>(page, 'client.media')).toEqual(expect.arrayContaining(['audio 0 true', 'video 1 true']));
    await client(page, 'client.handle.hangup()');
    await expect.poll(() => client<object[]>(page, 'client.messages')).toContainEqual({ echotest: 'event', result: 'done' });
    await client(page, 'client.destroy()');
  });
}

test('sound of six channels comes back', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await client(page, `window.client = await Client.open(${JSON.stringify(server.ws)}), null`);
  // Chromium offers it to those only who write it into the description. The answer has to say how the channels are packed.
  const surround = `(jsep) => {
    const pt = /a=rtpmap:(\\d+) opus/.exec(jsep.sdp)[1];
    const packing = 'channel_mapping=0,4,1,2,3,5;coupled_streams=2;num_streams=4;useinbandfec=1';
    jsep.sdp = jsep.sdp
      .replace('opus/48000/2', 'multiopus/48000/6')
      .replace(new RegExp('a=fmtp:' + pt + ' .*'), 'a=fmtp:' + pt + ' ' + packing);
  }`;
  await client(page, `client.negotiate([${AUDIO}], { audio: true, audiocodec: 'multiopus' }, { customizeSdp: ${surround} })`);
  await mediaFlows(page, { audio: 'multiopus' });
  await grows(page, 'inbound-rtp', 'audio', 'totalAudioEnergy', 1e-9);
});

for (const [name, track, body, told] of [
  ['simulcast', 'simulcast: true', { videocodec: 'vp8' }, { substream: 2, tot_temporal_layers: 2 }],
  ['SVC', `svc: 'L3T3'`, { videocodec: 'vp9' }, { spatial_layer: 2, tot_spatial_layers: 3, tot_temporal_layers: 3 }],
] as const) {
  test(`${name}: the client is told how many layers it sends`, async ({ page, server, clientScript }) => {
    test.skip(isReference, 'the reference is older');
    await blankPage(page, server, clientScript);
    await client(page, `window.client = await Client.open(${JSON.stringify(server.ws)}), null`);
    // Chromium offers the extension that says so with simulcast only.
    const extension = `(jsep) => {
      const uri = 'http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00';
      if (!jsep.sdp.includes(uri)) jsep.sdp += 'a=extmap:9 ' + uri + '\\r\\n';
    }`;
    const video = `{ type: 'video', capture: { width: 1280, height: 720 }, recv: true, ${track} }`;
    await client(page, `client.negotiate([${video}], ${JSON.stringify({ video: true, ...body })}, { customizeSdp: ${extension} })`);
    await expect.poll(() => client<object[]>(page, 'client.messages')).toContainEqual(expect.objectContaining(told));
  });
}

test('an offer that cannot be parsed is refused, and the next one works', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await client(page, `window.client = await Client.open(${JSON.stringify(server.ws)}), null`);
  const refused = await page.evaluate(`client.ask({ audio: true }, { type: 'offer', sdp: 'this is no SDP' }).then(
    (answer) => JSON.stringify(answer.data), (error) => String(error))`);
  expect(refused).toMatch(/4\d\d/);
  await client(page, `client.negotiate([${AUDIO}], { audio: true })`);
  await mediaFlows(page, { audio: 'opus' });
});

test('data channels echo text and binary, each on its label', FIREFOX, async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await start(page, server.ws, `[${DATA}]`, { audio: false });
  await expect.poll(() => client(page, 'client.open')).toBe(true);
  await client(page, `client.send('hello, wörld')`);
  await expect.poll(() => client(page, 'client.received')).toEqual(['Janus EchoTest here! You wrote: hello, wörld']);
  await client(page, `client.send([0, 1, 2, 255])`);
  await expect.poll(() => client(page, 'client.received.at(-1)')).toEqual([0, 1, 2, 255]);
  // Another label is another channel.
  await client(page, `client.send('over there', 'second')`);
  await expect.poll(() => client(page, 'client.labels.at(-1)')).toBe('second');
  await expect.poll(() => client(page, 'client.received.at(-1)')).toBe('Janus EchoTest here! You wrote: over there');
});

test('a data channel echoes a message of 200 KB', FIREFOX, async ({ page, server, clientScript }) => {
  test.skip(isReference, 'the reference takes 64 KB');
  await blankPage(page, server, clientScript);
  await start(page, server.ws, `[${DATA}]`, { audio: false });
  await expect.poll(() => client(page, 'client.open')).toBe(true);
  await client(page, `client.send(Array.from({ length: 200_000 }, (_, index) => index % 251))`);
  await expect.poll(() => client(page, 'client.received.at(-1)?.length')).toBe(200_000);
  expect(await client(page, 'client.received.at(-1).every((byte, index) => byte === index % 251)')).toBe(true);
});

test('many small messages arrive in order', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await start(page, server.ws, `[${DATA}]`, { audio: false });
  await expect.poll(() => client(page, 'client.open')).toBe(true);
  await client(page, `Promise.all(Array.from({ length: 1000 }, (_, n) => client.send([n & 255, n >> 8])))`);
  await expect.poll(() => client(page, 'client.received.length')).toBe(1000);
  expect(await client(page, 'client.received.every(([low, high], n) => low + 256 * high === n)')).toBe(true);
});

test('renegotiation adds a second picture and removes it again', FIREFOX, async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await start(page, server.ws, `[${AUDIO}, ${VIDEO}]`, { audio: true, video: true });
  await mediaFlows(page, { audio: true, video: true });

  await client(page, `client.negotiate([{ type: 'video', capture: picture(), recv: true, add: true }])`);
  expect(await client(page, 'client.directions()')).toEqual({ 0: 'sendrecv', 1: 'sendrecv', 2: 'sendrecv' });
  const frames = async (mid: string) => {
    const stream = (await statsOf(page, 'inbound-rtp', 'video')).find((stat) => stat.mid === mid);
    return (stream?.framesDecoded as number) ?? 0;
  };
  await expect.poll(() => frames('2'), { message: 'the added picture comes back' }).toBeGreaterThan(10);
  await grows(page, 'inbound-rtp', 'audio', 'packetsReceived', 20);

  await client(page, `client.negotiate([{ type: 'video', mid: '2', remove: true, recv: false }])`);
  expect((await client<Record<string, string>>(page, 'client.directions()'))['2']).toBe('inactive');
  const first = await frames('1');
  await expect.poll(() => frames('1'), { message: 'the first picture goes on' }).toBeGreaterThan(first + 10);

  // The section that became free is used again.
  await client(page, `client.negotiate([{ type: 'video', capture: picture(), recv: true, mid: '2' }])`);
  await mediaFlows(page, { audio: true, video: true });
});

test('sound first, picture and data later', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await start(page, server.ws, `[${AUDIO}]`, { audio: true });
  await mediaFlows(page, { audio: 'opus' });
  await client(page, `client.negotiate([{ ...${VIDEO}, add: true }])`);
  await mediaFlows(page, { audio: 'opus', video: true });
  await client(page, `client.negotiate([${DATA}])`);
  await expect.poll(() => client(page, 'client.open')).toBe(true);
  await client(page, `client.send('late')`);
  await expect.poll(() => client(page, 'client.received')).toEqual(['Janus EchoTest here! You wrote: late']);
});

test('an ICE restart changes the credentials and media goes on', async ({ page, server, clientScript }) => {
  await blankPage(page, server, clientScript);
  await start(page, server.ws, `[${AUDIO}, ${VIDEO}]`, { audio: true, video: true });
  await mediaFlows(page, { audio: true, video: true });
  const credentials = () =>
    client<string[]>(page, `['localDescription', 'remoteDescription'].map((which) =>
      client.handle.webrtcStuff.pc[which].sdp.match(/a=ice-ufrag:(\\S+)/)[1])`);
  const before = await credentials();
  await client(page, `client.negotiate([], {}, { iceRestart: true })`);
  const after = await credentials();
  expect(after[0]).not.toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
  await expect
    .poll(async () => (await stats(page)).find((stat) => stat.type === 'transport')?.iceLocalUsernameFragment)
    .toBe(after[0]);
  await mediaFlows(page, { audio: true, video: true });
  expect(await rate(page, 'inbound-rtp', 'audio', 'packetsReceived')).toBeGreaterThan(25);
});

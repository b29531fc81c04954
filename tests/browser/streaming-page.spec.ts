// The streaming page: the list, playing, layers, PINs, the lines to copy; fed with each codec.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, firefoxWith, test as base } from './fixtures';
import { grows, mediaFlows, receivedWidth, sum } from './stats';

const PHONE = { width: 360, height: 740 };

/** The first of the ports of the mountpoints; each has a block of ten. The kernel gives none of these to others. */
const PORTS = 18_000;

const mountpoint = (id: number, keys: string, media: string[]) => `
[[streaming.mountpoint]]
id = ${id}
${keys}
${media.map((one) => `[[streaming.mountpoint.media]]\n${one}\n`).join('')}`;

const CODECS = { vp8: 11, vp9: 12, h264: 13, av1: 14 };

/** SRTP suites and mountpoints that take them. */
const SRTP = { 80: 25, 32: 26 };
const SRTP_KEY = 'MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkw';

const CONFIG =
  Object.entries(CODECS)
    .map(([codec, id]) =>
      mountpoint(id, `name = "${codec}"\ntype = "rtp"\ndescription = "Camera ${codec}"\nbufferkf_ms = 20000`, [
        `type = "audio"\nmid = "a"\nport = ${PORTS + id * 10}\npt = 111\ncodec = "opus"`,
        `type = "video"\nmid = "v"\nlabel = "picture"\nport = ${PORTS + id * 10 + 2}\npt = 96\ncodec = "${codec}"` +
          (codec === 'h264' ? '\nfmtp = "profile-level-id=42e01f;packetization-mode=1"' : ''),
      ]),
    )
    .join('') +
  mountpoint(21, 'name = "locked"\ntype = "rtp"\npin = "1234"\nsecret = "s3cret"', [
    `type = "video"\nmid = "v"\nport = ${PORTS + 210}\npt = 96\ncodec = "vp8"`,
  ]) +
  mountpoint(22, 'name = "layers"\ntype = "rtp"', [
    `type = "video"\nmid = "v"\nport = ${PORTS + 220}\nport2 = ${PORTS + 222}\nport3 = ${PORTS + 224}\npt = 96\ncodec = "vp8"\nsimulcast = true`,
  ]) +
  mountpoint(23, 'name = "stage"\ntype = "whip"\ntoken = "t0ken"\nsecret = "s3cret"', ['type = "audio"\nmid = "a"', 'type = "video"\nmid = "v"']) +
  mountpoint(24, 'name = "words"\ntype = "rtp"', [`type = "data"\nmid = "d"\nport = ${PORTS + 240}`]) +
  Object.entries(SRTP)
    .map(([suite, id]) =>
      mountpoint(id, `name = "sealed${suite}"\ntype = "rtp"\nbufferkf_ms = 20000\nsrtpsuite = ${suite}\nsrtpcrypto = "${SRTP_KEY}"`, [
        `type = "video"\nmid = "v"\nport = ${PORTS + id * 10}\nrtcpport = ${PORTS + id * 10 + 1}\npt = 96\ncodec = "vp8"`,
      ]),
    )
    .join('') +
  mountpoint(27, 'name = "group"\ntype = "rtp"', [
    `type = "video"\nmid = "v"\nport = ${PORTS + 270}\nmcast = "239.255.12.27"\niface = "127.0.0.1"\npt = 96\ncodec = "vp8"`,
    `type = "audio"\nmid = "a"\nport = ${PORTS + 272}\niface = "127.0.0.1"\npt = 111\ncodec = "opus"`,
    `type = "data"\nmid = "d"\nport = ${PORTS + 274}`,
  ]) +
  mountpoint(28, 'name = "vp8 stage"\ntype = "whip"\ntoken = "t0ken"', ['type = "audio"\nmid = "a"\ncodec = "opus"', 'type = "video"\nmid = "v"\ncodec = "vp8"']) +
  mountpoint(29, 'name = "phone"\ntype = "whip"', ['type = "audio"\nmid = "a"\ncodec = "pcmu"']) +
  // Nobody is at its port.
  mountpoint(30, `name = "camera"\ntype = "rtsp"\nurl = "rtsp://127.0.0.1:${PORTS + 300}/"\nvideo = true\nrtsp_failcheck = false`, []);

const test = base.extend<{ feed: (line: string) => ChildProcess }, {}>({
  server: [
    async ({}, use) => {
      const server = await startServer({ workers: 2, config: CONFIG });
      await use(server);
      expect(await server.stop()).toBe(0);
    },
    { scope: 'worker' },
  ],
  /** Runs a line as somebody would who has copied it, until the end of the test. */
  feed: async ({}, use) => {
    const feeders: ChildProcess[] = [];
    await use((line) => {
      const child = spawn('bash', ['-c', `exec ${line}`], { stdio: ['ignore', 'ignore', 'pipe'] });
      let output = '';
      child.stderr?.on('data', (text) => (output = (output + text).slice(-3000)));
      child.on('exit', (status) => status && console.log(`    ${line.slice(0, 60)}… ended with ${status}: ${output}`));
      feeders.push(child);
      return child;
    });
    for (const child of feeders) child.kill('SIGKILL');
  },
});

test.skip(isReference, 'needs mountpoints of its own');

/** The line that the page shows for a tool, with a picture small enough for any machine. */
async function lineFor(page: Page, id: number, tool: string): Promise<string> {
  const row = page.getByTestId(`mountpoint-${id}`);
  await row.getByTestId('feed').click();
  const line = (await row.getByTestId(`line-${tool}`).textContent()) ?? '';
  return line.replaceAll('size=1280x720', 'size=320x180').replaceAll('width=1280,height=720', 'width=320,height=180').replaceAll('2M', '300k');
}

async function play(page: Page, id: number): Promise<void> {
  await page.getByTestId(`mountpoint-${id}`).getByTestId('play').click();
}

for (const [codec, id] of Object.entries(CODECS)) {
  test(`the page’s line for ffmpeg feeds ${codec} and Opus, and the page plays it`, firefoxWith(codec), async ({ page, feed }) => {
    await page.goto('/streaming.html');
    const line = await lineFor(page, id, 'ffmpeg');
    if (codec === 'av1') {
      // Debian's ffmpeg cannot put AV1 into RTP yet; the libraries of PyAV can.
      const python = new URL('../.venv/bin/python', import.meta.url).pathname;
      test.skip(!existsSync(python), 'scripts/setup interop was not run');
      feed(`${python} ${new URL('../interop/send_av1.py', import.meta.url).pathname} ${PORTS + id * 10 + 2}`);
      feed(line.replace(/-map 1 .*/, '').replace(/-f lavfi -i testsrc2\S+/, '').replace('-map 0 ', ''));
    } else {
      feed(line);
    }
    await expect(page.getByTestId(`mountpoint-${id}`).getByTestId('state')).toContainText('media comes in');
    await play(page, id);
    await expect(page.getByTestId('status')).toContainText('Playing');
    await mediaFlows(page, { audio: 'opus', video: codec.toUpperCase() });
    await expect(page.getByTestId('figure-video-codec')).toHaveText(codec.toUpperCase());
    await expect(page.getByTestId('figure-audio-codec')).toHaveText('opus');
    await expect(page.getByTestId('figure-size-in')).toContainText('320×180');
    for (const figure of ['bitrate-in', 'loss-in', 'round-trip', 'srtp']) {
      await expect(page.getByTestId(`figure-${figure}`)).not.toHaveText('–');
    }
    await page.getByTestId('stop').click();
    await expect(page.getByTestId('player')).toBeHidden();
    await expect(page.getByTestId('status')).toHaveText('Ready.');
  });
}

test('the line for GStreamer works too, one follows another, and a pause holds the picture', async ({ page, feed }) => {
  await page.goto('/streaming.html');
  feed(await lineFor(page, CODECS.vp8, 'gstreamer'));
  feed(await lineFor(page, CODECS.h264, 'ffmpeg'));
  await play(page, CODECS.vp8);
  await mediaFlows(page, { audio: 'opus', video: 'VP8' });
  await page.getByTestId('pause').click();
  await expect(page.getByTestId('pause')).toHaveText('Go on');
  await page.getByTestId('pause').click();
  await expect(page.getByTestId('pause')).toHaveText('Pause');
  await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 20);
  await play(page, CODECS.h264);
  await expect(page.getByTestId('player-title')).toHaveText('Camera h264');
  await mediaFlows(page, { audio: 'opus', video: 'H264' });
});

test('the picture is there within 300 ms, from the kept keyframe', async ({ page, feed }) => {
  await page.goto('/streaming.html');
  // There is no RTCP port, so that nobody can ask for a keyframe; they come every 20 s.
  feed((await lineFor(page, CODECS.vp8, 'ffmpeg')).replaceAll('-g 60', '-g 600'));
  await expect(page.getByTestId(`mountpoint-${CODECS.vp8}`).getByTestId('state')).toContainText('media comes in');
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    await play(page, CODECS.vp8);
    times.push(
      await page.evaluate(
        () =>
          new Promise<number>((done) => {
            const made = (window as any).peerConnections as RTCPeerConnection[];
            const count = made.length;
            let up = 0;
            const look = async () => {
              const connection = made.at(-1);
              if (connection && (made.length > count || connection.connectionState !== 'closed')) {
                if (!up && connection.connectionState === 'connected') up = performance.now();
                const video = [...(await connection.getStats()).values()].find((one) => one.type === 'inbound-rtp' && one.kind === 'video');
                if (up && video?.framesDecoded > 0) return done(performance.now() - up);
              }
              setTimeout(look, 5);
            };
            void look();
          }),
      ),
    );
    await grows(page, 'inbound-rtp', 'video', 'framesDecoded', 5);
    await page.getByTestId('stop').click();
    await expect(page.getByTestId('status')).toHaveText('Ready.');
  }
  console.log(`    first frame after the connection: ${times.map((time) => time.toFixed(0)).join(', ')} ms`);
  // The middle of some: what the server does is the same each time, what else the machine does is not.
  expect(times.sort((a, b) => a - b)[2]).toBeLessThan(300);
});

test('layers of a simulcast source are chosen', async ({ page, feed }) => {
  await page.goto('/streaming.html');
  const row = page.getByTestId('mountpoint-22');
  await row.getByTestId('feed').click();
  const line = (await row.getByTestId('line-ffmpeg').textContent()) ?? '';
  feed(line.replaceAll('2M', '300k').replace('scale=1280:720', 'scale=960:540'));
  await play(page, 22);
  await mediaFlows(page, { video: 'VP8' });
  await expect(page.getByTestId('layers')).toBeVisible();
  for (const [level, width] of [[0, 320], [2, 960], [1, 640]] as const) {
    await page.getByTestId(`substream-${level}`).click();
    await expect.poll(() => receivedWidth(page)).toBe(width);
    await expect(page.getByTestId('figure-layer')).toContainText(`(${level})`);
  }
});

test('a film on demand has a bar to go to another position', FIREFOX, async ({ page }, info) => {
  const film = info.outputPath('film.webm');
  // Half a minute of black, then of white.
  const colours = '-f lavfi -i color=black:size=320x180:rate=10:duration=30 -f lavfi -i color=white:size=320x180:rate=10:duration=30';
  const line = `-v error ${colours} -filter_complex [0][1]concat -c:v libvpx -deadline realtime -cpu-used 8 -g 10 -b:v 100k ${film}`;
  execFileSync('ffmpeg', line.split(' '));
  const server = await startServer({ workers: 1, config: `[[streaming.mountpoint]]\nname = "film"\ntype = "ondemand"\nid = 5\nfilename = "${film}"\n` });
  try {
    await page.goto(`${server.base}/streaming.html?play=5`);
    await mediaFlows(page, { video: 'VP8' });
    await expect(page.getByTestId('position')).toBeVisible();
    await expect(page.getByTestId('time')).toContainText('of 1:00');
    /** How bright the middle of the picture is. */
    const brightness = () =>
      page.getByTestId('tiles').locator('video').first().evaluate((video) => {
        const canvas = document.createElement('canvas');
        canvas.width = canvas.height = 1;
        const context = canvas.getContext('2d')!;
        context.drawImage(video as HTMLVideoElement, 0, 0, 1, 1);
        return context.getImageData(0, 0, 1, 1).data[0];
      });
    await expect.poll(brightness).toBeLessThan(60);
    for (const [position, bright] of [[45, true], [3, false], [40, true]] as const) {
      await page.getByTestId('seek').fill(String(position));
      if (bright) await expect.poll(brightness).toBeGreaterThan(200);
      else await expect.poll(brightness).toBeLessThan(60);
      await expect(page.getByTestId('time')).toContainText(`0:${String(position).padStart(2, '0').slice(0, 1)}`);
    }
    await page.getByTestId('stop').click();
    await expect(page.getByTestId('position')).toBeHidden();
    await page.goto('about:blank');
  } finally {
    expect(await server.stop()).toBe(0);
  }
});

test('who has no mountpoint yet makes one with a click, and feeds it', async ({ page, feed }) => {
  // A server as it starts without any configuration.
  const empty = await startServer({ workers: 1 });
  await page.goto(`${empty.base}/streaming.html`);
  await page.getByTestId('try-rtp').click();
  await expect(page.getByTestId('state')).toContainText('nothing has come so far');
  const line = (await page.getByTestId('line-ffmpeg').textContent()) ?? '';
  feed(line.replaceAll('size=1280x720', 'size=320x180').replaceAll('2M', '300k'));
  await expect(page.getByTestId('state')).toContainText('media comes in');
  await page.getByTestId('play').click();
  await mediaFlows(page, { audio: 'opus', video: 'VP8' });
  await page.goto('about:blank');
  expect(await empty.stop()).toBe(0);
});

test('a pause outlasts a connection that comes up after it', async ({ page }) => {
  let held: (() => void) | undefined;
  await page.routeWebSocket(/./, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      const { transaction, plugindata } = JSON.parse(String(message));
      if (transaction === undefined && plugindata?.data?.result?.status === 'started') held = () => socket.send(message);
      else socket.send(message);
    });
  });
  await page.goto('/streaming.html');
  await play(page, CODECS.vp8);
  await expect.poll(() => held !== undefined).toBe(true);
  const pause = page.getByTestId('pause');
  await pause.click();
  await expect(pause).toHaveText('Go on');
  held?.();
  // What comes after it has been read once this has.
  await lineFor(page, CODECS.h264, 'ffmpeg');
  await expect(pause).toHaveText('Go on');
  await pause.click();
  await expect(pause).toHaveText('Pause');
});

test('a PIN is asked for, and a secret before ports are shown', async ({ page, feed }) => {
  await page.goto('/streaming.html');
  const row = page.getByTestId('mountpoint-21');
  await row.getByTestId('feed').click();
  await expect(row.getByTestId('unfed')).toContainText('secret');
  await row.getByTestId('secret').fill('s3cret');
  await row.getByTestId('use-secret').click();
  const line = (await row.getByTestId('line-ffmpeg').textContent()) ?? '';
  expect(line).toContain(`:${PORTS + 210}`);
  feed(line.replace('size=1280x720', 'size=320x180').replace('2M', '300k'));
  await play(page, 21);
  await expect(page.getByTestId('notice')).toContainText('PIN');
  await row.getByTestId('pin').fill('wrong');
  await row.getByTestId('use-pin').click();
  await expect(page.getByTestId('notice')).toContainText('PIN');
  await row.getByTestId('pin').fill('1234');
  await row.getByTestId('use-pin').click();
  await mediaFlows(page, { video: 'VP8' });
});

test('a camera that is away and a stage that nobody publishes to are told', async ({ page }) => {
  await page.goto('/streaming.html');
  for (const [id, why] of [[23, 'no source: nobody publishes'], [30, 'no source: its RTSP server is not connected']] as const) {
    await expect(page.getByTestId(`mountpoint-${id}`).getByTestId('state')).toContainText(why);
  }
});

test('a mountpoint of type whip shows where to publish', async ({ page, server }) => {
  await page.goto('/streaming.html');
  const row = page.getByTestId('mountpoint-23');
  await row.getByTestId('feed').click();
  for (const tool of ['obs', 'ffmpeg', 'gstreamer']) {
    await expect(row.getByTestId(`line-${tool}`)).toContainText(`${server.base}/whip/23`);
  }
  await expect(row.getByTestId('line-ffmpeg')).toContainText('-authorization TOKEN');
  await row.getByTestId('secret').fill('s3cret');
  await row.getByTestId('use-secret').click();
  await expect(row.getByTestId('line-ffmpeg')).toContainText('-authorization t0ken');
  await row.getByTestId('play').click();
  await expect(page.getByTestId('notice')).not.toBeEmpty();
});

test('a mountpoint of type whip with codecs of its own shows what can send them', async ({ page }) => {
  await page.goto('/streaming.html');
  const stage = page.getByTestId('mountpoint-28');
  await stage.getByTestId('feed').click();
  const gstreamer = stage.getByTestId('line-gstreamer');
  await expect(gstreamer).toContainText('video-caps=video/x-vp8 audio-caps=audio/x-opus');
  await expect(gstreamer).toContainText('signaller::auth-token=TOKEN');
  await expect(stage.getByTestId('line-ffmpeg')).toHaveCount(0);
  await expect(stage.getByTestId('line-obs')).toHaveCount(0);
  // It has none that could be asked for.
  await expect(stage.getByTestId('secret')).toHaveCount(0);
  const phone = page.getByTestId('mountpoint-29');
  await phone.getByTestId('feed').click();
  await expect(phone.getByTestId('line-whip')).toContainText('/whip/29');
  await expect(phone).toContainText('PCMU');
});

for (const [suite, id] of Object.entries(SRTP)) {
  for (const tool of ['ffmpeg', 'gstreamer']) {
    test(`the line for ${tool} seals with suite ${suite}, and packets with another key are told`, async ({ page, feed, server }) => {
      await page.goto('/streaming.html');
      const line = await lineFor(page, id, tool);
      expect(line).toContain('KEY');
      expect(line).not.toContain(SRTP_KEY);
      const state = page.getByTestId(`mountpoint-${id}`).getByTestId('state');
      const wrong = feed(line.replace('KEY', SRTP_KEY.replace('MTIz', 'OTIz')));
      await expect(state).toContainText('packets come, but are refused: the SRTP key does not fit');
      // One line for many packets; both tools may have begun by now.
      const told = server.log().split('\n').filter((line) => line.includes('are refused: what comes does not open') && line.includes(`port=${PORTS + id * 10}`));
      expect(told.length).toBeGreaterThan(0);
      expect(told.length).toBeLessThanOrEqual(2);
      wrong.kill('SIGKILL');
      feed(line.replace('KEY', SRTP_KEY));
      await expect(state).toContainText('media comes in');
      await play(page, id);
      await mediaFlows(page, { video: 'VP8' });
    });
  }
}

test('lines lead to the group, or the only address that is listened on', async ({ page, server }) => {
  await page.goto(`${server.base.replace('127.0.0.1', 'localhost')}/streaming.html`);
  const row = page.getByTestId('mountpoint-27');
  await row.getByTestId('feed').click();
  const ffmpeg = row.getByTestId('line-ffmpeg');
  await expect(ffmpeg).toContainText(`rtp://239.255.12.27:${PORTS + 270}?`);
  await expect(ffmpeg).toContainText(`rtp://127.0.0.1:${PORTS + 272}?`);
  const gstreamer = row.getByTestId('line-gstreamer');
  await expect(gstreamer).toContainText(`host=239.255.12.27 port=${PORTS + 270}`);
  await expect(row.getByTestId('line-obs')).toContainText(`rtp://239.255.12.27:${PORTS + 270}`);
  await expect(row.getByTestId('line-text')).toContainText(`localhost ${PORTS + 274}`);
});

test('a line can be copied', async ({ page, context, server }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.base });
  await page.goto('/streaming.html');
  const row = page.getByTestId(`mountpoint-${CODECS.vp8}`);
  await row.getByTestId('feed').click();
  await row.getByTestId('copy-ffmpeg').click();
  await expect(row.getByTestId('copy-ffmpeg')).toHaveText('Copied');
  const line = await row.getByTestId('line-ffmpeg').textContent();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(line);
  // It is one that a shell takes: nothing of it is left over.
  execFileSync('bash', ['-n', '-c', line ?? '']);
});

test('messages of a data stream are shown', FIREFOX, async ({ page }) => {
  const { createSocket } = await import('node:dgram');
  await page.goto('/streaming.html?play=24');
  await expect(page.getByTestId('player')).toBeVisible();
  const socket = createSocket('udp4');
  await expect
    .poll(async () => {
      socket.send('hello', PORTS + 240, '127.0.0.1');
      return page.getByTestId('log').textContent();
    })
    .toContain('hello');
  socket.close();
});

test('the page fits a phone', async ({ page, feed }, info) => {
  await page.setViewportSize(PHONE);
  await page.goto('/streaming.html');
  feed(await lineFor(page, CODECS.vp8, 'ffmpeg'));
  await page.getByTestId('mountpoint-21').getByTestId('feed').click();
  await page.getByTestId('mountpoint-23').getByTestId('feed').click();
  await play(page, CODECS.vp8);
  await mediaFlows(page, { video: true });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
  for (const button of await page.getByRole('button').all()) {
    if (await button.isVisible()) expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  }
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll<HTMLInputElement>('input, select, button, video, audio')]
      .filter((control) => !control.labels?.length && !control.ariaLabel && !control.textContent?.trim())
      .map((control) => control.outerHTML),
  );
  expect(nameless).toEqual([]);
  await page.screenshot({ path: info.outputPath('streaming.png'), fullPage: true });
  expect(await sum(page, 'inbound-rtp', 'video', 'framesDecoded')).toBeGreaterThan(0);
});

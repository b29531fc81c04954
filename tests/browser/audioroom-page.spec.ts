// The audio room page, driven as users do: several tabs in one room, each with a tone of its own.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { isReference } from '../server/index.mjs';
import { hears, loudness, TONES } from './audio';
import { enter, expect, join as enterAs, moderate, type Name, PACKAGE, person, ROOMS, SECRET, slide, test } from './audioroom';
import { ask } from './room';

const PIN = '4321';

test.skip(isReference, 'the reference has no such page');

for (const room of ['demo', 'speech'] as const) {
  test(`three tabs each hear exactly the other two, ${room}`, async ({ context }) => {
    const ann = await enter(context, ROOMS[room], 'ann');
    const ben = await enter(context, ROOMS[room], 'ben');
    const cleo = await enter(context, ROOMS[room], 'cleo');
    await hears(ann, 'ben', 'cleo');
    await hears(ben, 'ann', 'cleo');
    await hears(cleo, 'ann', 'ben');
    await cleo.getByTestId('leave').click();
    await expect(cleo.getByTestId('lobby')).toBeVisible();
    await hears(ann, 'ben');
    await expect(person(ann, 'cleo')).toHaveCount(0);
    await cleo.getByTestId('join').click();
    await hears(cleo, 'ann', 'ben');
    await hears(ann, 'ben', 'cleo');
  });
}

test('two tabs hear each other, see who talks and who listens in, and mute themselves', async ({ context, server }) => {
  const ann = await enter(context, ROOMS.demo, 'ann');
  await expect(ann.getByTestId('room-title')).toHaveText('demo');
  const ben = await enter(context, ROOMS.demo, 'ben');
  await hears(ann, 'ben');
  await hears(ben, 'ann');
  await expect(person(ann, 'ben')).toContainText('talking');
  await expect(person(ann, 'ann')).toContainText('talking');
  const level = () => ben.getByTestId('level').evaluate((meter: HTMLMeterElement) => meter.value);
  await expect.poll(level).toBeGreaterThan(0.3);
  await ben.getByTestId('mute').click();
  await expect(person(ann, 'ben')).toContainText('muted');
  await hears(ann);
  await hears(ben, 'ann');
  await expect.poll(level).toBeLessThan(0.1);
  await expect(ben.getByTestId('standing')).toBeEmpty();
  const { stream_id } = await ask(server, { request: 'rtp_forward', room: ROOMS.demo, secret: SECRET, host: '127.0.0.1', port: 9 }, PACKAGE);
  await expect(ben.getByTestId('standing')).toHaveText('Sent on to another program');
  await ask(server, { request: 'stop_rtp_forward', room: ROOMS.demo, secret: SECRET, stream_id }, PACKAGE);
  await ben.getByTestId('mute').click();
  await hears(ann, 'ben');
  await expect(person(ann, 'ben')).toContainText('talking');
  // Who pauses hears nothing, and is not heard.
  await ben.getByTestId('pause').click();
  await expect(person(ann, 'ben')).toContainText('paused');
  await hears(ann);
  await ben.getByTestId('pause').click();
  await hears(ann, 'ben');
  await hears(ben, 'ann');
});

test('each is heard at a place, and as loud as they choose', async ({ context }) => {
  const ann = await enter(context, ROOMS.places, 'ann');
  const ben = await enter(context, ROOMS.places, 'ben');
  const cleo = await enter(context, ROOMS.places, 'cleo');
  await hears(cleo, 'ann', 'ben');
  await slide(ann, 'position', 0);
  await slide(ben, 'position', 100);
  await expect(person(cleo, 'ann')).toContainText('50 to the left');
  await expect(person(cleo, 'ben')).toContainText('50 to the right');
  const side = async (name: Name) => {
    const [left, right] = (await loudness(cleo))[name] ?? [0, 0];
    return left - right;
  };
  await expect.poll(() => side('ann')).toBeGreaterThan(15);
  await expect.poll(() => side('ben')).toBeLessThan(-15);
  const left = async () => (await loudness(cleo))['ann']?.[0] ?? 0;
  const before = await left();
  await slide(ann, 'volume', 30);
  await expect(ann.getByText('30 %')).toBeVisible();
  await expect.poll(left).toBeLessThan(before - 6);
  // Music is taken as it is.
  await ann.getByTestId('kind').selectOption('music');
  await expect.poll(() => ann.evaluate(() => (window as any).asked.audio)).toMatchObject({ echoCancellation: false, noiseSuppression: false, autoGainControl: false });
  await slide(ann, 'volume', 100);
  await hears(cleo, 'ann', 'ben');
});

test('music is heard in stereo', async ({ context }) => {
  const ann = await context.newPage();
  await ann.goto(`/audioroom.html?room=${ROOMS.places}&name=ann&tone=${TONES.ann},${TONES.ben}`);
  await ann.getByTestId('kind').selectOption('music');
  await enterAs(ann, 'ann');
  const cleo = await enter(context, ROOMS.places, 'cleo');
  await hears(cleo, 'ann', 'ben');
  const side = async (name: Name) => {
    const [left, right] = (await loudness(cleo))[name] ?? [0, 0];
    return left - right;
  };
  await expect.poll(() => side('ann')).toBeGreaterThan(15);
  await expect.poll(() => side('ben')).toBeLessThan(-15);
});

test('a group is asked for, and everybody is heard whatever the group', async ({ context }) => {
  const ann = await context.newPage();
  await ann.goto(`/audioroom.html?room=${ROOMS.grouped}&name=ann&tone=${TONES.ann}`);
  await ann.getByTestId('join').click();
  await expect(ann.getByTestId('notice')).toContainText('Enter the name of yours');
  await ann.getByTestId('group').fill('nobody');
  await ann.getByTestId('join').click();
  await expect(ann.getByTestId('notice')).toContainText('no such group');
  await ann.getByTestId('group').fill('hosts');
  await ann.getByTestId('join').click();
  const ben = await enter(context, ROOMS.grouped, 'ben', '&group=guests');
  await hears(ann, 'ben');
  await hears(ben, 'ann');
});

test('a moderator mutes one and all, and kicks', async ({ context }) => {
  const ann = await enter(context, ROOMS.moderated, 'ann');
  const ben = await enter(context, ROOMS.moderated, 'ben');
  const cleo = await enter(context, ROOMS.moderated, 'cleo');
  await hears(cleo, 'ann', 'ben');
  await ben.getByTestId('moderate-open').click();
  await ben.getByTestId('secret').fill('guess');
  await ben.getByTestId('moderate').click();
  await expect(ben.getByTestId('notice')).toContainText('not the secret');
  await expect(ben.getByTestId('kick').first()).toBeHidden();

  await moderate(ann);
  await person(ann, 'ben').getByTestId('moderate-mute').click();
  await expect(ben.getByTestId('notice')).toContainText('A moderator has muted you');
  await expect(ben.getByTestId('mute')).toHaveAttribute('aria-pressed', 'true');
  await hears(cleo, 'ann');
  await ben.getByTestId('mute').click();
  await hears(cleo, 'ann', 'ben');
  await ann.getByTestId('mute-room').click();
  await expect(cleo.getByTestId('notice')).toContainText('muted the room');
  await hears(cleo);
  await ann.getByTestId('mute-room').click();
  await hears(cleo, 'ann', 'ben');
  await person(ann, 'ben').getByTestId('kick').click();
  await expect(ben.getByTestId('lobby')).toBeVisible();
  await expect(ben.getByTestId('notice')).toContainText('removed you');
  await expect(person(cleo, 'ben')).toHaveCount(0);
  await hears(cleo, 'ann');
});

test('an announcement is heard by all, and stopped', async ({ context, folder }) => {
  const file = join(folder, 'welcome.opus');
  const tone = ['-f', 'lavfi', '-i', `sine=frequency=${TONES.file}:sample_rate=48000:duration=2`, '-af', 'volume=0.8'];
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...tone, '-c:a', 'libopus', '-b:a', '48k', '-frame_duration', '20', file]);
  const ann = await enter(context, ROOMS.files, 'ann');
  const ben = await enter(context, ROOMS.files, 'ben');
  await moderate(ann);
  await ann.getByTestId('filename').fill(join(folder, 'missing.opus'));
  await ann.getByTestId('play-file').click();
  await expect(ann.getByTestId('notice')).toContainText('cannot play this file');
  await ann.getByTestId('filename').fill(file);
  await ann.getByTestId('loop').check();
  await ann.getByTestId('play-file').click();
  await expect(ann.getByTestId('file')).toContainText('welcome.opus');
  await hears(ann, 'ben', 'file');
  await hears(ben, 'ann', 'file');
  await ann.getByTestId('stop-file').click();
  await expect(ann.getByTestId('file')).toHaveCount(0);
  await hears(ben, 'ann');
  await ann.getByTestId('loop').uncheck();
  await ann.getByTestId('play-file').click();
  await hears(ben, 'ann', 'file');
  // It ends by itself.
  await expect(ann.getByTestId('file')).toHaveCount(0);
  await hears(ben, 'ann');
});

test('a room is made, found by its link, opened by its PIN, and closed', async ({ context }) => {
  const ann = await context.newPage();
  await ann.goto(`/audioroom.html?name=Ann&tone=${TONES.ann}`);
  await ann.getByTestId('create-open').click();
  await ann.getByTestId('create-more').click();
  await ann.getByTestId('new-description').fill('Planning');
  await ann.getByTestId('new-rate').selectOption('48000');
  await ann.getByTestId('new-spatial').check();
  await ann.getByTestId('new-pin').fill(PIN);
  await ann.getByTestId('new-secret').fill(SECRET);
  await ann.getByTestId('create-room').click();
  await expect(ann.getByTestId('room-title')).toHaveText('Planning');
  await expect(ann.getByTestId('position')).toBeVisible();
  await ann.getByTestId('copy-link').click();
  const link = await ann.getByTestId('link').inputValue();
  expect(link).not.toContain(PIN);

  const ben = await context.newPage();
  await ben.goto(`${link}&name=Ben&source=none`);
  // The list says that it takes a PIN.
  await ben.getByTestId('pin').fill('0000');
  await ben.getByTestId('join').click();
  await expect(ben.getByTestId('notice')).toContainText('not the PIN');
  await ben.getByTestId('pin').fill(PIN);
  await ben.getByTestId('join').click();
  await expect(person(ann, 'Ben')).toContainText('muted');
  // Who only listens hears all, and is told how to talk.
  await hears(ben, 'ann');
  await ben.getByTestId('mute').click();
  await expect(ben.getByTestId('notice')).toContainText('Choose a microphone');
  // Who made the room knows its secret already.
  await ann.getByTestId('moderate-open').click();
  await ann.getByTestId('close-room').click();
  for (const page of [ann, ben]) {
    await expect(page.getByTestId('notice')).toContainText('The room was closed');
    await expect(page.getByTestId('lobby')).toBeVisible();
  }
});

test('what goes wrong is said with what to do', async ({ context, server }) => {
  const page = await context.newPage();
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = async () => {
      throw new DOMException('no', 'NotAllowedError');
    };
  });
  await page.goto(`/audioroom.html?room=${ROOMS.closing}&name=Ann&tone=${TONES.ann}`);
  await page.getByTestId('join').click();
  await expect(page.getByTestId('notice')).toContainText('Permission to use the microphone was denied. Allow it');
  await page.getByTestId('listen-only').click();
  await expect(page.getByTestId('status')).toContainText('In the room as Ann');
  await expect(person(page, 'Ann')).toContainText('listening');
  await page.getByTestId('leave').click();
  const gone = await ask(server, { request: 'destroy', room: ROOMS.closing, secret: SECRET }, PACKAGE);
  expect(gone).toMatchObject({ audiobridge: 'destroyed' });
  await page.getByTestId('join').click();
  await expect(page.getByTestId('notice')).toContainText('no such room');
});

test('the room fits a phone', async ({ context }, info) => {
  const page = await enter(context, ROOMS.narrow, 'ann');
  await page.setViewportSize({ width: 360, height: 740 });
  const other = await context.newPage();
  await other.goto(`/audioroom.html?room=${ROOMS.narrow}&name=Benjamin-with-a-name-that-is-really-long-for-a-phone&source=synthetic`);
  await other.getByTestId('join').click();
  await expect(page.getByTestId('people-count')).toHaveText('2');
  await moderate(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  for (const button of await page.getByRole('button').all()) {
    if (await button.isVisible()) expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  }
  await page.screenshot({ path: info.outputPath('phone.png'), fullPage: true });
});

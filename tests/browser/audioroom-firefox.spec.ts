// The audio room page in Firefox. Each user has a browser of their own: the tone of the fake microphone is a setting of it.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { BrowserContext } from '@playwright/test';
import { isReference } from '../server/index.mjs';
import { hears, TONES } from './audio';
import { enter, expect, moderate, type Name, person, ROOMS, test as base } from './audioroom';
import { FIREFOX } from './fixtures';
import { recordPeerConnections } from './stats';

const test = base.extend<{ firefoxOf: (name: Name) => Promise<BrowserContext> }>({
  firefoxOf: async ({ playwright, launchOptions, baseURL }, use) => {
    const opened: { close(): Promise<void> }[] = [];
    await use(async (name) => {
      const prefs = { ...launchOptions.firefoxUserPrefs, 'media.navigator.audio.fake_frequency': TONES[name] };
      const browser = await playwright.firefox.launch({ ...launchOptions, firefoxUserPrefs: prefs });
      opened.push(browser);
      const context = await browser.newContext({ baseURL });
      await context.addInitScript(recordPeerConnections);
      return context;
    });
    for (const browser of opened) await browser.close();
  },
});
test.skip(({ browserName }) => isReference || browserName !== 'firefox', 'of Firefox, with our page');

test('two hear each other, see who talks, mute themselves, and hear an announcement', FIREFOX, async ({ firefoxOf, folder }) => {
  const file = join(folder, 'bell.opus');
  const tone = ['-f', 'lavfi', '-i', `sine=frequency=${TONES.file}:sample_rate=48000:duration=2`, '-af', 'volume=0.8'];
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...tone, '-c:a', 'libopus', '-b:a', '48k', file]);
  const ann = await enter(await firefoxOf('ann'), ROOMS.demo, 'ann');
  const ben = await enter(await firefoxOf('ben'), ROOMS.demo, 'ben');
  await hears(ann, 'ben');
  await hears(ben, 'ann');
  for (const name of ['ann', 'ben']) await expect(person(ann, name)).toContainText('talking');
  await ben.getByTestId('mute').click();
  await expect(person(ann, 'ben')).toContainText('muted');
  await hears(ann);
  await hears(ben, 'ann');
  await ben.getByTestId('mute').click();
  await hears(ann, 'ben');

  await moderate(ann);
  await ann.getByTestId('filename').fill(file);
  await ann.getByTestId('loop').check();
  await ann.getByTestId('play-file').click();
  await hears(ann, 'ben', 'file');
  await hears(ben, 'ann', 'file');
  await ann.getByTestId('stop-file').click();
  await hears(ben, 'ann');

  await person(ann, 'ben').getByTestId('kick').click();
  await expect(ben.getByTestId('notice')).toContainText('removed you');
  await hears(ann);
});

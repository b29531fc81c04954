// The plots of the last minute beside the figures.
import { chromium, type Page } from '@playwright/test';
import { buildSync } from 'esbuild';
import { isReference } from '../server/index.mjs';
import { canMakeNamespaces, makeNamespace } from '../server/namespace.mjs';
import { startPortunus } from '../server/portunus.mjs';
import { contrasts } from './contrast';
import { expect, FIREFOX, test } from './fixtures';
import { blankPage } from './in-page';
import { mediaFlows } from './stats';

const PLOTS = ['bitrate-in', 'bitrate-out', 'loss-in', 'loss-out'];

/** The points of a plot: one run of them for each time without gaps. */
async function runs(page: Page, plot: string): Promise<string[][]> {
  const path = (await page.getByTestId(plot).locator('.line').getAttribute('d')) ?? '';
  return path.split('M').slice(1).map((run) => run.split('L'));
}

const points = async (page: Page, plot: string) => (await runs(page, plot)).flat().length;
const label = async (page: Page, plot: string) => (await page.getByTestId(plot).getAttribute('aria-label')) ?? '';

type Which = 'now' | 'at most';

/** A value of a label, as in `now 1.20 Mbit/s`: bit/s or %. */
function told(label: string, which: Which): number {
  const [, digits, unit] = new RegExp(`${which} ([\\d.]+) (%|kbit/s|Mbit/s)`).exec(label) ?? [];
  return Number(digits) * ({ 'kbit/s': 1e3, 'Mbit/s': 1e6 }[unit] ?? 1);
}

const value = async (page: Page, plot: string, which: Which) => told(await label(page, plot), which);

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the lines and axes of plots have enough contrast, ${colorScheme}`, FIREFOX, async ({ pageIn }) => {
    const page = await pageIn(colorScheme);
    await page.goto('/echotest.html?codec=vp8&size=320x180');
    await page.getByTestId('start').click();
    for (const plot of PLOTS) await expect(page.getByTestId(`plot-${plot}`)).toBeVisible();
    expect((await contrasts(page)).poor).toEqual([]);
  });
}

test('the echo test plots what was received and sent', FIREFOX, async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto('/echotest.html?codec=vp8&size=320x180');
  const heights = () =>
    page.getByTestId('figures').evaluate((list) => [...list.children].slice(0, 4).map((row) => Math.round(row.getBoundingClientRect().height)));
  await page.getByTestId('start').click();
  await expect(page.getByTestId('figures')).toBeVisible();
  const before = await heights();
  await mediaFlows(page, { audio: true, video: true });
  for (const plot of ['plot-bitrate-in', 'plot-bitrate-out']) {
    await expect.poll(() => points(page, plot), { message: plot }).toBeGreaterThan(1);
    const known = await points(page, plot);
    await expect.poll(() => points(page, plot), { message: plot }).toBeGreaterThan(known + 1);
    await expect(async () => {
      // Of one moment: each second has a new label.
      const [name, title] = await page.getByTestId(plot).evaluate((plot: HTMLElement) => [plot.ariaLabel ?? '', plot.title]);
      expect(told(name, 'now'), name).toBeGreaterThan(0);
      expect(told(name, 'at most'), name).toBeGreaterThanOrEqual(told(name, 'now'));
      expect(title).toBe(name);
    }).toPass();
    await expect(page.getByTestId(plot).locator('.axis')).toContainText('bit/s');
  }
  await expect.poll(() => points(page, 'plot-loss-in')).toBeGreaterThan(1);
  await expect(page.getByTestId('plot-loss-in').locator('.axis')).toContainText('%');
  expect(await heights(), 'nothing is pushed about').toEqual(before);
  await page.getByTestId('hangup').click();
  for (const plot of PLOTS) await expect(page.getByTestId(`plot-${plot}`)).toBeHidden();
});

test('while the page is not seen no samples are taken, which leaves a gap', FIREFOX, async ({ page }) => {
  await page.goto('/echotest.html?codec=vp8&size=320x180');
  await page.getByTestId('start').click();
  await expect.poll(() => points(page, 'plot-bitrate-in')).toBeGreaterThan(2);
  const see = (seen: boolean) =>
    page.evaluate((seen) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value: !seen });
      document.dispatchEvent(new Event('visibilitychange'));
    }, seen);
  const played = () => page.getByTestId('remote-video').evaluate((video: HTMLVideoElement) => video.currentTime);
  await see(false);
  const hiddenAt = await played();
  await expect.poll(played).toBeGreaterThan(hiddenAt + 1);
  const before = await runs(page, 'plot-bitrate-in');
  await expect.poll(played).toBeGreaterThan(hiddenAt + 4);
  expect(await runs(page, 'plot-bitrate-in')).toEqual(before);
  await see(true);
  await expect.poll(async () => (await runs(page, 'plot-bitrate-in')).length).toBe(2);
  await expect.poll(() => value(page, 'plot-bitrate-in', 'now')).toBeGreaterThan(0);
});

test('a plot keeps a minute, and says what its axis ends at', FIREFOX, async ({ page, server }) => {
  const script = buildSync({
    entryPoints: [new URL('../../web/src/plot.ts', import.meta.url).pathname],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'plots',
  }).outputFiles[0].text;
  await blankPage(page, server, script);
  await page.evaluate(`
    let now = 5000;
    performance.now = () => now;
    window.take = (after, value) => { now += after; plot.add(value); };
    window.plot = new plots.Plot('bitrate', 'Test', 'plot');
    document.body.append(plot.root);
  `);
  for (let second = 0; second < 100; second += 1) await page.evaluate(`take(${second % 2 ? 1300 : 700}, ${second * 1000})`);
  const full = (await runs(page, 'plot')).flat();
  expect(full.length).toBe(60);
  expect([full[0].split(',')[0], full[59].split(',')[0]]).toEqual(['0', '59']);
  expect(await label(page, 'plot')).toBe('Test, last minute: now 99 kbit/s, at most 99 kbit/s');
  await expect(page.getByTestId('plot').locator('.axis')).toHaveText('100 kbit/s0');
  await page.evaluate(`take(10_000, 1_400_000); take(1000, undefined)`);
  const [old, alone] = await runs(page, 'plot');
  expect([old.length, old.at(-1)!.split(',')[0], alone]).toEqual([49, '48', ['58,1.33h0']]);
  expect(await label(page, 'plot')).toBe('Test, last minute: now unknown, at most 1.40 Mbit/s');
  await expect(page.getByTestId('plot').locator('.axis')).toHaveText('1.5 Mbit/s0');
  await page.evaluate(`take(3_600_000, 5)`);
  expect((await runs(page, 'plot')).flat()).toHaveLength(1);
});

test('lost packets are plotted', async ({ launchOptions }) => {
  test.skip(isReference || !canMakeNamespaces(), 'it needs a server of ours, root and network namespaces');
  const namespace = makeNamespace();
  try {
    const server = await startPortunus({ workers: 1, config: 'bandwidth_adaptation = false' });
    const inside = await chromium.launch({ ...launchOptions, executablePath: namespace.wrap(launchOptions.executablePath ?? 'chromium') });
    try {
      const page = await inside.newPage();
      await page.goto(`${await namespace.reach(server.base)}/echotest.html?source=synthetic&codec=vp8&size=640x360&transport=http`);
      await page.getByTestId('start').click();
      await expect.poll(() => points(page, 'plot-loss-in')).toBeGreaterThan(1);
      namespace.limit(60);
      await expect.poll(() => value(page, 'plot-loss-in', 'at most'), { message: await label(page, 'plot-loss-in') }).toBeGreaterThan(1);
    } finally {
      await inside.close();
      await server.stop();
    }
  } finally {
    namespace.remove();
  }
});

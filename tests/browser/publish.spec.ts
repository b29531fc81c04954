// Publishing to a mountpoint from a browser, watching it from another, and in a page around it.
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { mediaFlows } from './stats';

test.skip(isReference, 'WHIP is ours');

test('a browser publishes, another watches, and a page of its own shows it', FIREFOX, async ({ page, context }) => {
  const server = await startServer({ workers: 1 });
  try {
    await page.goto(`${server.base}/streaming.html`);
    await page.getByTestId('try-whip').click();
    // Who is too early waits, and it begins by itself.
    const early = await context.newPage();
    await early.goto(`${server.base}/streaming.html`);
    await early.getByTestId('play').click();
    await expect(early.getByTestId('notice')).toContainText('It plays as soon as somebody does.');
    await page.getByTestId('publish-source').selectOption('synthetic');
    await page.getByTestId('publish-start').click();
    await expect(page.getByTestId('publish-state')).toContainText('Published from here');
    await expect(page.getByTestId('state')).toContainText('media comes in');

    await mediaFlows(early, { audio: 'opus', video: true });
    await expect(early.getByTestId('notice')).toBeHidden();
    await early.getByTestId('copy-link').click();
    const link = await early.getByTestId('link').inputValue();

    const watcher = await context.newPage();
    await watcher.goto(link.replace(/play=.*/, 'play=999'));
    await expect(watcher.getByTestId('notice')).toContainText('There is no stream 999.');
    await watcher.goto(link);
    await mediaFlows(watcher, { audio: 'opus', video: true });
    await watcher.getByTestId('embed').click();
    const code = await watcher.getByTestId('embed-code').inputValue();
    const source = /src="([^"]+)"/.exec(code)?.[1].replaceAll('&amp;', '&') ?? '';

    const around = await context.newPage();
    await around.goto(`${server.base}/healthz`);
    await around.evaluate((source) => {
      const frame = document.createElement('iframe');
      [frame.src, frame.allow] = [source, 'autoplay; fullscreen'];
      document.body.replaceChildren(frame);
    }, source);
    const frame = around.frameLocator('iframe');
    await expect(frame.getByTestId('status')).toContainText('Playing');
    await expect(frame.getByTestId('streams')).toBeHidden();

    await page.getByTestId('publish-stop').click();
    await expect(page.getByTestId('state')).toContainText(/no source: nobody publishes|no media for/);
    await expect(watcher.getByTestId('player-state')).toContainText('Stopped');
  } finally {
    for (const one of context.pages()) await one.goto('about:blank');
    await server.stop();
  }
});

test('a screen and a file are published, too, and a wrong token is told', async ({ page }, info) => {
  const film = info.outputPath('film.webm');
  const { execFileSync } = await import('node:child_process');
  const { mkdirSync } = await import('node:fs');
  mkdirSync(info.outputDir, { recursive: true });
  execFileSync('ffmpeg', `-v error -f lavfi -i testsrc2=size=320x180:rate=15:duration=5 -f lavfi -i sine=duration=5 -c:v libvpx -deadline realtime -c:a libopus ${film}`.split(' '));
  const server = await startServer({ workers: 1, config: '\n[[streaming.mountpoint]]\nid = 5\nname = "stage"\ntype = "whip"\ntoken = "t0ken"\n[[streaming.mountpoint.media]]\ntype = "video"\nmid = "v"\n' });
  try {
    await page.goto(`${server.base}/streaming.html`);
    await page.getByTestId('feed').click();
    await page.getByTestId('publish-source').selectOption('screen');
    await page.getByTestId('publish-token').fill('guess');
    await page.getByTestId('publish-start').click();
    await expect(page.getByTestId('publish-state')).toHaveText('The token is missing or wrong.');
    await page.getByTestId('publish-token').fill('t0ken');
    await page.getByTestId('publish-start').click();
    await expect(page.getByTestId('state')).toContainText('media comes in');
    await page.getByTestId('publish-stop').click();
    await page.getByTestId('publish-source').selectOption('file');
    await page.getByTestId('publish-file').setInputFiles(film);
    await page.getByTestId('publish-start').click();
    await expect(page.getByTestId('publish-state')).toContainText('Published from here');
    await page.getByTestId('play').click();
    await mediaFlows(page, { video: true });
  } finally {
    await page.goto('about:blank');
    await server.stop();
  }
});

// The pages themselves: what they say when something is missing, and whom they let in.
import { isReference, startServer } from '../server/index.mjs';
import { contrasts } from './contrast';
import { expect, FIREFOX, test } from './fixtures';
import { mediaFlows } from './stats';

const PAGES = ['/', '/echotest.html', '/videocall.html', '/streaming.html', '/videoroom.html', '/audioroom.html', '/textroom.html', '/voicemail.html', '/recordplay.html', '/sip.html', '/nosip.html', '/check.html'];

test('the first page says what the server is and leads to the others', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByTestId('info')).toContainText('echotest');
  await expect(page.getByTestId('info')).toContainText('websockets');
  await page.getByTestId('to-echotest').click();
  await expect(page).toHaveURL(/echotest\.html$/);
  await page.goto('/');
  await page.getByTestId('to-videocall').click();
  await expect(page).toHaveURL(/videocall\.html$/);
  await page.goto('/');
  await page.getByTestId('to-videoroom').click();
  await expect(page).toHaveURL(/videoroom\.html$/);
  await page.goto('/');
  await page.getByTestId('to-textroom').click();
  await expect(page).toHaveURL(/textroom\.html$/);
  await page.goto('/');
  await page.getByTestId('to-sip').click();
  await expect(page).toHaveURL(/sip\.html$/);
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`text and controls have enough contrast, ${colorScheme}`, FIREFOX, async ({ pageIn, browserName }) => {
    test.skip(browserName === 'chromium', 'page-checks.spec.ts looks at it');
    const page = await pageIn(colorScheme);
    for (const path of PAGES) {
      await page.goto(path);
      // What is hidden at first, and each kind of notice.
      await page.evaluate(() => {
        for (const element of document.querySelectorAll<HTMLElement>('[hidden]')) element.hidden = false;
        for (const kind of ['info', 'warning', 'error']) {
          const notice = document.createElement('div');
          notice.className = `notice ${kind}`;
          notice.innerHTML = `<p>A notice, ${kind}, with <a href="/">a link</a></p><button>Go on</button>`;
          document.querySelector('main')?.append(notice);
        }
      });
      const { seen, poor } = await contrasts(page);
      expect(poor, path).toEqual([]);
      expect(seen, path).toBeGreaterThan(20);
    }
  });

  test(`the browser knows the scheme before the style sheet is there, ${colorScheme}`, FIREFOX, async ({ pageIn }) => {
    const page = await pageIn(colorScheme);
    const colors = () =>
      page.evaluate(() => {
        document.body.style.setProperty('outline-color', 'Canvas');
        const bar = [...document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')].find(({ media }) => matchMedia(media).matches);
        document.body.style.setProperty('caret-color', bar?.content ?? '');
        const { outlineColor, caretColor } = getComputedStyle(document.body);
        return { canvas: outlineColor, bar: caretColor, header: getComputedStyle(document.querySelector('header')!).backgroundColor };
      });
    await page.goto('/echotest.html');
    const styled = await colors();
    expect(styled.bar, 'the colour of the browser around the page').toBe(styled.header);
    await page.route('**/style.css', (route) => route.abort());
    await page.goto('/echotest.html');
    const [red] = ((await colors()).canvas.match(/\d+/g) ?? []).map(Number);
    if (colorScheme === 'dark') expect(red).toBeLessThan(80);
    else expect(red).toBe(255);
  });
}

test('without camera and microphone, a synthetic source is offered', async ({ page }) => {
  await page.addInitScript(() => {
    navigator.mediaDevices.enumerateDevices = async () => [];
  });
  await page.goto('/echotest.html?size=320x180');
  await page.getByTestId('start').click();
  await expect(page.getByTestId('notice')).toContainText('No camera and no microphone');
  await page.getByTestId('use-synthetic').click();
  await mediaFlows(page, { audio: true, video: true });
});

test('a denied permission is explained, and the call can go on without', async ({ page }) => {
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = async () => {
      throw new DOMException('no', 'NotAllowedError');
    };
  });
  await page.goto('/echotest.html');
  await page.getByTestId('start').click();
  await expect(page.getByTestId('notice')).toContainText('denied');
  await page.getByTestId('use-none').click();
  await expect(page.getByTestId('status')).toContainText('Connected');
});

test('a page that is not from a secure context says so', async ({ page }) => {
  await page.addInitScript(() => Object.defineProperty(window, 'isSecureContext', { value: false }));
  await page.goto('/echotest.html');
  await page.getByTestId('start').click();
  await expect(page.getByTestId('notice')).toContainText('https://');
});

test('a microphone alone is enough', async ({ page }) => {
  await page.addInitScript(() => {
    const list = navigator.mediaDevices.enumerateDevices.bind(navigator.mediaDevices);
    navigator.mediaDevices.enumerateDevices = async () => (await list()).filter((device) => device.kind !== 'videoinput');
  });
  await page.goto('/echotest.html');
  await page.getByTestId('start').click();
  await expect(page.getByTestId('notice')).toContainText('sound only');
  await mediaFlows(page, { audio: 'opus' });
});

test('a server that is away is reported, before and during a call', async ({ page }) => {
  test.skip(isReference, 'stops the server');
  const server = await startServer({ workers: 1 });
  try {
    await page.goto(`${server.base}/echotest.html?size=320x180`);
    await page.getByTestId('start').click();
    await mediaFlows(page, { audio: true, video: true });
  } finally {
    expect(await server.stop()).toBe(0);
  }
  await expect(page.getByTestId('notice')).toContainText('cannot be reached');
  await page.getByTestId('start').click();
  await expect(page.getByTestId('notice')).toContainText('cannot be reached');
});

test('the pages run no script but their own, and no other page shows them', FIREFOX, async ({ page, server }) => {
  test.skip(isReference, 'it serves no pages of its own');
  for (const path of PAGES) {
    await page.goto(`${server.base}${path}`);
    const ran = await page.evaluate(async () => {
      const refused = new Promise<string>((resolve) => document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective)));
      const script = document.createElement('script');
      script.textContent = 'window.ran = true';
      document.body.append(script);
      return [await refused, 'ran' in window];
    });
    expect(ran, path).toEqual(['script-src-elem', false]);
  }
  // A page of another origin; the same page in a frame of its own origin is shown.
  const inFrame = async (host: string) => {
    await page.goto(`${server.base.replace('127.0.0.1', host)}/healthz`);
    await page.evaluate((src) => {
      const frame = document.createElement('iframe');
      frame.src = src;
      document.body.replaceChildren(frame);
    }, `${server.base}/echotest.html`);
    return page.frameLocator('iframe').getByTestId('start');
  };
  await expect(await inFrame('127.0.0.1')).toBeVisible();
  const foreign = await inFrame('localhost');
  await expect.poll(() => page.frames().length).toBe(2);
  await page.waitForLoadState('networkidle');
  await expect(foreign).toBeHidden();
});

test('a page that the configuration names shows the pages in a frame', async ({ page }) => {
  test.skip(isReference, 'it serves no pages of its own');
  const server = await startServer({ workers: 1, http: 'frame_ancestors = ["http://localhost:*"]' });
  await page.goto(`${server.base.replace('127.0.0.1', 'localhost')}/healthz`);
  await page.evaluate((src) => {
    const frame = document.createElement('iframe');
    [frame.src, frame.allow] = [src, 'camera; microphone'];
    document.body.replaceChildren(frame);
  }, `${server.base}/echotest.html?source=synthetic&size=320x180`);
  const frame = page.frameLocator('iframe');
  await frame.getByTestId('start').click();
  await expect(frame.getByTestId('status')).toContainText('Connected');
  expect(await server.stop()).toBe(0);
});

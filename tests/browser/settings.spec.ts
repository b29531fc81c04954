// Servers that are set up otherwise than by default: the browser notices nothing.
import { isReference, startServer } from '../server/index.mjs';
import { expect, FIREFOX, test } from './fixtures';
import { mediaFlows } from './stats';

const SETTINGS = {
  'ICE-lite': 'ice_lite = true',
  'one address, on loopback': 'bind = ["127.0.0.1"]',
  'IPv4 only': 'ipv6 = false',
  'an announced address': 'announced = ["127.0.0.1"]',
  'candidates one by one': '[server]\nfull_trickle = true',
  'ids as strings': '[server]\nstring_ids = true',
  'other transport-wide feedback': 'twcc_period_ms = 20',
};

/** What changes how a browser connects. */
const IN_FIREFOX = ['ICE-lite', 'candidates one by one', 'other transport-wide feedback'];

for (const [name, config] of Object.entries(SETTINGS)) {
  test(`a call with a server that has ${name}`, IN_FIREFOX.includes(name) ? FIREFOX : {}, async ({ page }) => {
    test.skip(isReference, 'starts servers of its own');
    const server = await startServer({ workers: 1, config });
    try {
      await page.goto(`${server.base}/echotest.html?size=320x180&codec=vp8`);
      await page.getByTestId('start').click();
      await mediaFlows(page, { audio: 'opus', video: 'VP8' });
      await page.getByTestId('text-input').fill('hello');
      await page.getByTestId('text-send').click();
      await expect(page.getByTestId('text-log')).toContainText('You wrote: hello');
      await page.getByTestId('restart').click();
      await mediaFlows(page, { audio: true, video: true });
    } finally {
      expect(await server.stop(), server.log()).toBe(0);
    }
  });
}

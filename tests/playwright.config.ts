import { existsSync } from 'node:fs';
import { defineConfig, type PlaywrightTestConfig } from '@playwright/test';
import { FIREFOX_LAUNCH } from './browser/firefox';

type Use = PlaywrightTestConfig['use'];

/** Chromium without what is around its pages, as Playwright's own: the same pages and media, with a quarter less CPU time. */
const SHELL = '/usr/bin/chromium-headless-shell';

const chromium: Use = {
  browserName: 'chromium',
  permissions: ['camera', 'microphone'],
  launchOptions: {
    executablePath: process.env.CHROMIUM ?? (existsSync(SHELL) ? SHELL : '/usr/bin/chromium'),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      '--autoplay-policy=no-user-gesture-required',
      // Lets the tests run on a machine that has no other network interface.
      '--allow-loopback-in-peer-connection',
      // Tabs in the back keep their timers and encoders.
      '--disable-background-timer-throttling',
      '--disable-backgrounding-occluded-windows',
      '--disable-renderer-backgrounding',
    ],
  },
};

const firefox: Use = { browserName: 'firefox', channel: 'moz-firefox', launchOptions: FIREFOX_LAUNCH };

export default defineConfig({
  testDir: 'browser',
  testMatch: '*.spec.ts',
  outputDir: 'results/browser',
  // A test waits more than it computes: 400 of them took 12 minutes of CPU time, and 24 minutes two at a time.
  workers: 3,
  fullyParallel: false,
  // What passes the second time is named as flaky (scripts/test): to be mended, but no reason to refuse a change.
  retries: 1,
  forbidOnly: true,
  // A server that does not work at all must not take an hour to say so.
  maxFailures: 8,
  // Of a machine whose cores are others' too: what works takes a quarter of this.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [['list'], ['json', { outputFile: process.env.BROWSER_REPORT ?? 'results/browser.json' }]],
  use: {
    headless: true,
    actionTimeout: 10_000,
    navigationTimeout: 10_000,
    viewport: { width: 1100, height: 900 },
    screenshot: 'only-on-failure',
  },
  projects: [
    { name: 'chromium', use: chromium },
    // What is marked for it. Playwright drives Debian's Firefox by WebDriver BiDi.
    { name: 'firefox', use: firefox, grep: /@firefox/ },
  ],
});

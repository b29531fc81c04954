// The first echo in a browser, of a server that nobody has configured:
// `node first-echo.mjs PROGRAM ARGUMENT...` starts the server by that command, opens the echo test with Chromium, and ends with
// status 0 once what is sent has come back. The default ports have to be free: run it in a network of its own.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chromium } from 'playwright-core';

const LIMIT = 60_000;

const [program, ...args] = process.argv.slice(2);
const server = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
let log = '';
server.stderr.on('data', (text) => (log += text));
const deadline = Date.now() + LIMIT;

/** Waits until the server takes clients. */
async function ready() {
  for (;;) {
    const answer = await fetch('http://localhost:8088/readyz').catch(() => undefined);
    if (answer?.ok) return;
    assert.ok(server.exitCode === null && Date.now() < deadline, `the server does not start:\n${log}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

let browser;
try {
  await ready();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--use-fake-device-for-media-stream',
      '--use-fake-ui-for-media-stream',
      '--autoplay-policy=no-user-gesture-required',
      // There is no other network interface.
      '--allow-loopback-in-peer-connection',
    ],
  });
  const page = await browser.newPage({ permissions: ['camera', 'microphone'] });
  page.setDefaultTimeout(LIMIT);
  await page.goto('http://localhost:8088/');
  await page.goto('http://localhost:8088/echotest.html');
  await page.getByTestId('start').click();
  await page.getByTestId('status').filter({ hasText: 'Connected' }).waitFor();
  // The own picture plays without a server: the other one has to.
  await page.waitForFunction(() => {
    const remote = document.querySelector('[data-testid=remote-video]');
    return remote instanceof HTMLVideoElement && remote.videoWidth > 0 && remote.currentTime > 0;
  });
} finally {
  await browser?.close();
  server.kill('SIGINT');
}

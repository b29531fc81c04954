// Gives tests a `Client` in a page of the server's origin.
import type { Page } from '@playwright/test';
import type { Server } from '../server/portunus.mjs';

/**
 * A document of the server's origin that runs any script and connects anywhere: the server's pages have a Content Security
 * Policy, which does not let them.
 */
export const BLANK = '/healthz';

/** Opens a blank page of the server's and puts the client's script in it. */
export async function blankPage(page: Page, server: Pick<Server, 'base'>, script: string, query = ''): Promise<void> {
  await page.goto(`${server.base}${BLANK}${query}`);
  await page.addScriptTag({ content: script });
}

/** Opens a client as `window.client` and negotiates the given tracks (JavaScript source of the list). */
export async function start(page: Page, address: string, tracks: string, body: object = {}): Promise<void> {
  await page.evaluate(
    `(async () => {
      window.client = await Client.open(${JSON.stringify(address)});
      await client.negotiate(${tracks}, ${JSON.stringify(body)});
    })()`,
  );
}

/** Makes `window.picture`, which moves, and `window.sound`, a tone of so many Hz. */
export async function makeMedia(page: Page, tone = 440): Promise<void> {
  await page.evaluate(`(async () => {
    const canvas = document.body.appendChild(document.createElement('canvas'));
    [canvas.width, canvas.height] = [320, 180];
    const paint = canvas.getContext('2d');
    let number = 0;
    setInterval(() => {
      paint.fillStyle = 'hsl(' + ((number += 7) % 360) + ', 80%, 50%)';
      paint.fillRect(0, 0, 320, 180);
      paint.fillStyle = 'white';
      paint.fillText(String(number), 10 + (number % 200), 90);
    }, 40);
    const audio = new AudioContext();
    const [tone, out] = [audio.createOscillator(), audio.createMediaStreamDestination()];
    tone.frequency.value = ${tone};
    tone.connect(out);
    tone.start();
    await audio.resume();
    window.picture = canvas.captureStream(25).getVideoTracks()[0];
    window.sound = out.stream.getAudioTracks()[0];
  })()`);
}

/** Evaluates an expression in which `client` is known. */
export function client<T>(page: Page, expression: string): Promise<T> {
  return page.evaluate(`(async () => (${expression}))()`) as Promise<T>;
}

export const AUDIO = `{ type: 'audio', capture: true, recv: true }`;
export const VIDEO = `{ type: 'video', capture: 'lowres-16:9', recv: true }`;
export const DATA = `{ type: 'data' }`;

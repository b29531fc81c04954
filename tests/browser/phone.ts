// Phones for browser tests: a server with the SIP plugin, a proxy that it registers at, and users on the phone page with a tone each.
import type { BrowserContext, Locator, Page } from '@playwright/test';
import { startServer } from '../server/index.mjs';
import { giveVoices, TONES } from './audio';
import { expect, test as base } from './fixtures';
import { type Kamailio, needsPhones, startKamailio } from './kamailio';

export type Name = keyof typeof TONES;

/** What the server is told: its SIP and its sound stay on the loopback interface. */
const configurationFor = ({ certificate }: Kamailio) => `[sip]\nlocal_ip = "127.0.0.1"\ntls_cacert = "${certificate}"\n`;

export const test = base.extend<{ installed: void }, { kamailio: Kamailio }>({
  installed: [async ({}, use) => {
    needsPhones();
    await use();
  }, { auto: true }],
  kamailio: [
    async ({}, use) => {
      const kamailio = await startKamailio();
      await use(kamailio);
      await kamailio.stop();
    },
    { scope: 'worker' },
  ],
  server: [
    async ({ kamailio }, use) => {
      const server = await startServer({ workers: 2, config: configurationFor(kamailio) });
      await use(server);
      expect(await server.stop(), server.log().slice(-4000)).toBe(0);
    },
    { scope: 'worker' },
  ],
  context: async ({ context }, use) => {
    await giveVoices(context);
    await use(context);
  },
});

let number = 0;

/** A user that no other test has. */
export const newUser = (name: string): string => `${name}${process.pid}-${(number += 1)}`;

/** Opens the page in a new tab, with a tone, and registers a user as one would by hand. */
export async function register(context: BrowserContext, kamailio: Kamailio, user: string, tone: Name, query = ''): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`/sip.html?server=${kamailio.domain}&user=${user}&tone=${TONES[tone]}${query}`);
  await page.getByTestId('secret').fill(kamailio.secret(user));
  await page.getByTestId('register').click();
  await expect(page.getByTestId('status')).toHaveText(`Registered as ${user}.`);
  return page;
}

export async function dial(page: Page, to: string): Promise<void> {
  await page.getByTestId('number').fill(to);
  await page.getByTestId('call').click();
}

/** The card of the call with somebody. */
export const callWith = (page: Page, name: string): Locator => page.getByTestId('call-card').filter({ has: page.getByTestId('call-name').getByText(name, { exact: true }) });

/** Does something with a call: `accept`, `hangup`, `hold`, `mute`, `keys`, `transfer`… */
export const press = (page: Page, name: string, button: string): Promise<void> => callWith(page, name).getByTestId(button).click();

/** Waits until a call with somebody was answered. */
export const talks = (page: Page, name: string): Promise<void> => expect(callWith(page, name).getByTestId('call-state')).toHaveText(/^\d+:\d\d$/);

/** Waits until a page has no call. */
export const isFree = (page: Page): Promise<void> => expect(page.getByTestId('call-card')).toHaveCount(0);

export { expect };

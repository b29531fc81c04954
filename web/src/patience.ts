// Tells the user while a connection takes longer than it should.
import { clearNotice, notice } from './page';

/** After how long that is told, in ms. Most connections take less than a second. */
const LONG = 5_000;

export class Patience {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private told = false;

  /** A connection is being made. */
  start(): void {
    this.stop();
    this.timer = setTimeout(() => {
      this.told = true;
      notice('warning', 'Still connecting: no media comes through so far. Firewalls that block UDP cause this, and servers whose address is not public. It is tried for 30 seconds in all.', [
        { label: 'Check the connection', id: 'open-check', run: () => window.open('check.html', '_blank') },
      ]);
    }, LONG);
  }

  /** The connection has come about, or has failed. */
  stop(): void {
    clearTimeout(this.timer);
    if (this.told) clearNotice();
    this.told = false;
  }
}

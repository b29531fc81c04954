// Coming back to a room whose connection for media has ended, while the server and the room are still there.
import { Refused } from './answer';
import { reconnecting } from './page';

/** How often it is tried, and after how long, in ms. */
const ATTEMPTS = 5;
const PAUSE = 1_000;

export class Rejoin {
  private current: object | null = null;
  private lost = 0;

  /** Joins again. Ends without a word if somebody ends it; `failed` is told if it does not work. */
  async start(join: () => Promise<void>, failed: (error: unknown) => void): Promise<void> {
    const own = (this.current = {});
    reconnecting('call', true);
    let failure: unknown = null;
    while (this.current === own && (this.lost += 1) <= ATTEMPTS) {
      await new Promise((done) => setTimeout(done, PAUSE));
      if (this.current !== own) break;
      try {
        await join();
        failure = null;
        break;
      } catch (error) {
        failure = error;
        if (error instanceof Refused) break;
      }
    }
    if (this.current !== null && this.current !== own) return;
    reconnecting('call', false);
    const isLast = this.current === own;
    this.current = null;
    if (isLast && (failure !== null || this.lost > ATTEMPTS)) failed(failure ?? new Error('The connection is lost again and again.'));
  }

  /** The connection is up. */
  up(): void {
    this.lost = 0;
  }

  /** The user is out of the room, or comes back in another way. */
  end(): void {
    this.current = null;
    this.lost = 0;
  }
}

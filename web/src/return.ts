// Coming back to a server that was away.
import { reconnecting } from './page';

/** For how long a page tries to come back, in ms. */
const PATIENCE = 120_000;

export interface Return {
  /** Connects, and does again what was done before. It fails as long as the server is away. */
  attempt(): Promise<void>;
  /** Whether the user still wants it. */
  isWanted(): boolean;
  /** Whether no further attempt would help. */
  isHopeless?(error: unknown): boolean;
}

/** Tries until it works, nobody wants it any more, or two minutes are over. Returns why it did not work, or undefined. */
export async function comeBack({ attempt, isWanted, isHopeless }: Return): Promise<unknown> {
  reconnecting('server', true);
  let failure: unknown;
  const deadline = Date.now() + PATIENCE;
  for (let pause = 500; isWanted() && Date.now() < deadline; pause = Math.min(2 * pause, 5_000)) {
    try {
      await attempt();
      failure = undefined;
      break;
    } catch (error) {
      failure = error;
      if (isHopeless?.(error)) break;
    }
    await new Promise((done) => setTimeout(done, pause));
  }
  reconnecting('server', false);
  return isWanted() ? failure : undefined;
}

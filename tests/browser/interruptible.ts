// A page whose connection to the server is cut, or falls silent.
import type { Page } from '@playwright/test';

export interface Interruptible {
  /** The WebSocket is lost, and there is none until `mend`. */
  cut(): Promise<void>;
  mend(): void;
  /** The WebSocket stays open, and nothing comes through it any more. */
  freeze(): void;
  /** How many WebSockets reached the server. */
  opened(): number;
}

/** Lets a page lose its WebSocket. */
export async function interruptible(page: Page): Promise<Interruptible> {
  const sockets: { close(): void; freeze(): void }[] = [];
  let away = false;
  let opened = 0;
  await page.routeWebSocket(/./, (socket) => {
    if (away) return void socket.close({ code: 1011 });
    const server = socket.connectToServer();
    opened += 1;
    let frozen = false;
    socket.onMessage((message) => void (frozen || server.send(message)));
    server.onMessage((message) => void (frozen || socket.send(message)));
    sockets.push({ close: () => { void socket.close({ code: 1011 }); void server.close({ code: 1011 }); }, freeze: () => (frozen = true) });
  });
  return {
    opened: () => opened,
    freeze: () => sockets.forEach((one) => one.freeze()),
    cut: async () => {
      away = true;
      for (const socket of sockets.splice(0)) socket.close();
    },
    mend: () => void (away = false),
  };
}

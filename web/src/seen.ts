// Work that is done again and again, and only while somebody can see the page.

/** Milliseconds. */
export const SECOND = 1000;

/**
 * Calls what `begin` gives at once and every `period` milliseconds while the page is seen; `begin` is called again each time
 * that the page comes back into view. Gives a function that ends it.
 */
export function everySeen(period: number, begin: () => () => void): () => void {
  let timer: ReturnType<typeof setInterval> | undefined;
  const turn = () => {
    clearInterval(timer);
    if (document.hidden) return;
    const tick = begin();
    timer = setInterval(tick, period);
    tick();
  };
  document.addEventListener('visibilitychange', turn);
  turn();
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', turn);
  };
}

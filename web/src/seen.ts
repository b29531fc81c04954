// Work that is done once a second, and only while somebody can see the page.

const SECOND = 1000;

/**
 * Calls what `begin` gives at once and every second while the page is seen; `begin` is called again each time that the page
 * comes back into view. Gives a function that ends it.
 */
export function everySecondSeen(begin: () => () => void): () => void {
  let timer: ReturnType<typeof setInterval> | undefined;
  const turn = () => {
    clearInterval(timer);
    if (document.hidden) return;
    const tick = begin();
    timer = setInterval(tick, SECOND);
    tick();
  };
  document.addEventListener('visibilitychange', turn);
  turn();
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', turn);
  };
}

// Where a file is that is played for this viewer alone, and going elsewhere in it.

/** How often the bar moves, in milliseconds. */
const STEP = 250;

export class PositionBar {
  private readonly range: HTMLInputElement;
  private readonly time: HTMLElement;
  private duration = 0;
  /** Where the file was, and when that was. */
  private at = { position: 0, time: 0 };
  private still = false;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** `seek` is called with seconds from the start; what does not loop stops at its end. */
  constructor(
    private readonly root: HTMLElement,
    seek: (position: number) => void,
    private readonly loops = true,
  ) {
    this.range = root.querySelector('input') as HTMLInputElement;
    this.time = root.querySelector('output') as HTMLElement;
    // While it is dragged the file goes on, and the bar stays with the hand.
    this.range.addEventListener('input', () => this.hold());
    this.range.addEventListener('change', () => seek(Number(this.range.value)));
  }

  /** Shows the bar for a file that lasts so many seconds and begins now; without that there is none. */
  show(duration: number | undefined): void {
    this.duration = duration ?? 0;
    this.root.hidden = !duration;
    this.range.max = String(this.duration);
    this.goesOn(0);
    if (!duration) this.hold();
  }

  /** Where the file is, in seconds. */
  get now(): number {
    return this.position();
  }

  /** The file goes on from here, now. */
  goesOn(position: number): void {
    this.at = { position, time: performance.now() };
    clearInterval(this.timer);
    this.timer = setInterval(() => this.move(), STEP);
    this.move();
  }

  /** It stands still, or goes on from there. */
  stand(still: boolean): void {
    if (still === this.still) return;
    if (still) this.at = { position: this.position(), time: performance.now() };
    this.still = still;
    this.goesOn(this.at.position);
  }

  private hold(): void {
    clearInterval(this.timer);
    this.say(Number(this.range.value));
  }

  private move(): void {
    const position = this.position();
    this.range.value = String(position);
    this.say(position);
  }

  private position(): number {
    const since = this.still ? 0 : (performance.now() - this.at.time) / 1000;
    const position = this.at.position + since;
    if (!this.duration) return 0;
    return this.loops ? position % this.duration : Math.min(position, this.duration);
  }

  private say(position: number): void {
    const text = `${clock(position)} of ${clock(this.duration)}`;
    this.time.textContent = text;
    this.range.setAttribute('aria-valuetext', text);
  }
}

/** As in `1:05`. */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

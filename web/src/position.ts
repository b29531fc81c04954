// Where a file is that is played for this viewer alone, and going elsewhere in it.

/** How often the bar moves, in milliseconds. */
const STEP = 250;

export class PositionBar {
  private readonly range: HTMLInputElement;
  private readonly time: HTMLElement;
  private duration = 0;
  /** Where the file was, and when that was. */
  private at = { position: 0, time: 0 };
  private timer: ReturnType<typeof setInterval> | undefined;

  /** `seek` is called with seconds from the start. */
  constructor(
    private readonly root: HTMLElement,
    seek: (position: number) => void,
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

  /** The file goes on from here, now. */
  goesOn(position: number): void {
    this.at = { position, time: performance.now() };
    clearInterval(this.timer);
    this.timer = setInterval(() => this.move(), STEP);
    this.move();
  }

  private hold(): void {
    clearInterval(this.timer);
    this.say(Number(this.range.value));
  }

  private move(): void {
    const since = (performance.now() - this.at.time) / 1000;
    // It plays again and again.
    const position = this.duration ? (this.at.position + since) % this.duration : 0;
    this.range.value = String(position);
    this.say(position);
  }

  private say(position: number): void {
    const text = `${clock(position)} of ${clock(this.duration)}`;
    this.time.textContent = text;
    this.range.setAttribute('aria-valuetext', text);
  }
}

/** As in `1:05`. */
function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

// Chat, with lines for those who join and leave.
import { element } from '../page';
import { make } from '../make';

const LIMIT = 200;

export class Chat {
  private readonly log = element('log');
  private readonly input = element<HTMLInputElement>('text-input');

  /** `prepare` is called when the user is about to write. */
  constructor(prepare: () => void, send: (text: string) => Promise<boolean>) {
    this.input.addEventListener('input', prepare, { passive: true });
    element<HTMLFormElement>('text-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.input.value.trim();
      if (!text) return;
      void send(text).then((sent) => {
        if (!sent) return;
        this.line('sent', text);
        this.input.value = '';
      });
    });
  }

  said(name: string, data: unknown): void {
    const text = typeof data === 'string' ? data : `${(data as ArrayBuffer).byteLength} bytes`;
    this.line('received', `${name}: ${text}`);
  }

  /** Something that nobody said. */
  remark(text: string): void {
    this.line('soft', text);
  }

  clear(): void {
    this.log.replaceChildren();
    this.input.value = '';
  }

  private line(className: string, text: string): void {
    this.log.append(make('li', { className, text }));
    while (this.log.childElementCount > LIMIT) this.log.firstElementChild?.remove();
    this.log.scrollTop = this.log.scrollHeight;
  }
}

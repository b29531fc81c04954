// Messages to and from other users, in and out of calls.
import { element } from '../page';
import { make } from '../make';

const LIMIT = 200;

export class Messages {
  private readonly log = element('messages');
  private readonly to = element<HTMLInputElement>('message-to');
  private readonly text = element<HTMLInputElement>('message-text');
  /** Messages without an acknowledgement yet, by Call-ID. */
  private readonly waiting = new Map<string, HTMLElement>();
  private sending: HTMLElement | null = null;

  constructor(send: (to: string, text: string) => Promise<void>, private readonly name: (uri: string, displayname?: string) => string) {
    element<HTMLFormElement>('message-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const [to, text] = [this.to.value.trim(), this.text.value.trim()];
      if (!text) return;
      this.sending = this.line('sent', `to ${to || 'the other end'}: ${text}`);
      this.text.value = '';
      void send(to, text);
    });
  }

  /** Whether the user has named somebody. */
  get recipient(): string {
    return this.to.value.trim();
  }

  came(sender: string, displayname: string, content: string, type: string): void {
    this.line('received', `${this.name(sender, displayname)}: ${/^text\//i.test(type) ? content : `(${type})`}`);
    this.to.value ||= sender.replace(/;.*$/, '');
  }

  /** The plugin has taken the message that was sent last. */
  taken(callId: string): void {
    if (this.sending) this.waiting.set(callId, this.sending);
    this.sending = null;
    for (const key of [...this.waiting.keys()].slice(0, -LIMIT)) this.waiting.delete(key);
  }

  /** The outcome. */
  delivered(callId: string, code: number, reason: string): void {
    const line = this.waiting.get(callId);
    if (code < 200 || !line) return;
    this.waiting.delete(callId);
    line.append(make('small', { className: 'soft', text: code < 300 ? ' ✓' : ` not delivered: ${code} ${reason}` }));
  }

  private line(className: string, text: string): HTMLElement {
    const item = make('p', { className, text });
    this.log.append(item);
    while (this.log.childElementCount > LIMIT) this.log.firstElementChild?.remove();
    this.log.scrollTop = this.log.scrollHeight;
    return item;
  }
}

// What is written in the room, and who comes and goes.
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Line {
  kind: 'sent' | 'received' | 'soft';
  text: string;
  at: Date;
}

interface Props {
  lines: Line[];
  /** The user is about to write. */
  prepare(): void;
  /** Returns whether it was sent. */
  send(text: string): Promise<boolean>;
  close(): void;
}

export function Chat({ lines, prepare, send, close }: Props) {
  const log = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  useEffect(() => log.current?.scrollTo(0, log.current.scrollHeight), [lines.length]);
  // Whoever opens it wants to write.
  useEffect(() => input.current?.focus({ preventScroll: true }), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (text.trim() && (await send(text.trim()))) setText('');
  };
  return (
    <section class="chat" aria-labelledby="text-title" onKeyDown={({ key }) => key === 'Escape' && close()}>
      <div class="row panel-head">
        <h3 id="text-title" class="grow">Chat</h3>
        <button type="button" class="close" aria-label="Close the chat" title="Close" onClick={close}>✕</button>
      </div>
      <div class="log" ref={log} data-testid="log" role="log" aria-labelledby="text-title" tabIndex={0}>
        {lines.length === 0 && <p class="soft">Nothing has been written since you came. Everybody in the room reads what you write.</p>}
        {lines.map(({ kind, text, at }) => (
          <p class={kind}>
            {text} <time class="soft">{at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}</time>
          </p>
        ))}
      </div>
      <form class="text-form" onSubmit={(event) => void submit(event)}>
        <input
          ref={input}
          data-testid="text-input"
          maxLength={2000}
          placeholder="Write something"
          aria-label="Text to send"
          autocomplete="off"
          value={text}
          onInput={(event) => (prepare(), setText(event.currentTarget.value))}
        />
        <button data-testid="text-send">Send</button>
      </form>
    </section>
  );
}

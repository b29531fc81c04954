// Actions that need a room's secret: mute it, play files in it, close it.
import type { Answer } from '../answer';
import { make, makeButton } from '../make';
import { clearNotice, element } from '../page';

export interface ModerationActions {
  ask(body: Answer): Promise<Answer>;
  /** The own group; empty in rooms without. */
  group(): string;
  /** The secret was the right one. */
  begun(): void;
  failed(error: unknown): void;
}

export class Moderation {
  private readonly root = element('moderation');
  private readonly secretField = element<HTMLInputElement>('secret');
  private readonly muteButton = element<HTMLButtonElement>('mute-room');
  private secret = '';
  /** The files that play, with their elements. */
  private readonly files = new Map<string, HTMLElement>();
  private readonly names = new Map<string, string>();

  constructor(private readonly actions: ModerationActions) {
    this.onSubmit('moderate-form', () => this.begin(this.secretField.value));
    this.onSubmit('file-form', () => this.play());
    this.muteButton.addEventListener('click', () => {
      this.run(this.manage(this.muteButton.getAttribute('aria-pressed') === 'true' ? 'unmute_room' : 'mute_room'));
    });
    element('close-room').addEventListener('click', () => this.run(this.manage('destroy')));
  }

  /** Shows what a moderator may do, if the secret is right: a change of the tokens that changes nothing asks for it. */
  async begin(secret: string): Promise<void> {
    await this.actions.ask({ request: 'allowed', action: 'add', allowed: [], ...(secret && { secret }) });
    this.secret = secret;
    this.root.hidden = false;
    this.actions.begun();
    clearNotice();
  }

  end(): void {
    this.secret = '';
    this.secretField.value = '';
    this.root.hidden = true;
    this.roomMuted(false);
    for (const id of [...this.files.keys()]) this.stopped(id);
  }

  /** Asks for what needs the secret. */
  manage(request: string, members: Answer = {}): Promise<Answer> {
    return this.actions.ask({ request, ...members, ...(this.secret && { secret: this.secret }) });
  }

  roomMuted(muted: boolean): void {
    this.muteButton.setAttribute('aria-pressed', String(muted));
  }

  /** A file is heard. */
  plays(id: string): void {
    if (this.files.has(id)) return;
    const root = make('li', { testid: 'file' });
    const stop = makeButton('Stop', 'stop-file', () => this.run(this.manage('stop_file', { file_id: id })));
    root.append(make('span', { className: 'grow', text: this.names.get(id) ?? id }), stop);
    this.files.set(id, root);
    element('files').append(root);
  }

  /** It is heard no more. */
  stopped(id: string): void {
    this.files.get(id)?.remove();
    this.files.delete(id);
    this.names.delete(id);
  }

  private async play(): Promise<void> {
    const filename = element<HTMLInputElement>('filename').value.trim();
    if (!filename) return;
    const group = this.actions.group();
    const id = crypto.getRandomValues(new Uint32Array(2)).join('-');
    this.names.set(id, filename.slice(filename.lastIndexOf('/') + 1));
    await this.manage('play_file', {
      filename,
      file_id: id,
      loop: element<HTMLInputElement>('loop').checked,
      ...(group && { group }),
    });
    clearNotice();
  }

  private onSubmit(form: string, run: () => Promise<void>): void {
    element<HTMLFormElement>(form).addEventListener('submit', (event) => {
      event.preventDefault();
      this.run(run());
    });
  }

  private run(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.actions.failed(error));
  }
}

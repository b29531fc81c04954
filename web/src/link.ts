// The address at which others find a room.
import { element } from './page';

/** Copies the address of a room on a page, without its PIN. */
export async function copyLink(page: string, room: string): Promise<void> {
  const link = new URL(page, window.location.href);
  link.searchParams.set('room', room);
  const field = element<HTMLInputElement>('link');
  field.value = link.href;
  const button = element('copy-link');
  const words = button.querySelector('.text') ?? button;
  try {
    await navigator.clipboard.writeText(link.href);
    words.textContent = 'Copied';
  } catch {
    // Pages that are not from https: or localhost may not write to the clipboard: it is marked for copying by hand.
    field.hidden = false;
    field.select();
    words.textContent = 'Copy the marked link';
  }
  setTimeout(() => (words.textContent = 'Link to share'), 3000);
}

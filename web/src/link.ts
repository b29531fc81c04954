// The address at which others find a room or a stream.
import { element } from './page';

/** Copies the address of a page with what it shows, such as a room, without its PIN. */
export async function copyLink(page: string, key: 'room' | 'play', id: string): Promise<void> {
  const link = new URL(page, window.location.href);
  link.searchParams.set(key, id);
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

/** Says something to the person at the terminal, on stderr, so that stdout stays what was asked for. */
export function note(sentence: string): void {
  process.stderr.write(`${sentence}\n`);
}

/** One line that is written over while somebody waits; silent when stderr is no terminal. */
export class WaitLine {
  #shown = false;

  show(text: string): void {
    if (!process.stderr.isTTY) return;
    process.stderr.write(`\r\u001b[2K${text}`);
    this.#shown = true;
  }

  clear(): void {
    if (this.#shown) process.stderr.write("\r\u001b[2K");
    this.#shown = false;
  }
}

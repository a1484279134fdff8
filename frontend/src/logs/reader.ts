// Reads a task's log: from its end, its beginning or a place in it, on as it is written, back and forth as asked.

import type { LogPart } from "../api";
import { added, before, EMPTY, type LogText } from "./parts";

const PART = 65536;
/** What is read where one goes back or forth, bytes. */
const STEP = 4 * PART;
/** What is shown before a place, bytes. */
const LEAD = PART / 4;
/** The place of a log's first line. */
export const BEGINNING = "start";

export type Ask = (offset: number, limit: number, signal: AbortSignal) => Promise<LogPart>;
/** Takes the log as far as it is read; `following`: what is written from now on is read by itself. */
export type Show = (log: LogText, following: boolean) => void;

export class LogReader {
  private log = EMPTY;
  private started = false;
  private readonly begin: number;
  /** Up to where the stream is read without being asked, bytes. */
  private goal: number;
  private timer = 0;
  private failures = 0;
  private readingOn = false;
  private readingBack = false;
  private readonly closed = new AbortController();

  /** Begin at `place`: bytes, BEGINNING, or empty for the end. `live`: more may be written. */
  constructor(
    private readonly ask: Ask,
    private readonly show: Show,
    place: string,
    private live: boolean,
  ) {
    const at = place === BEGINNING ? 0 : Number(place);
    this.begin = place === "" ? -PART : Math.max(0, at - LEAD);
    this.goal = place === "" ? Infinity : at + STEP;
    this.resume();
  }

  /** Say whether more may be written. */
  setLive(live: boolean): void {
    this.live = live;
    if (live) this.resume();
  }

  /** Read what is before the part that is read. */
  async earlier(): Promise<void> {
    const { from } = this.log;
    if (this.readingBack || !from) return;
    this.readingBack = true;
    try {
      const part = await this.between(Math.max(0, from - STEP), from);
      if (this.closed.signal.aborted || this.log.from !== from) return; // the beginning was left out meanwhile
      const longer = before(this.log, part);
      if (longer.to < this.log.to) this.goal = longer.to;
      this.tell(longer);
    } catch (error) {
      this.fail(error as Error);
    } finally {
      this.readingBack = false;
    }
  }

  /** Read what is behind the part that is read. */
  later(): void {
    this.goal = this.log.to + STEP;
    this.resume();
  }

  close(): void {
    this.closed.abort();
    window.clearTimeout(this.timer);
  }

  private resume(): void {
    if (this.readingOn) return;
    this.readingOn = true;
    void this.readOn();
  }

  private async readOn(): Promise<void> {
    let wait: number | undefined = 1000;
    try {
      if (!document.hidden) wait = await this.readPart();
    } catch (error) {
      this.fail(error as Error);
      this.failures += 1;
      wait = this.live || this.failures <= 3 ? Math.min(15_000, 1000 * 2 ** this.failures) : undefined;
    }
    if (this.closed.signal.aborted) return;
    if (wait === undefined) this.readingOn = false;
    else this.timer = window.setTimeout(() => void this.readOn(), wait);
  }

  /** Read the next part; the milliseconds until the one after it, none when there is nothing to read by itself. */
  private async readPart(): Promise<number | undefined> {
    const { to } = this.log;
    if (this.started && to >= this.goal) return undefined;
    const part = await this.ask(this.started ? to : this.begin, PART, this.closed.signal);
    if (this.closed.signal.aborted) return undefined;
    this.failures = 0;
    if (this.log.to !== to) return 0; // the end was left out meanwhile
    this.started = true;
    if (part.size - part.next <= STEP) this.goal = Infinity;
    this.tell(added(this.log, part));
    if (part.text && part.next < part.size) return 0;
    return part.complete || !this.live ? undefined : 1000;
  }

  /** What the stream has between two places; a server may answer with less than is asked. */
  private async between(from: number, to: number): Promise<LogPart> {
    const whole = await this.ask(from, to - from, this.closed.signal);
    while (whole.next < to) {
      const part = await this.ask(whole.next, to - whole.next, this.closed.signal);
      if (part.next <= whole.next) break;
      whole.text += part.text;
      whole.next = part.next;
    }
    return whole;
  }

  private tell(log: LogText): void {
    this.log = log;
    this.show(log, this.goal === Infinity);
  }

  private fail(error: Error): void {
    if (!this.closed.signal.aborted) this.tell({ ...this.log, error: error.message });
  }
}

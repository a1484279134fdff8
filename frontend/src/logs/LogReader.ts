// Reads a task's log from its end, its beginning or an offset; follows it as it is written; loads more on request.

import type { LogChunk } from "../api";
import { appendChunk, prependChunk, EMPTY_LOG, type LogText } from "./logText";

const CHUNK_BYTES = 65536;
/** How much `loadEarlier` and `loadLater` read, bytes. */
const STEP_BYTES = 4 * CHUNK_BYTES;
/** How much is read before the requested offset, bytes. */
const LEAD_BYTES = CHUNK_BYTES / 4;
const DEFAULT_POLL_MS = 1000;
/** The position of a log's first line. */
export const BEGINNING = "start";

type FetchChunk = (offset: number, limit: number, signal: AbortSignal) => Promise<LogChunk>;
/** Called with the log as far as it is read; `following`: new lines are read as they are written. */
type OnLogChange = (log: LogText, following: boolean) => void;

export class LogReader {
  private log = EMPTY_LOG;
  private started = false;
  private readonly startOffset: number;
  /** The offset up to which the stream is read without a request, bytes. */
  private targetOffset: number;
  private timer = 0;
  private failures = 0;
  private readingForward = false;
  private readingBack = false;
  private readonly closed = new AbortController();

  /** Begins at `position`: an offset in bytes, BEGINNING, or empty for the end. `live`: more may be written, and is
   * requested every `pollMs` milliseconds. */
  constructor(
    private readonly fetchChunk: FetchChunk,
    private readonly onChange: OnLogChange,
    position: string,
    private live: boolean,
    private readonly pollMs = DEFAULT_POLL_MS,
  ) {
    const at = position === BEGINNING ? 0 : Number(position);
    this.startOffset = position === "" ? -CHUNK_BYTES : Math.max(0, at - LEAD_BYTES);
    this.targetOffset = position === "" ? Infinity : at + STEP_BYTES;
    this.resume();
  }

  /** Sets whether more may be written. */
  setLive(live: boolean): void {
    this.live = live;
    if (live) this.resume();
  }

  /** Loads the text before the loaded text. */
  async loadEarlier(): Promise<void> {
    const { from } = this.log;
    if (this.readingBack || !from) return;
    this.readingBack = true;
    try {
      const chunk = await this.readRange(Math.max(0, from - STEP_BYTES), from);
      if (this.closed.signal.aborted || this.log.from !== from) return; // the beginning was dropped meanwhile
      const extended = prependChunk(this.log, chunk);
      if (extended.to < this.log.to) this.targetOffset = extended.to;
      this.setLog(extended);
    } catch (error) {
      this.setError(error as Error);
    } finally {
      this.readingBack = false;
    }
  }

  /** Loads the text after the loaded text. */
  loadLater(): void {
    this.targetOffset = this.log.to + STEP_BYTES;
    this.resume();
  }

  close(): void {
    this.closed.abort();
    window.clearTimeout(this.timer);
  }

  private resume(): void {
    if (this.readingForward) return;
    this.readingForward = true;
    void this.readForward();
  }

  private async readForward(): Promise<void> {
    let wait: number | undefined = this.pollMs;
    try {
      if (!document.hidden) wait = await this.readNextChunk();
    } catch (error) {
      this.setError(error as Error);
      this.failures += 1;
      wait = this.live || this.failures <= 3 ? Math.min(15_000, 1000 * 2 ** this.failures) : undefined;
    }
    if (this.closed.signal.aborted) return;
    if (wait === undefined) this.readingForward = false;
    else this.timer = window.setTimeout(() => void this.readForward(), wait);
  }

  /** Reads the next chunk. Returns the milliseconds until the chunk after it, or undefined if none is to be read. */
  private async readNextChunk(): Promise<number | undefined> {
    const { to } = this.log;
    if (this.started && to >= this.targetOffset) return undefined;
    const chunk = await this.fetchChunk(this.started ? to : this.startOffset, CHUNK_BYTES, this.closed.signal);
    if (this.closed.signal.aborted) return undefined;
    this.failures = 0;
    if (this.log.to !== to) return 0; // the end was dropped meanwhile
    this.started = true;
    if (chunk.size - chunk.next <= STEP_BYTES) this.targetOffset = Infinity;
    this.setLog(appendChunk(this.log, chunk));
    if (chunk.text && chunk.next < chunk.size) return 0;
    return chunk.complete || !this.live ? undefined : this.pollMs;
  }

  /** Reads the stream between two offsets. A server may answer with less than was requested. */
  private async readRange(from: number, to: number): Promise<LogChunk> {
    const joined = await this.fetchChunk(from, to - from, this.closed.signal);
    while (joined.next < to) {
      const chunk = await this.fetchChunk(joined.next, to - joined.next, this.closed.signal);
      if (chunk.next <= joined.next) break;
      if (chunk.offset !== joined.next) joined.first_line = null; // bytes between are not kept
      joined.times.push(...pairsAfter(joined.text, chunk.times));
      joined.streams.push(...pairsAfter(joined.text, chunk.streams));
      joined.text += chunk.text;
      joined.next = chunk.next;
    }
    return joined;
  }

  private setLog(log: LogText): void {
    this.log = log;
    this.onChange(log, this.targetOffset === Infinity);
  }

  private setError(error: Error): void {
    if (!this.closed.signal.aborted) this.setLog({ ...this.log, error: error.message });
  }
}

/** Returns what a chunk says of its lines, with the numbers of lines of the text that the chunk is added to. */
function pairsAfter<Value>(text: string, pairs: [number, Value][]): [number, Value][] {
  const lines = text.split("\n").length - 1;
  return pairs.map(([number, value]) => [number + lines, value]);
}

// What the reading of event files could not do: read a file whole, or keep all that it read.

/** How what is told of memory begins (howdah.eventfiles.event_directory); all else is told of a file, or of a directory. */
const MEMORY_ERROR = /^(there is no memory for all of it|\d+ values of more tags)/;

export function isMemoryError(text: string): boolean {
  return MEMORY_ERROR.test(text);
}

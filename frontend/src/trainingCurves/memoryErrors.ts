// Tells errors about memory from errors about files, among the errors of reading event files.

/** How errors about memory begin (howdah.eventfiles.event_directory); all others are about a file or a directory. */
const MEMORY_ERROR = /^(there is no memory for all of it|\d+ values of more tags)/;

export function isMemoryError(text: string): boolean {
  return MEMORY_ERROR.test(text);
}

// Groups tasks whose programs have the same stacks.

export interface StackGroup {
  tasks: string[];
  /** The stack traces of the first task. */
  text: string;
}

/** Where the text of a process, of one of its threads in Python or of its threads in the kernel begins. */
const PART = /^(?=Process \d+:|Thread (?:0x[\da-f]+|\d+) |What the kernel says)/im;
const PROCESS_LINE = /^Process \d+:.*/i;
/** With the interpreter's path, which differs between containers. */
const PYTHON_LINE = /^Python (v\S+) \(.*\)$/gm;
const THREAD_LINE = /^Thread (?:0x[\da-f]+|\d+) \([^)]*\)(.*)/i;
const KERNEL_THREAD = /^ {4}\d+ (.*): (?:runs|sleeps|waits for a disk|is stopped|is traced|is dead|\w|\?)(?= \S+$|$)/gm;

/** Returns the groups of tasks with equal stacks, the smallest first: they hold the odd ones. */
export function groupStacks(stacks: Record<string, string>): StackGroup[] {
  const groups = new Map<string, StackGroup>();
  for (const [task, text] of Object.entries(stacks)) {
    const key = comparable(text);
    const group = groups.get(key);
    if (group) group.tasks.push(task);
    else groups.set(key, { tasks: [task], text });
  }
  return [...groups.values()].sort((one, other) => one.tasks.length - other.tasks.length);
}

/** Leaves out what differs between tasks that do the same: numbers and command lines of processes, the interpreter's
 * path, numbers and states of threads, and their order. */
function comparable(text: string): string {
  const parts = text.split(PART).map((part) =>
    part
      .trim()
      .replace(PROCESS_LINE, "Process")
      .replace(THREAD_LINE, (_, name: string) => `Thread${name.replace(/\d+/g, "N")}`)
      .replace(PYTHON_LINE, "Python $1")
      .replace(KERNEL_THREAD, "    $1:"),
  );
  return parts.sort().join("\n");
}

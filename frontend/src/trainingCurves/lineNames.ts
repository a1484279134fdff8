// Names of jobs and runs by what differs between them.

/** What a name is made of for one of several jobs. */
export interface NamedJob {
  id: string;
  name: string;
  /** Its hyperparameters. */
  params: Record<string, unknown>;
}

const MAX_PARAMETERS = 3;

/** Returns the names without the directories that all of them begin or end with. One name alone stays as it is. */
export function differingParts(names: string[]): string[] {
  const paths = names.map((name) => name.split("/"));
  const shortest = Math.min(...paths.map(({ length }) => length));
  if (new Set(names).size < 2) return names;
  const shared = (part: (path: string[], at: number) => string | undefined): number => {
    let count = 0;
    while (count < shortest - 1 && new Set(paths.map((path) => part(path, count))).size === 1) count += 1;
    return count;
  };
  const first = shared((path, at) => path[at]);
  const last = Math.min(
    shared((path, at) => path[path.length - 1 - at]),
    shortest - 1 - first,
  );
  return paths.map((path) => path.slice(first, path.length - last).join("/"));
}

/** Returns a name for each job, by its id: their names if these differ, with the hyperparameters that differ, and as
 * much of the id as makes it unique. */
export function describeJobs(jobs: NamedJob[]): Map<string, string> {
  const parameters = [...new Set(jobs.flatMap(({ params }) => Object.keys(params)))].filter(
    (key) => new Set(jobs.map(({ params }) => JSON.stringify(params[key]))).size > 1,
  );
  const sameName = new Set(jobs.map(({ name }) => name)).size < 2;
  const words = jobs.map(({ name, params }) => {
    const told = parameters.slice(0, MAX_PARAMETERS).flatMap((key) => (key in params ? [`${key}=${String(params[key])}`] : []));
    return [...(sameName && told.length ? [] : [name]), ...told].filter(Boolean).join(" ");
  });
  return new Map(
    jobs.map(({ id }, index) => {
      const text = words[index] as string;
      const twice = words.filter((each) => each === text).length > 1;
      return [id, twice || !text ? `${text} ${id}`.trim() : text];
    }),
  );
}

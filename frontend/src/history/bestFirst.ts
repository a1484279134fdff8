/** Puts jobs whose name or id has the text before those that have it elsewhere, as in a tag. */
export function bestFirst<J extends { name: string; id: string }>(jobs: J[], text: string): J[] {
  const words = text.toLowerCase();
  const named = (job: J): boolean => `${job.name} ${job.id}`.toLowerCase().includes(words);
  return [...jobs.filter(named), ...jobs.filter((job) => !named(job))];
}

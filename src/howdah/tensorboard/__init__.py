"""TensorBoard over a job's event files, or over all jobs': a program like the master, run in an environment that has
TensorBoard. It reads through `howdah.storage`, lets in who has its token, and ends when nobody has looked for a
while."""

"""The client: makes a plan of a job file, submits the plan as a job, and shows users how the job goes."""

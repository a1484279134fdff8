"""Outside the cluster: from a job file to a plan, from a plan to a job, and back from a job to what people see."""

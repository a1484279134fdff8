"""Jobs in notebooks: kernels and cells that run as jobs, and the table that shows a job."""

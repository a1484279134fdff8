"""What runs where the job is submitted: reading the job, finding the settings, handing over, looking on."""

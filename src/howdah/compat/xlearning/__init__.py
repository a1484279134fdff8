"""XLearning's and HBox's commands, frameworks and REST calls; `submit` makes a job of a command line."""

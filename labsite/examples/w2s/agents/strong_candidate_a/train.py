"""Strong candidate A: ridge logistic regression over every column, with rounds of self-training."""

from run_folder import run
from student import train_student

run(lambda job: train_student(job, "logistic", "strong-a"))

"""Strong candidate B: two Gaussians on the principal axes of every column, begun at the labels and moved by expectation and maximisation."""

from run_folder import run
from student import train_student

run(lambda job: train_student(job, "mixture", "strong-b"))

"""w2s-medqa: a weak teacher, later its strong students, on a table of biopsies."""

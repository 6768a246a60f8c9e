"""Which records of one dataset version stand in another too. Pure, and heavy with NumPy: it runs in a process of its own (process.py)."""

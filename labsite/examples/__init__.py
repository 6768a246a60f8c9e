"""The example laboratories: their programs, tables and plans. What they run is ordinary work and uses nothing private of labsite."""
